"""The peak memory of every task by the number of cores that it sees, of which it may use two.

The cores are shown by a preloaded library, so that Python, NumPy and Arrow start as many threads
as on such a machine. Malloc gets as many arenas as it would have there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks import required
from benchmarks.context import MILLION, Context
from benchmarks.load import LINEAR, Measured, Setting, measured
from benchmarks.measure import ROOT, process
from benchmarks.tables import Table, mib, verdict

FEW, MANY = 2, 64
SETTINGS = (LINEAR, Setting("local", "pushdown", 32, clustered=True))
_PHASES = ("partition", "anonymize_fragment", "anonymize_all", "wrap_up")
_ARENAS = 8  # of malloc, for each core


def tables(context: Context) -> Iterator[Table]:
    """Each phase with few and with many cores to be seen, by rows and setting."""
    shim = _compiled(context.scratch)
    lines = []
    for rows in sorted({min(10 * MILLION, *context.load_sizes), max(context.load_sizes)}):
        for setting in SETTINGS:
            if context.load_runs and setting.name not in context.load_runs:
                continue
            few, many = (
                measured(context, rows, setting, _seeing(shim, cores)) for cores in (FEW, MANY)
            )
            lines += [_line(few, many, phase) for phase in _PHASES]
    yield Table(
        f"Peak memory by visible cores: hands, {LINEAR.fragments} fragments, k = 5, l = 2",
        ("rows, retrieval", "task", f"{FEW} cores", f"{MANY} cores", "times", "within 10 %"),
        lines,
        note="anonymize_fragment: the largest of all tasks. anonymize_all: all fragments in one "
        "process, as the command line does.",
    )


def _line(few: Measured, many: Measured, phase: str) -> tuple[str, ...]:
    peaks = few.peak_mib(phase), many.peak_mib(phase)
    times = peaks[1] / peaks[0]
    return (
        f"{few.rows:,}, {few.setting.retrieval}", phase, *map(mib, peaks), f"{times:.2f} ×",
        verdict(abs(times - 1) <= required.VISIBLE_CORES),
    )  # fmt: skip


def _compiled(folder: Path) -> Path:
    from mondrian_ops.native.build import compiler

    shim = folder / "visible_cores.so"
    source = str(ROOT / "benchmarks" / "visible_cores.c")
    process([*compiler(), "-shared", "-fPIC", "-O1", "-o", str(shim), source, "-ldl"])
    return shim


def _seeing(shim: Path, cores: int) -> Mapping[str, str]:
    return {
        "LD_PRELOAD": str(shim),
        "VISIBLE_CORES": str(cores),
        "GLIBC_TUNABLES": f"glibc.malloc.arena_max={_ARENAS * cores}",
    }
