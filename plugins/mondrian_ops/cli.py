"""The command line: run, plan, verify, frontier, sweep, import, schema, generate, init.

Results go to standard output, progress and errors to standard error. The exit status is 0 if the
command succeeds (`run`: published, or the rows of a series' night wait; `verify`: passed), 1 if it
is refused or fails, 2 for an invalid command line. Each command imports the heavy modules that it
needs, so that `--help` starts fast.
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
from datetime import date
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from mondrian_ops import __version__
from mondrian_ops.core.errors import ApprovalError, InputError, JobError, MondrianOpsError
from mondrian_ops.lean_imports import import_lean

if TYPE_CHECKING:
    from mondrian_ops.catalogue.old_files import Imported
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
    """Raised by SIGTERM, so that working files are removed on the way out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    _survive_odd_terminals()
    try:
        with _SIGNALS.raised():
            import_lean()
            status = command(options)
            sys.stdout.flush()  # raises BrokenPipeError here, not at shutdown
            return status
    except MondrianOpsError as error:
        return _fail(str(error), _REFUSED)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            return _pipe_closed()
        if error.errno is None:  # a server's error, which names no file
            return _fail(str(error), _REFUSED)
        return _fail(f"{error.strerror or error}: {error.filename or 'input or output'}", _REFUSED)
    except MemoryError:
        return _fail(
            "out of memory; raise partitioning.fragments, or run fewer jobs at once", _REFUSED
        )
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
        help="approve the release if it needs approval; without this option you are asked on the "
        "terminal",
    )
    run.set_defaults(command=_run)

    plan = commands.add_parser("plan", help="show the condition and the rows of each fragment")
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

    sweep = commands.add_parser(
        "sweep", help="remove working files, which hold original rows, of runs that were killed"
    )
    sweep.add_argument(
        "folders", nargs="+", metavar="DIR", help="path or URL below which to look, at any depth"
    )
    sweep.add_argument(
        "--keep-hours",
        type=float,
        default=24.0,
        metavar="N",
        help="leave files that changed in the last N hours; default: 24",
    )
    sweep.add_argument(
        "--all",
        action="store_true",
        help="also the files of runs in Airflow, which may still need them; without this option "
        "they are left to its DAG mondrian_sweep",
    )
    sweep.set_defaults(command=_sweep)

    importing = commands.add_parser(
        "import",
        help="import what older versions kept in files into the catalogue; may be repeated",
    )
    importing.add_argument(
        "--reports", metavar="DIR", help="path or URL of an archive of reports, for the pages"
    )
    importing.add_argument(
        "--ledger",
        metavar="DIR",
        help="path or URL of a ledger; its key becomes the key of the catalogue, which must not "
        "have another one",
    )
    importing.add_argument(
        "--population",
        default="",
        metavar="NAME",
        help="the population of the jobs that used the ledger; default: that of all jobs that "
        "name none",
    )
    importing.set_defaults(command=_import)

    schema = commands.add_parser("schema", help="print the JSON Schema of a job, for editors")
    schema.set_defaults(command=_schema)

    _add_series(commands)
    _add_generate(commands)

    init = commands.add_parser("init", help="copy the DAGs and their example data into a folder")
    init.add_argument("folder", metavar="DIR", help="the folder above the DAGs folder")
    init.set_defaults(command=_init)

    return parser


def _add_frontier(commands: Any) -> None:
    frontier = commands.add_parser(
        "frontier", help="measure loss and risk over a grid of k and l; publishes nothing"
    )
    _takes_job(frontier)
    frontier.add_argument(
        "--k",
        type=_numbers,
        default="2,5,10,25,50,100",
        metavar="K,…",
        help="the values of k; default: %(default)s",
    )
    frontier.add_argument(
        "--l",
        type=_numbers,
        default="1",
        metavar="L,…",
        help="the values of l; 1 sets no requirement; default: %(default)s",
    )
    size = frontier.add_mutually_exclusive_group()
    size.add_argument("--sample", type=float, metavar="RATE", help="share of the rows to measure")
    size.add_argument(
        "--rows", type=_rows, metavar="N", help="about how many rows to measure; default: 200000"
    )
    frontier.add_argument(
        "--output",
        metavar="DIR",
        help="directory for CSV, SVG and HTML; default: the job's output with _frontier appended",
    )
    frontier.add_argument("--quiet", action="store_true", help="no progress and no table")
    frontier.add_argument("--json", action="store_true", help="print the figures as JSON")
    frontier.set_defaults(command=_frontier)


def _add_series(commands: Any) -> None:
    series = commands.add_parser("series", help="decide on a series of releases")
    decisions = series.add_subparsers(dest="decision", metavar="DECISION", required=True)
    refit = decisions.add_parser(
        "refit",
        help="fit new boundaries in its next night (series.boundaries: stable); counts before and "
        "after cannot be compared",
    )
    refit.add_argument("output", metavar="DIR", help="the output of any night of the series")
    refit.set_defaults(command=_refit)


