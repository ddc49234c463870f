"""The commands `run`, which asks for the approval that a release needs, and `plan`."""

from __future__ import annotations

import argparse
import os
import select
import shutil
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mondrian_ops.cli.arguments import allowed_job, takes_job, user
from mondrian_ops.cli.output import write, write_json
from mondrian_ops.cli.signals import SIGNALS
from mondrian_ops.errors import ApprovalError, MondrianOpsError

if TYPE_CHECKING:
    from mondrian_ops.phases import Costs, Phases
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
    run.add_argument(
        "--timings",
        action="store_true",
        help="print to standard error what each phase has cost, on the clock and of processors",
    )
    run.set_defaults(command=_run)

    plan = commands.add_parser("plan", help="show the condition and the rows of each fragment")
    takes_job(plan)
    plan.add_argument("--json", action="store_true", help="print the fragments as JSON")
    plan.set_defaults(command=_plan)


def _run(options: argparse.Namespace) -> int:
    from mondrian_ops import pipeline
    from mondrian_ops.phases import Phases, since_start
    from mondrian_ops.progress import display

    phases = Phases()
    phases.add("start", since_start(), time.process_time())
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
                phases=phases,
            )
    except MondrianOpsError as error:
        if error.report is not None:
            _write(options, error.report, phases)
        raise
    _write(options, report, phases)
    return 0


def _write(options: argparse.Namespace, report: Mapping[str, Any], phases: Phases) -> None:
    """Write the report of a release, also of one that was refused."""
    if options.json:
        write_json(report)
    elif not options.quiet:
        _write_report(report)
    if options.timings:
        _write_timings({**report.get("phases", {}), **phases.costs()})


def _write_timings(costs: Costs) -> None:
    """Write what the phases have cost, and this process in all.

    The seconds of fragments that were in work at the same time add up to more than the clock's.
    """
    from mondrian_ops.phases import since_start

    cpu_s = time.process_time()
    rest = cpu_s - sum(cost["cpu_s"] for cost in costs.values())
    lines = [f"{'phase':<12} {'clock':>10} {'CPU':>10}"]
    for name, cost in costs.items():
        lines.append(
            f"{name.replace('_', ' '):<12} {cost['seconds']:>8.3f} s {cost['cpu_s']:>8.3f} s"
        )
    lines.append(f"{'other':<12} {'':>10} {max(0, rest):>8.3f} s")
    lines.append(f"{'in all':<12} {since_start():>8.3f} s {cpu_s:>8.3f} s")
    sys.stderr.write("\n".join([*lines, ""]))


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
    from mondrian_ops import publish
    from mondrian_ops.report import HTML_NAME, render_text, state_of

    on_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if on_terminal else 80
    write(render_text(report, width, colour=on_terminal and not os.environ.get("NO_COLOR")))
    output = report["job"].get("output")
    if output and state_of(report) == "published" and (folder := publish.folder_of(output)):
        write(f"\nreport page     {folder.rstrip('/')}/{HTML_NAME}")


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
