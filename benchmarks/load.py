"""A hundred million rows: time and peak memory of every task, by engine, retrieval and fragments.

Each task of a run is a process of its own, as under Airflow, and two fragments are anonymized at
once, as two slots would. Airflow itself is left out: part `fragments` measures what it adds.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import required
from benchmarks.context import CARDS, MILLION, Context
from benchmarks.measure import Run, process, python
from benchmarks.spark_memory import Peaks
from benchmarks.tables import Table, gib, seconds, verdict

SIZES = tuple(each * MILLION for each in (1, 10, 25, 50, 100))
FEW = 10_000  # rows, that a task has little to do with beside its start
SLOTS = 2
CUT = "gain"  # what `auto` takes for so many rows


@dataclass(frozen=True)
class Setting:
    """How a run gets its work done. Some sources are clustered: see :func:`_clustered`."""

    engine: str
    retrieval: str
    fragments: int | str
    clustered: bool = False

    @property
    def name(self) -> str:
        """As the option `--load-runs` takes it."""
        return f"{self.engine}-{self.retrieval}-{self.fragments}{'-clustered' * self.clustered}"

    def job(self, source: Path, output: Path) -> dict[str, Any]:
        """The job of the paper's experiments: k = 5, l = 2."""
        described: dict[str, Any] = {
            "input": str(source),
            "output": str(output),
            "k": 5,
            "l": 2,
            "quasi_identifiers": list(CARDS),
            "sensitive": ["hand"],
            "cut": CUT,
            "engine": self.engine,
            "partitioning": {"fragments": self.fragments},
        }
        if self.retrieval == "shuffle":
            return {**described, "spark": {"shape": "application"}}
        return {**described, "retrieval": self.retrieval}


LINEAR = Setting("local", "scatter", 32)
WARMING = replace(LINEAR, fragments=2)
# The most telling ones first: a run may be cut short.
SETTINGS = (
    LINEAR,
    Setting("local", "scatter", 256),
    Setting("spark", "scatter", 128),
    Setting("local", "pushdown", 32, clustered=True),
    Setting("local", "pushdown", 256, clustered=True),
    Setting("spark", "pushdown", 32, clustered=True),
    Setting("spark", "shuffle", 32),
    Setting("local", "scatter", 128),
    Setting("local", "scatter", 64),
)
# Pushdown without an order to make use of, which costs too much where there are more rows.
SMALL_SETTINGS = (LINEAR, Setting("local", "pushdown", 32))
SMALL = 10 * MILLION
NAMES = tuple(dict.fromkeys(each.name for each in (*SETTINGS, *SMALL_SETTINGS)))


@dataclass(frozen=True)
class Measured:
    """One run: its processes by phase, and what it held while it ran.

    ``seconds``: from the start of the first task to the end of the last. ``fragments``: as there
    came to be. ``reads``: how often the mapped tasks read the source, all together. ``disk``:
    bytes of the working files, the unpublished release among them, when they were most.
    ``shuffled``: bytes in Spark's local folders then. ``source``, ``published``: bytes of the file
    that is read, of the release. ``spark``: peak MiB by kind of process.
    """

    setting: Setting
    rows: int
    fragments: int
    seconds: float
    reads: float
    tasks: Mapping[str, Sequence[Run]]
    disk: int
    shuffled: int
    source: int
    published: int
    spark: Mapping[str, float]

    def cpu_s(self, phase: str) -> float:
        """CPU seconds of a phase's tasks."""
        return sum(run.cpu_s for run in self.tasks[phase])

    def peak_mib(self, phase: str) -> float:
        """The largest task of a phase."""
        return max(run.peak_mib for run in self.tasks[phase])

    def task(self, phase: str) -> Run:
        """What a task of a phase takes, the median of all; its peak is that of the largest."""
        runs = self.tasks[phase]
        return Run(
            statistics.median(run.seconds for run in runs),
            self.peak_mib(phase),
            statistics.median(run.cpu_s for run in runs),
        )

    def spent(self, phase: str) -> float:
        """Seconds of a phase's tasks, one after the other."""
        return sum(run.seconds for run in self.tasks[phase])

    def line(self) -> tuple[str, ...]:
        """As it stands in the table."""
        of_fragments = self.tasks["anonymize_fragment"]
        return (
            f"{self.rows:,}", self.setting.engine, _retrieval(self.setting), str(self.fragments),
            f"{2 + self.reads:.1f} ×",
            seconds(self.spent("partition")), gib(self.peak_mib("partition")),
            seconds(self.spent("anonymize_fragment")),
            seconds(max(run.seconds for run in of_fragments)),
            gib(self.peak_mib("anonymize_fragment")),
            seconds(self.spent("wrap_up")), gib(self.peak_mib("wrap_up")),
            seconds(self.spent("clean_up")), seconds(self.seconds),
            gib((self.disk + self.shuffled) / 2**20),
            verdict(max(map(self.peak_mib, self.tasks)) <= required.PEAK_MIB),
        )  # fmt: skip