def _add_generate(commands: Any) -> None:
    generate = commands.add_parser("generate", help="generate synthetic data")
    generate.add_argument("kind", choices=("poker", "people"), help="poker hands, or a population")
    generate.add_argument(
        "--rows",
        type=_rows,
        default=1_000_000,
        help="with --nights those of the first snapshot, or of each increment; default: 1000000",
    )
    generate.add_argument("--seed", type=int, default=0, help="default: 0")
    generate.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help=".parquet or .csv; with --nights the directory of the drops, one directory per night",
    )
    nights = generate.add_argument_group(
        "people who change from night to night, as drops of mondrian_nightly; rates are shares per "
        "night"
    )
    nights.add_argument("--nights", type=_rows, metavar="N", help="how many drops")
    nights.add_argument(
        "--drops",
        choices=("increments", "snapshots"),
        help="increments: only who comes that night (default); snapshots: everybody who is there",
    )
    for rate, what, default in (
        ("leave", "people who leave (snapshots)", 0.05),
        ("come", "people who come, as a share of --rows (snapshots)", 0.05),
        ("back", "those who come that were there before", 0),
        ("move", "people who have another zip code", 0.02),
        ("change", "people who have another diagnosis", 0),
    ):
        help_text = f"{what}; default: {default:g}"
        nights.add_argument(f"--{rate}", type=float, metavar="RATE", help=help_text)
    nights.add_argument(
        "--spread", type=int, metavar="N", help="increments of --rows plus or minus up to N people"
    )
    nights.add_argument(
        "--first-day", type=_day, metavar="DAY", help="the first drop's; default: 2025-01-01"
    )
    generate.set_defaults(command=_generate)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        message = f"{text!r} is not a day; write it as 2025-01-31"
        raise argparse.ArgumentTypeError(message) from None


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
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of rows; give a whole number of at least 1"
        )
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
    _refuse_own_approval(job)
    if job.require_approval:
        _check_can_ask(options)
    with display(sys.stderr, options.quiet) as progress:
        report = pipeline.run(
            job,
            progress=_SIGNALS.watched(progress),
            approve=lambda report: _approve(options, report, progress),
        )
    if options.json:
        _write_json(report)
    elif not options.quiet:
        _write_report(report)
    return 0


def _allowed_job(options: argparse.Namespace, publishes: bool = True) -> Job:
    """The job, held to the policies; ``publishes``: whether rows or their conditions are shown.

    Raises JobError if it names anything that the environment does not allow, or asks too little.
    """
    from mondrian_ops import storage

    job = storage.load_job(options.job, options.overrides)
    return storage.check_job(job, publishes=publishes)


def _refuse_own_approval(job: Job) -> None:
    """Raise ApprovalError if a policy names approvers: a command does not know its user."""
    from mondrian_ops import storage

    required = storage.required(job)
    if job.may_ask and (required.four_eyes or required.approvers is not None):
        raise ApprovalError(
            f"approval: the policies {', '.join(map(repr, required.policies))} say who may approve "
            "the release, and a command line cannot tell users apart; run the job in Airflow"
        )


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
        return _user()
    from mondrian_ops.report import render_text

    screen.stop()
    with _SIGNALS.at_once():
        sys.stderr.write(render_text(report, shutil.get_terminal_size().columns))
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
    from mondrian_ops.report.number_format import number, percent, printable

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
    from mondrian_ops.report.number_format import number, printable

    release = storage.resolved(options.release)
    storage.check_location("release", release)
    job = storage.load_job(
        options.job, options.overrides
    )  # verify reads none of the files that it names
    verdict = pipeline.verify(job, release)
    if options.json:
        _write_json(verdict)
        return 0 if verdict["passed"] else _REFUSED
    _write(f"rows      {number(verdict['rows'])}")
    _write(f"classes   {number(verdict['equivalence_classes'])}")
    for key, reached in verdict["achieved"].items():
        _write(f"{key:<10}{number(reached)} reached, {number(getattr(job, key))} required")
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

    job = _allowed_job(options, publishes=False)
    grid = frontier.points(options.k, options.l)
    folder = frontier.folder_of(job, options.output)
    with display(sys.stderr, options.quiet) as progress:
        figures = frontier.trace(
            job,
            grid,
            rows=options.rows,
            rate=options.sample,
            progress=_SIGNALS.watched(progress),
        )
    written = frontier.write(figures, folder)
    if options.json:
        _write_json(figures)
    elif not options.quiet:
        _write(frontier_text(figures, shutil.get_terminal_size().columns))
        _write("\n" + "\n".join(written))
    return 0


def _sweep(options: argparse.Namespace) -> int:
    from datetime import timedelta
    from itertools import chain

    from mondrian_ops import series, storage

    keep = timedelta(hours=options.keep_hours)
    failed = False
    for folder in map(storage.resolved, options.folders):
        storage.check_location("folder", folder, exact=True)
        works = storage.sweep(folder, keep, lambda _: None if options.all else True)
        for swept in chain(works, series.sweep(folder, keep)):
            _write(str(swept))
            failed |= swept.state == "failed"
    return _REFUSED if failed else 0


