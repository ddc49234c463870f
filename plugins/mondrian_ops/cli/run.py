"""The commands `run`, which asks for the approval that a release needs, and `plan`."""

from __future__ import annotations

import argparse
import os
import select
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mondrian_ops.cli.arguments import allowed_job, takes_job, user
from mondrian_ops.cli.output import write, write_json
from mondrian_ops.cli.signals import SIGNALS
from mondrian_ops.errors import ApprovalError, MondrianOpsError

if TYPE_CHECKING:
    from mondrian_ops.progress import Display

_SECONDS_TO_SIGNALS = 0.5


def add(commands: Any) -> None:
    """Declare the commands and their arguments."""
    run = commands.add_parser("run", help="anonymize and publish; exit 0 only if published")
    takes_job(run)
    run.add_argument("--quiet", action="store_true", help="no progress and no report")
    run.add_argument("--json", action="store_true", help="print the report as JSON")
    run.add_argument(
        "--approve",
        action="store_true",
        help="approve the release if it needs approval; without this option you are asked on the "
        "terminal",
    )
    run.set_defaults(command=_run)

    plan = commands.add_parser("plan", help="show the condition and the rows of each fragment")
    takes_job(plan)
    plan.add_argument("--json", action="store_true", help="print the fragments as JSON")
    plan.set_defaults(command=_plan)


def _run(options: argparse.Namespace) -> int:
    from mondrian_ops import pipeline
    from mondrian_ops.progress import display

    job = allowed_job(options)
    pipeline.refuse_without_users(job)
    if job.require_approval:
        _check_can_ask(options)
    try:
        with display(sys.stderr, options.quiet) as progress:
            report = pipeline.run(
                job,
                progress=SIGNALS.watched(progress),
                approve=lambda report: _approve(options, report, progress),
            )
    except MondrianOpsError as error:
        if error.report is not None:
            _write(options, error.report)
        raise
    _write(options, report)
    return 0


def _write(options: argparse.Namespace, report: Mapping[str, Any]) -> None:
    """Write the report of a release, also of one that was refused."""
    if options.json:
        write_json(report)
    elif not options.quiet:
        _write_report(report)


def _check_can_ask(options: argparse.Namespace) -> None:
    """Raise ApprovalError if there is neither ``--approve`` nor a terminal to ask on."""
    if not (options.approve or (sys.stdin.isatty() and sys.stderr.isatty())):
        raise ApprovalError(
            "the release needs an approval, and there is no terminal to ask on; run again "
            "with --approve, or run the job in Airflow"
        )


def _approve(options: argparse.Namespace, report: Mapping[str, Any], screen: Display) -> str | None:
    """The user who approves the release with this report; None if they reject it."""
    _check_can_ask(options)
    if options.approve:
        return user()
    from mondrian_ops.report import render_text

    screen.stop()
    with SIGNALS.at_once():
        sys.stderr.write(render_text(report, shutil.get_terminal_size().columns))
        sys.stderr.write("\n\nPublish this release? [y/N] ")
        sys.stderr.flush()
        # A signal that comes just before a read would wait for the end of the line.
        while not select.select([sys.stdin], [], [], _SECONDS_TO_SIGNALS)[0]:
            pass
        answer = sys.stdin.readline()
    return user() if answer.strip().lower() in ("y", "yes") else None


def _write_report(report: Mapping[str, Any]) -> None:
    from mondrian_ops.report import HTML_NAME, render_text, state_of

    on_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if on_terminal else 80
    write(render_text(report, width, colour=on_terminal and not os.environ.get("NO_COLOR")))
    output = report["job"].get("output")
    if output and state_of(report) == "published":
        write(f"\nreport page     {output.rstrip('/')}/{HTML_NAME}")


def _plan(options: argparse.Namespace) -> int:
    from mondrian_ops import pipeline
    from mondrian_ops.report.number_format import number, percent, printable

    fragments = pipeline.plan(allowed_job(options))
    if options.json:
        write_json([fragment.to_dict() for fragment in fragments])
        return 0
    total = sum(fragment.rows for fragment in fragments) or 1
    write(f"{'fragment':>8} {'rows':>14} {'share':>8}  where")
    for fragment in fragments:
        write(
            f"{fragment.id:>8} {number(fragment.rows):>14} "
            f"{percent(fragment.rows / total):>8}  {printable(fragment.where or 'all rows')}"
        )
    return 0