_HEAD = (
    "rows", "engine", "retrieval", "fragments", "source read", "partition", "peak",
    "anonymize, all", "longest", "largest peak", "wrap_up", "peak", "clean_up",
    "run, two at once", "working disk", "≤ 4 GiB",
)  # fmt: skip


def _retrieval(setting: Setting) -> str:
    return setting.retrieval + (", clustered" if setting.clustered else "")


def tables(context: Context) -> Iterator[Table]:
    """Every task by setting, and what Spark's processes held."""
    few = started(context)
    measured = runs(context, _chosen(context))
    if not measured:
        return
    title = "Every task of a run: hands, 10 quasi-identifiers, k = 5, l = 2"
    yield tasks(title, measured, few, _NOTE)
    if any(each.spark for each in measured):
        yield _spark(measured)


def _chosen(context: Context) -> Iterator[tuple[int, Setting]]:
    """The largest size in every setting, small ones where rows are read by each fragment."""
    largest = max(context.load_sizes)
    for rows in sorted(context.load_sizes, reverse=True):
        settings = SETTINGS if rows == largest else SMALL_SETTINGS if rows <= SMALL else ()
        for setting in settings:
            if not context.load_runs or setting.name in context.load_runs:
                yield rows, setting


def runs(context: Context, wanted: Iterable[tuple[int, Setting]]) -> list[Measured]:
    """Runs in turn, until the time that they may take is over, or somebody interrupts them."""
    done: list[Measured] = []
    latest = time.monotonic() + 60 * context.load_minutes
    try:
        for rows, setting in wanted:
            if time.monotonic() > latest:
                context.say(f"--load-minutes are over: {rows:,} rows, {setting.name} left out")
                continue
            done.append(measured(context, rows, setting))
            context.say(" | ".join((*done[-1].line(), f"{_spark_peaks(done[-1])}")))
    except KeyboardInterrupt:
        context.say("interrupted: the tables are of what was measured so far")
    return done


def started(context: Context) -> Measured:
    """A run of few rows, in as many fragments: what its tasks take is hardly of its rows.

    They import, load kernels, plan, and open files. Kernels were compiled and libraries read
    before, which no task is charged for.
    """
    few = min(FEW, *context.load_sizes)
    measured(context, few, WARMING)
    return measured(context, few, LINEAR)


def measured(
    context: Context,
    rows: int,
    setting: Setting,
    more: Mapping[str, str] | None = None,
    source: Path | None = None,
) -> Measured:
    """A run; with ``more`` in the environment, all fragments once more in one process.

    Each task goes to the file of scratch ``tasks.jsonl`` as it ends; working files stay on failure.
    """
    if source is None:
        source = _clustered(context, rows) if setting.clustered else context.hands(rows)
    context.say(f"load: {rows:,} rows, {setting.name}")
    folder = context.scratch / "load"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with _engine(setting, folder) as (environment, peaks):
        run = _Run(setting, rows, source, folder, {**environment, **(more or {})})
        done = run.measured(peaks, context.say, in_one=more is not None)
    shutil.rmtree(folder)
    return done


def _clustered(context: Context, rows: int) -> Path:
    """The hands in the order of the halves of all their columns.

    Rows that are alike lie together, as in a table that is kept in a Z-order: each fragment lies
    in few row groups, and pushdown reads little else.
    """
    path = context.scratch / f"poker-{rows}-clustered.parquet"
    if not path.exists():
        halves = [f"{name} > {2 if name.startswith('s') else 7}" for name in sorted(CARDS)]
        command = ("-m", "benchmarks.duckdb_cluster", str(context.hands(rows)), str(path))
        process(python(*command, *halves))
    return path


@contextmanager
def _engine(setting: Setting, folder: Path) -> Iterator[tuple[dict[str, str], Peaks]]:
    """What its tasks need in their environment, and what watches the engine's own processes."""
    if setting.engine == "local":
        yield {}, Peaks()
        return
    from servers.spark import SparkCluster

    local = folder / "spark-local"
    with (
        SparkCluster(folder / "spark", conf={"spark.local.dir": str(local)}) as cluster,
        Peaks().watched() as peaks,
    ):
        yield {"SPARK_REMOTE": cluster.remote}, peaks


