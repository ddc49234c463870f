"""The command `verify`."""

from __future__ import annotations

import argparse
from typing import Any

from mondrian_ops.cli.arguments import takes_set
from mondrian_ops.cli.output import REFUSED, write, write_json


def add(commands: Any) -> None:
    """Declare the command and its arguments."""
    verify = commands.add_parser(
        "verify", help="check a release against a job; exit 1 if a class fails"
    )
    verify.add_argument("release", metavar="DIR", help="the release: a directory of Parquet files")
    verify.add_argument(
        "--series",
        action="store_true",
        help="attack all releases of its series at once, with what was known of each person: how "
        "many are left with less than k and l; DIR is the output of any of its nights",
    )
    verify.add_argument("--job", required=True, metavar="JOB", help="job file: YAML or JSON")
    takes_set(verify)
    verify.add_argument("--json", action="store_true", help="print the verdict as JSON")
    verify.set_defaults(command=_verify)


def _verify(options: argparse.Namespace) -> int:
    from mondrian_ops import pipeline, stores
    from mondrian_ops.report.number_format import number, printable

    release = stores.resolved(options.release)
    stores.check_location("release", release)
    # The access policy does not apply: verify reads none of the files that the job names.
    job = stores.load_job(options.job, options.overrides)
    if options.series:
        return _verify_series(options, pipeline.verify_series(job, release))
    verdict = pipeline.verify(job, release)
    if options.json:
        write_json(verdict)
        return 0 if verdict["passed"] else REFUSED
    write(f"rows      {number(verdict['rows'])}")
    write(f"classes   {number(verdict['equivalence_classes'])}")
    for key, reached in verdict["achieved"].items():
        required = job.criteria[key].level if key in job.criteria else getattr(job, key)
        write(f"{key:<9} {number(reached)} reached, {number(required)} required")
    for failure in verdict["failures"]:
        write(f"failed    {printable(failure)}")
    for note in verdict["notes"]:
        write(f"note      {note}")
    write("PASSED" if verdict["passed"] else "FAILED")
    return 0 if verdict["passed"] else REFUSED


def _verify_series(options: argparse.Namespace, verdict: dict[str, Any]) -> int:
    from mondrian_ops.report.number_format import number, printable

    if options.json:
        write_json(verdict)
        return 0 if verdict["passed"] else REFUSED
    names = ("rows", "persons", "below_l", "given_away", "below_k")
    write("".join([f"{'night':<20}", *(f"{name.replace('_', ' '):>12}" for name in names)]))
    for night in verdict["nights"]:
        figures = (f"{number(night[name]):>12}" for name in names)
        write("".join([f"{night['label']:<20}", *figures]))
    for title, key in (("failed", "failures"), ("unseen", "not_looked_at"), ("note", "notes")):
        for text in verdict[key]:
            write(f"{title:<10}{printable(text)}")
    ending = "FAILED" if verdict["failures"] else "INCOMPLETE"
    write("PASSED" if verdict["passed"] else ending)
    return 0 if verdict["passed"] else REFUSED
