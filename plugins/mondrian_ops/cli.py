"""The command line: run, plan, verify, frontier, schema, generate.

Results go to standard output, progress and errors to standard error. Exit status: 0 when what was
asked for is done (`run`: published; `verify`: passed), 1 when it is refused or fails, 2 for a
command line that makes no sense. What is heavy is imported by the command that needs it.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from mondrian_ops import __version__
from mondrian_ops.core.errors import ApprovalError, MondrianOpsError
from mondrian_ops.lean_imports import import_lean

if TYPE_CHECKING:
    from mondrian_ops.core.job import Job
    from mondrian_ops.progress import Display, Progress

_REFUSED = 1
_INTERRUPTED = 130
_TERMINATED = 143

_EPILOG = """\
examples:
  python -m mondrian_ops generate poker --rows 1000000 --output data/poker.parquet
  python -m mondrian_ops run job.yaml --set k=10 --set partitioning.fragments=4
  python -m mondrian_ops verify out/poker --job job.yaml
  python -m mondrian_ops frontier job.yaml --k 2,5,10,25,50,100 --l 1,2,3
"""


class _Terminated(BaseException):
    """SIGTERM, raised so that working files are removed on the way out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    _survive_odd_terminals()
    try:
        with _SIGNALS.raised():
            import_lean()
            status = command(options)
            sys.stdout.flush()  # here a reader that has left can still be dealt with
            return status
    except MondrianOpsError as error:
        return _fail(str(error), _REFUSED)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            return _pipe_closed()
        if error.errno is None:  # no file's, but a server's
            return _fail(str(error), _REFUSED)
        return _fail(f"{error.strerror or error}: {error.filename or 'input or output'}", _REFUSED)
    except MemoryError:
        return _fail("out of memory; raise partitioning.fragments or run fewer at once", _REFUSED)
    except KeyboardInterrupt:
        return _fail("interrupted", _INTERRUPTED)
    except _Terminated:
        return _fail("terminated", _TERMINATED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mondrian_ops",
        description="k-anonymous, l-diverse releases of personal data.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mondrian_ops {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="anonymize and publish; exit 0 only if published")
    _takes_job(run)
    run.add_argument("--quiet", action="store_true", help="no progress and no report")
    run.add_argument("--json", action="store_true", help="print the report as JSON")
    run.add_argument(
        "--approve",
        action="store_true",
        help="approve a release that needs approval; without it the terminal is asked",
    )
    run.set_defaults(command=_run)

    plan = commands.add_parser("plan", help="show the fragments: condition and rows")
    _takes_job(plan)
    plan.add_argument("--json", action="store_true", help="print the fragments as JSON")
    plan.set_defaults(command=_plan)

    verify = commands.add_parser(
        "verify", help="check a release against a job; exit 1 if a class fails"
    )
    verify.add_argument("release", metavar="DIR", help="the release: a directory of Parquet files")
    verify.add_argument("--job", required=True, metavar="JOB", help="job file: YAML or JSON")
    _takes_set(verify)
    verify.add_argument("--json", action="store_true", help="print the verdict as JSON")
    verify.set_defaults(command=_verify)

    _add_frontier(commands)

    schema = commands.add_parser("schema", help="print the JSON Schema of a job, for editors")
    schema.set_defaults(command=_schema)

    generate = commands.add_parser("generate", help="make synthetic data")
    generate.add_argument("kind", choices=("poker", "people"), help="poker hands, or a population")
    generate.add_argument("--rows", type=_rows, default=1_000_000, help="default: 1000000")
    generate.add_argument("--seed", type=int, default=0, help="default: 0")
    generate.add_argument("--output", required=True, metavar="FILE", help=".parquet or .csv")
    generate.set_defaults(command=_generate)

    return parser


def _add_frontier(commands: Any) -> None:
    frontier = commands.add_parser(
        "frontier", help="loss and risk against k and l, to choose them by; publishes nothing"
    )
    _takes_job(frontier)
    frontier.add_argument(
        "--k",
        type=_numbers,
        default=(2, 5, 10, 25, 50, 100),
        metavar="K,…",
        help="default: 2,5,10,25,50,100",
    )
    frontier.add_argument(
        "--l", type=_numbers, default=(1,), metavar="L,…", help="1: none asked for; default: 1"
    )
    size = frontier.add_mutually_exclusive_group()
    size.add_argument("--sample", type=float, metavar="RATE", help="share of the rows to measure")
    size.add_argument("--rows", type=_rows, metavar="N", help="about so many rows; default: 200000")
    frontier.add_argument(
        "--output", metavar="DIR", help="for CSV, SVG and HTML; default: the job's with _frontier"
    )
    frontier.add_argument("--quiet", action="store_true", help="no progress and no table")
    frontier.add_argument("--json", action="store_true", help="print the figures as JSON")
    frontier.set_defaults(command=_frontier)


def _takes_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="job file: YAML or JSON")
    _takes_set(parser)


