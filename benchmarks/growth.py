"""What a row costs in time and memory by the number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks import required
from benchmarks.context import MILLION, Context
from benchmarks.estimate import Costs
from benchmarks.load import LINEAR, Measured, runs, started, tasks
from benchmarks.tables import Table, gib, seconds, times, verdict

_WORK = ("partition", "anonymize_fragment", "wrap_up")


def tables(context: Context) -> Iterator[Table]:
    """Every task by rows, and the growth with them."""
    few = started(context)
    measured = runs(context, ((rows, LINEAR) for rows in sorted(context.load_sizes)))
    if not measured:
        return
    yield tasks("Every task by rows: hands, 10 quasi-identifiers, k = 5, l = 2", measured, few)
    if len(measured) > 1:
        yield _growth(measured, few)


def _growth(linear: Sequence[Measured], few: Measured) -> Table:
    """What a row costs, by rising numbers of rows: the same, if time grows in proportion."""
    most = _of_a_row(linear[-1], few)
    lines = []
    for smaller, larger in zip([None, *linear], linear, strict=False):
        of_all = _of_a_row(larger, few) / most
        lines.append(
            (f"{larger.rows:,}", seconds(larger.seconds), _more(smaller, larger),
             *(_micro(_work_s(larger, phase, few) / larger.rows) for phase in _WORK),
             times(of_all), verdict(abs(of_all - 1) <= required.LINEAR),
             *(gib(larger.peak_mib(phase)) for phase in _WORK))
        )  # fmt: skip
    starts = ", ".join(f"{phase} {seconds(few.task(phase).cpu_s)}" for phase in _WORK)
    return Table(
        f"Growth with the rows, {LINEAR.fragments} fragments, local, scatter",
        ("rows", "run", "a million more", *(f"a row's {phase}" for phase in _WORK),
         "all, of the largest run's", "within 20 %", *(f"peak of {each}" for each in _WORK)),
        lines,
        note="A million more: seconds of the run for a million rows more than in the line above. "
        "A row's: CPU of all tasks less that of as many starts, divided by the rows; a start is a "
        f"task of a run of {few.rows:,} rows in {few.fragments} fragments: {starts}. That of "
        "`anonymize_fragment` is the median of all, those of the others were measured once. With "
        "a million rows starts are nearly all there is, and what is left of them by chance "
        "counts.",
    )  # fmt: skip


def _more(smaller: Measured | None, larger: Measured) -> str:
    if smaller is None:
        return ""
    return seconds((larger.seconds - smaller.seconds) / (larger.rows - smaller.rows) * MILLION)


def _micro(value: float) -> str:
    return f"{value * 1e6:.2f} µs"


def _of_a_row(measured: Measured, few: Measured) -> float:
    """CPU seconds of all phases for a row, beyond those of starting the tasks."""
    return sum(_work_s(measured, phase, few) for phase in _WORK) / measured.rows


def _work_s(measured: Measured, phase: str, few: Measured) -> float:
    """CPU seconds of a phase beyond those of starting its tasks; never nothing."""
    begun = len(measured.tasks[phase]) * few.task(phase).cpu_s
    return max(measured.cpu_s(phase) - begun, 0.001)


def costs_of(measured: Measured, few: Measured) -> Costs:
    """What a row costs in a run, the start of its tasks, those of ``few`` rows, left out."""
    rows = measured.rows
    largest = measured.rows / measured.fragments

    def of_rows(phase: str) -> float:
        return max(measured.peak_mib(phase) - few.peak_mib(phase), 0.0) * 2**20

    return Costs(
        rows=rows,
        partition_s=_work_s(measured, "partition", few) / rows,
        anonymize_s=_work_s(measured, "anonymize_fragment", few) / rows,
        wrap_up_s=_work_s(measured, "wrap_up", few) / rows,
        partition_start_mib=few.peak_mib("partition"),
        anonymize_start_mib=few.peak_mib("anonymize_fragment"),
        wrap_up_mib=measured.peak_mib("wrap_up"),
        anonymize_bytes=of_rows("anonymize_fragment") / largest,
        source_bytes=measured.source / rows,
        scattered_bytes=(measured.disk - measured.published) / rows,
        published_bytes=measured.published / rows,
        spilled_bytes=sum(run.written_mib for run in measured.tasks["wrap_up"]) * 2**20 / rows,
    )
