"""The command `verify`."""

from __future__ import annotations

import argparse
from typing import Any

from mondrian_ops.cli.arguments import takes_set
from mondrian_ops.cli.output import REFUSED, write, write_json

__all__ = ["add"]


def add(commands: Any) -> None:
    """Declare the command and its arguments."""
    verify = commands.add_parser(
        "verify", help="check a release against a job; exit 1 if a class fails"
    )
    verify.add_argument("release", metavar="DIR", help="the release: a directory of Parquet files")
    verify.add_argument("--job", required=True, metavar="JOB", help="job file: YAML or JSON")
    takes_set(verify)
    verify.add_argument("--json", action="store_true", help="print the verdict as JSON")
    verify.set_defaults(command=_verify)


def _verify(options: argparse.Namespace) -> int:
    from mondrian_ops import pipeline, storage
    from mondrian_ops.report.number_format import number, printable

    release = storage.resolved(options.release)
    storage.check_location("release", release)
    # The access policy does not apply: verify reads none of the files that the job names.
    job = storage.load_job(options.job, options.overrides)
    verdict = pipeline.verify(job, release)
    if options.json:
        write_json(verdict)
        return 0 if verdict["passed"] else REFUSED
    write(f"rows      {number(verdict['rows'])}")
    write(f"classes   {number(verdict['equivalence_classes'])}")
    for key, reached in verdict["achieved"].items():
        write(f"{key:<10}{number(reached)} reached, {number(getattr(job, key))} required")
    for failure in verdict["failures"]:
        write(f"failed    {printable(failure)}")
    for note in verdict["notes"]:
        write(f"note      {note}")
    write("PASSED" if verdict["passed"] else "FAILED")
    return 0 if verdict["passed"] else REFUSED