def _takes_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change one key of the job, such as k=10 or partitioning.fragments=4; repeatable",
    )


def _rows(text: str) -> int:
    try:
        rows = int(text.replace("_", ""))
    except ValueError:
        rows = 0
    if rows < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows; give one from 1 on")
    return rows


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(int(part) if part.strip().isdigit() else float(part)
                     for part in text.split(","))  # fmt: skip
    except ValueError:
        message = f"{text!r} is not a list of numbers; write it as 2,5,10"
        raise argparse.ArgumentTypeError(message) from None


def _run(options: argparse.Namespace) -> int:
    from mondrian_ops import pipeline
    from mondrian_ops.progress import display

    job = _allowed_job(options)
    approver = _Approver(options.approve)
    if job.require_approval:
        approver.refuse_unheard()
    with display(sys.stderr, options.quiet) as progress:
        report = pipeline.run(
            job,
            progress=_SIGNALS.watched(progress),
            approve=lambda report: approver.asked(report, progress),
        )
    if options.json:
        _write_json(report)
    elif not options.quiet:
        _write_report(report)
    return 0


def _allowed_job(options: argparse.Namespace) -> Job:
    """The job, if it names nothing that the environment does not allow: JobError."""
    from mondrian_ops import storage

    job = storage.load_job(options.job, options.overrides)
    storage.check_job(job)
    return job


class _Approver:
    """Who runs the command, asked on the terminal unless ``--approve`` has answered already."""

    def __init__(self, approves: bool) -> None:
        self._approves = approves

    def refuse_unheard(self) -> None:
        """Raise ApprovalError where nobody can be asked."""
        if not (self._approves or (sys.stdin.isatty() and sys.stderr.isatty())):
            raise ApprovalError(
                "the release needs an approval, and there is no terminal to ask on; "
                "run it again with --approve, or in Airflow"
            )

    def asked(self, report: Mapping[str, Any], screen: Display) -> str | None:
        """Who approves the release with this report; None if it is rejected."""
        self.refuse_unheard()
        if self._approves:
            return _user()
        from mondrian_ops.report import render_text

        screen.stop()
        width = shutil.get_terminal_size().columns
        with _SIGNALS.at_once():
            sys.stderr.write(render_text(report, width))
            sys.stderr.write("\n\nPublish this release? [y/N] ")
            sys.stderr.flush()
            answer = sys.stdin.readline()
        return _user() if answer.strip().lower() in ("y", "yes") else None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        return f"user {os.getuid()}"


def _plan(options: argparse.Namespace) -> int:
    from mondrian_ops import pipeline
    from mondrian_ops.report.figures import number, percent, printable

    fragments = pipeline.plan(_allowed_job(options))
    if options.json:
        _write_json([fragment.to_dict() for fragment in fragments])
        return 0
    total = sum(fragment.rows for fragment in fragments) or 1
    _write(f"{'fragment':>8} {'rows':>14} {'share':>8}  where")
    for fragment in fragments:
        _write(
            f"{fragment.id:>8} {number(fragment.rows):>14} "
            f"{percent(fragment.rows / total):>8}  {printable(fragment.where or 'all rows')}"
        )
    return 0