class _Run:
    """One run in a folder of its own."""

    def __init__(
        self,
        setting: Setting,
        rows: int,
        source: Path,
        folder: Path,
        environment: Mapping[str, str],
    ) -> None:
        self._setting = setting
        self._rows = rows
        self._source = source
        self._folder = folder
        self._environment = environment
        self._output = folder / "release"
        self._job = folder / "job.json"
        self._job.write_text(json.dumps(setting.job(source, self._output)), "utf-8")

    def measured(self, peaks: Peaks, say: Callable[[str], None], in_one: bool = False) -> Measured:
        """All its tasks; the mapped ones two at once, as slots become free.

        ``in_one``: all fragments in one process too, on a copy of the working files.
        """
        work = self._folder / ".release.mondrian_ops-benchmark"
        began = time.perf_counter()
        partition, fragments = self._task("partition", work)
        say(f"partition: {seconds(partition.seconds)}, {gib(partition.peak_mib)}")
        working = [self._held(work)]
        whole = [self._all_fragments(work)] if in_one else []
        with ThreadPoolExecutor(SLOTS) as slots:
            answers = list(
                slots.map(
                    lambda each: self._task(
                        "anonymize_fragment", work, number=each["id"], fragment=each
                    ),
                    fragments,
                )
            )
        largest = max(run.peak_mib for run, _ in answers)
        say(f"{len(answers)} × anonymize_fragment: at most {gib(largest)}")
        working.append(self._held(work))
        summaries = [summary for _, summaries in answers for summary in summaries]
        wrap_up, counted = self._task("wrap_up", work, summaries=summaries)
        took = time.perf_counter() - began
        _, reads = self._task("reads", work, fragments=fragments)
        clean_up, _ = self._task("clean_up", work)
        if counted["rows"] != {"input": self._rows, "published": self._rows, "suppressed": 0}:
            raise RuntimeError(f"{self._setting.name}: {counted['rows']} of {self._rows} rows")
        tasks = {
            "partition": [partition],
            "anonymize_fragment": [run for run, _ in answers],
            **({"anonymize_all": whole} if whole else {}),
            "wrap_up": [wrap_up],
            "clean_up": [clean_up],
        }
        disk, shuffled = max(working, key=sum)
        return Measured(
            self._setting, self._rows, len(summaries), took + clean_up.seconds, reads, tasks,
            disk, shuffled, _bytes(self._source), _bytes(self._output), dict(peaks.mib),
        )  # fmt: skip

    def _all_fragments(self, work: Path) -> Run:
        copy = work.with_name(f"{work.name}-copy")
        shutil.copytree(work, copy)
        run, _ = self._task("anonymize_all", copy)
        shutil.rmtree(copy)
        return run

    def _task(self, phase: str, work: Path, number: int = 0, **more: Any) -> tuple[Run, Any]:
        task = {"phase": phase, "job": str(self._job), "work": str(work), **more}
        run, answer = _task(self._folder, f"{phase}-{number}", task, self._environment)
        line = {"rows": self._rows, "run": self._setting.name, "phase": phase, **asdict(run)}
        with self._folder.with_name("tasks.jsonl").open("a", encoding="utf-8") as told:
            told.write(json.dumps(line) + "\n")
        return run, answer

    def _held(self, work: Path) -> tuple[int, int]:
        return _bytes(work), _bytes(self._folder / "spark-local")


def _task(
    folder: Path, name: str, task: dict[str, Any], environment: Mapping[str, str] | None = None
) -> tuple[Run, Any]:
    answer, file = folder / f"{name}.answer", folder / f"{name}.json"
    file.write_text(json.dumps({**task, "answer": str(answer)}), "utf-8")
    run = process(python("-m", "benchmarks.task", str(file)), environment)
    return run, json.loads(answer.read_text("utf-8"))


def _bytes(folder: Path) -> int:
    """Of a file, or of the files below a folder; some may vanish meanwhile."""
    if folder.is_file():
        return folder.stat().st_size
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue
    return size


def tasks(title: str, measured: Sequence[Measured], few: Measured, more: str = "") -> Table:
    """What each task of the runs took, beside those of a run of few rows."""
    start = few.task("anonymize_fragment")
    return Table(
        title,
        _HEAD,
        [run.line() for run in measured],
        note="Each task is a process of its own, without Airflow; of each `anonymize_fragment` "
        f"{seconds(start.seconds)} and {gib(start.peak_mib)} are what a fragment of about "
        f"{few.rows // few.fragments:,} rows takes. Of these tasks: the sum of all, the "
        f"longest and the largest; {SLOTS} at a time on as many cores. cut: {CUT}, which is what "
        "`auto` takes for so many rows. Source read: twice in `partition`, and by the mapped "
        "tasks as the statistics of the file let them. Peaks are of resident memory, files that "
        "are mapped among them. Working disk: rows scattered or shuffled and the unpublished "
        f"release, at the end of the two phases whichever is more.{more}",
    )


_NOTE = (
    " With Spark, peaks are of the processes that Airflow would start: its own are told below. "
    "Clustered: the file lies in the order of the halves of its columns, so that pushdown skips "
    "row groups."
)


def _spark(measured: Sequence[Measured]) -> Table:
    kinds = sorted({kind for run in measured for kind in run.spark})
    return Table(
        "What Spark's processes held at most",
        ("rows, retrieval, fragments", *kinds),
        [
            (f"{run.rows:,}, {_retrieval(run.setting)}, {run.fragments}",
             *(gib(run.spark.get(kind, 0.0)) for kind in kinds))
            for run in measured
            if run.spark
        ],
        note="A standalone cluster on this machine: two workers of one core and 2 GB, a Spark "
        "Connect server as the driver. Each the largest of its kind; resident memory.",
    )  # fmt: skip


def _spark_peaks(measured: Measured) -> str:
    return ", ".join(f"{kind} {gib(peak)}" for kind, peak in sorted(measured.spark.items()))