def _refit(options: argparse.Namespace) -> int:
    from mondrian_ops import series

    series.ask_to_refit(options.output)
    _write("the next night of the series fits new boundaries")
    return 0


def _import(options: argparse.Namespace) -> int:
    from mondrian_ops import catalogue
    from mondrian_ops.catalogue import old_files

    if not (options.reports or options.ledger):
        raise JobError("import: name what to import: --reports, --ledger or both")
    opened, statuses = catalogue.current(), []
    if options.ledger:
        done = old_files.import_ledger(opened, options.ledger, options.population)
        statuses.append(_write_imported("ledger", done))
    if options.reports:
        done = old_files.import_reports(opened, options.reports)
        statuses.append(_write_imported("archive of reports", done))
    return max(statuses)


def _write_imported(what: str, done: Imported) -> int:
    from mondrian_ops.report.number_format import number

    _write(f"{what}: {number(done.imported)} imported, {number(done.known)} there already")
    for path in done.damaged:
        _fail(f"{path}: missing, damaged or of another key; it was not imported", _REFUSED)
    return _REFUSED if done.damaged else 0


def _schema(_options: argparse.Namespace) -> int:
    from mondrian_ops.core.json_schema import job_schema

    _write_json(job_schema())
    return 0


def _generate(options: argparse.Namespace) -> int:
    from mondrian_ops import datasets, storage

    output = storage.resolved(options.output)
    changes = _changes(options)
    if options.nights is None:
        datasets.generate(options.kind, rows=options.rows, seed=options.seed, output=output)
        _write(f"{options.rows:,} rows in {output}")
        return 0
    population = datasets.Population(options.rows, options.nights, options.seed, **changes)
    rows = datasets.generate_nights(population, output)
    _write(f"{rows:,} rows of {options.nights:,} nights in {output}")
    return 0


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    """What is given of how people change; raises InputError where nothing changes."""
    names = ("leave", "come", "back", "move", "change", "spread", "first_day")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.drops is not None:
        given["kind"] = options.drops
    if given and options.nights is None:
        name = next(iter(given)).replace("_", "-").replace("kind", "drops")
        raise InputError(f"{name}: give --nights as well; without it there is one file")
    if options.nights is not None and options.kind != "people":
        raise InputError(f"nights: only people change from night to night, not {options.kind}")
    if given.get("kind", "increments") == "increments":
        for name in ("leave", "come"):
            if name in given:
                raise InputError(
                    f"{name}: is for snapshots; add --drops snapshots, or leave it out: of an "
                    "increment nobody stays"
                )
    return given


def _init(options: argparse.Namespace) -> int:
    from mondrian_ops import storage

    for part, pattern in (("dags", "mondrian_*.py"), ("include", "*/*")):
        source = storage.shipped(part)
        for file in sorted(source.glob(pattern)):
            target = Path(options.folder, part, file.relative_to(source))
            _write(f"{target}{_copied(file, target)}")
    return 0


def _copied(file: Path, target: Path) -> str:
    """Copy a file, unless there is one; what to add to its line."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("xb") as written:
            written.write(file.read_bytes())
    except FileExistsError:
        return ": is there already, not changed"
    return ""


def _write_report(report: Mapping[str, Any]) -> None:
    from mondrian_ops import pipeline
    from mondrian_ops.report import HTML_NAME, render_text

    on_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if on_terminal else 80
    _write(render_text(report, width, colour=on_terminal and not os.environ.get("NO_COLOR")))
    output = report["job"].get("output")
    if output and not pipeline.is_held(report):
        _write(f"\nreport page     {output.rstrip('/')}/{HTML_NAME}")


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")


def _write_json(value: Any) -> None:
    _write(json.dumps(value, indent=1, ensure_ascii=False))


def _fail(message: str, status: int) -> int:
    from mondrian_ops.report.number_format import printable

    sys.stderr.write(f"mondrian_ops: {printable(message)}\n")
    return status


def _pipe_closed() -> int:
    # The reader has left (`| head`): nothing to report, and Python must not fail at shutdown.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _REFUSED


def _survive_odd_terminals() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


class _Signals:
    """Turns SIGINT and SIGTERM into exceptions, so that working files are removed on the way out.

    During a run they are raised between its steps: an exception that is raised while C code calls
    Python back would be lost. A second signal is raised at once.
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
        """Raise an exception for each signal until the block ends."""
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
        """Raise them at any point of the block, such as while it waits for an answer."""
        watched, self._watched = self._watched, False
        if self._received is not None:
            raise self._received
        try:
            yield
        finally:
            self._watched = watched

    def watched(self, progress: Progress) -> Progress:
        """``progress``, which from now on also raises a signal that came since its last call."""
        self._watched = True

        def step(phase: str, done: int, total: int) -> None:
            if self._received is not None:
                raise self._received
            progress(phase, done, total)

        return step


_SIGNALS = _Signals()