def _verify(options: argparse.Namespace) -> int:
    from mondrian_ops import pipeline, storage
    from mondrian_ops.report.figures import number, printable

    storage.check_location("release", options.release)
    job = storage.load_job(options.job, options.overrides)  # nothing that it names is read
    verdict = pipeline.verify(job, options.release)
    if options.json:
        _write_json(verdict)
        return 0 if verdict["passed"] else _REFUSED
    _write(f"rows      {number(verdict['rows'])}")
    _write(f"classes   {number(verdict['equivalence_classes'])}")
    for key, reached in verdict["achieved"].items():
        _write(f"{key:<10}{number(reached)} reached, {number(getattr(job, key))} asked")
    for failure in verdict["failures"]:
        _write(f"failed    {printable(failure)}")
    for note in verdict["notes"]:
        _write(f"note      {note}")
    _write("PASSED" if verdict["passed"] else "FAILED")
    return 0 if verdict["passed"] else _REFUSED


def _frontier(options: argparse.Namespace) -> int:
    from mondrian_ops.pipeline import frontier
    from mondrian_ops.progress import display
    from mondrian_ops.report import frontier_text

    job = _allowed_job(options)
    grid = frontier.points(options.k, options.l)
    folder = frontier.folder_of(job, options.output)
    with display(sys.stderr, options.quiet) as progress:
        found = frontier.trace(
            job,
            grid,
            rows=options.rows,
            rate=options.sample,
            progress=_SIGNALS.watched(progress),
        )
    written = frontier.write(found, folder)
    if options.json:
        _write_json(found)
    elif not options.quiet:
        _write(frontier_text(found, shutil.get_terminal_size().columns))
        _write("\n" + "\n".join(written))
    return 0


def _schema(_options: argparse.Namespace) -> int:
    from mondrian_ops.core.job_schema import job_schema

    _write_json(job_schema())
    return 0


def _generate(options: argparse.Namespace) -> int:
    from mondrian_ops import datasets

    datasets.generate(options.kind, rows=options.rows, seed=options.seed, output=options.output)
    _write(f"{options.rows:,} rows in {options.output}")
    return 0


def _write_report(report: Mapping[str, Any]) -> None:
    from mondrian_ops.report import HTML_NAME, render_text

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    _write(render_text(report, width, colour=_wants_colour()))
    output = report["job"].get("output")
    if output:
        _write(f"\nreport page     {output.rstrip('/')}/{HTML_NAME}")


def _wants_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")


def _write_json(value: Any) -> None:
    _write(json.dumps(value, indent=1, ensure_ascii=False))


def _fail(message: str, status: int) -> int:
    from mondrian_ops.report.figures import printable

    sys.stderr.write(f"mondrian_ops: {printable(message)}\n")
    return status


def _pipe_closed() -> int:
    # The reader has left (`| head`): no complaint, and none at shutdown either.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _REFUSED


def _survive_odd_terminals() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


class _Signals:
    """Interrupts and terminations as exceptions, so that working files are removed on the way out.

    While a run is watched they are raised between its steps: raised at any time, an exception is
    lost where a library is just being called back from C. A second signal does not wait.
    """

    def __init__(self) -> None:
        self._watched = False
        self._received: type[BaseException] | None = None

    def _stop(self, number: int, frame: FrameType | None) -> None:
        is_first = self._received is None
        self._received = KeyboardInterrupt if number == signal.SIGINT else _Terminated
        if not (self._watched and is_first):
            raise self._received

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raise them from here on, until the end of the block."""
        self._watched, self._received = False, None
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self._stop) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise them wherever the block is, as while it waits for an answer."""
        watched, self._watched = self._watched, False
        if self._received is not None:
            raise self._received
        try:
            yield
        finally:
            self._watched = watched

    def watched(self, progress: Progress) -> Progress:
        """``progress``, which from now on raises what came since its last call."""
        self._watched = True

        def step(phase: str, done: int, total: int) -> None:
            if self._received is not None:
                raise self._received
            progress(phase, done, total)

        return step


_SIGNALS = _Signals()
