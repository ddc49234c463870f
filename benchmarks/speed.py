"""Cutting alone, on codes and on one core; and the whole way, from a file to a checked release."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from benchmarks import required
from benchmarks.context import CARDS, MILLION, Context
from benchmarks.measure import Run, alternate, median_seconds, process, python
from benchmarks.tables import Table, mib, seconds, times, verdict

if TYPE_CHECKING:
    from mondrian_ops.algorithms.mondrian import CodedRows, Cut


def cutting(context: Context) -> Iterator[Table]:
    """Median, gain, lookahead and auto on coded rows, and how they grow."""
    from mondrian_ops.algorithms.mondrian import Cut

    rows = context.rows
    policies = {
        "median": Cut("median"),
        "gain": Cut("gain"),
        "lookahead": Cut("gain", 8 * 5),
        "auto": _auto(context),
    }
    tenth, full, tenfold = (
        {cut: _cut_seconds(context, size, policy) for cut, policy in policies.items()}
        for size in (rows // 10, rows, 10 * rows)
    )
    yield Table(
        f"Cutting {rows:,} × 10, k = 5, l = 2, one core",
        ("cut", "required", "here", "", f"{rows // 10:,} rows", f"to {rows:,}",
         f"{10 * rows:,} rows", f"from {rows:,}"),
        [
            (cut, seconds(required.CUT_S[cut]), seconds(found),
             context.verdict(found <= required.CUT_S[cut]),
             seconds(tenth[cut]), times(found / tenth[cut]),
             seconds(tenfold[cut]), times(tenfold[cut] / found))
            for cut, found in full.items()
        ],
        note="Coded rows in memory to equivalence classes; median of "
        f"{context.rounds} runs. Lookahead looks ahead once, in nodes of up to 8 k rows; "
        "auto has the default budget of a million rows in all columns. The published "
        "reference program takes "
        f"{required.REFERENCE_CUT_S:.0f} s for the million.",
    )  # fmt: skip


def _auto(context: Context) -> Cut:
    """What the pipeline makes of `cut: auto` for that many rows."""
    from mondrian_ops.algorithms.cut_choice import cut_of

    job = context.job(context.rows, cut="auto", partitioning={"fragments": 1})
    shutil.rmtree(job["output"], ignore_errors=True)
    return cut_of(context.report(job)["cut"])


def _cut_seconds(context: Context, rows: int, policy: Cut) -> float:
    from mondrian_ops.algorithms import mondrian

    coded = _coded(context.job(rows), policy)
    context.say(f"cutting {rows:,} rows: {policy}")
    return median_seconds(partial(mondrian.anonymize, coded, policy), context.rounds)


def _coded(described: dict[str, Any], policy: Cut) -> CodedRows:
    import pyarrow.parquet as pq

    from mondrian_ops.algorithms.anonymizer import Anonymizer
    from mondrian_ops.core.job import Job
    from mondrian_ops.core.survey import Surveyor

    job = Job.from_dict(described)
    table = pq.read_table(described["input"])
    surveyor = Surveyor(job, table.schema, {})
    surveyor.add(table)
    return Anonymizer(job, surveyor.finish(), {}, policy).encode(table)


def whole(context: Context) -> Iterator[Table]:
    """From a file to a checked and published release, beside DuckDB, whole processes in turn."""
    rows_of = {size: _beside_duckdb(context, size) for size in context.sizes}
    yield Table(
        "File to checked and published release, whole process",
        ("rows", "DuckDB", "median", "× DuckDB", "gain", "× DuckDB", "required", "", "peak memory"),
        [
            (f"{size:,}", seconds(found["duckdb"].seconds),
             seconds(found["median"].seconds), times(_ratio(found, "median")),
             seconds(found["gain"].seconds), times(_ratio(found, "gain")),
             f"≤ {times(required.TIMES_DUCKDB)}" if size == MILLION else "",
             verdict(_ratio(found, "median") <= required.TIMES_DUCKDB) if size == MILLION else "",
             mib(max(found["median"].peak_mib, found["gain"].peak_mib)))
            for size, found in rows_of.items()
        ],
        note="DuckDB reads the same Parquet file, sorts it by the 10 quasi-identifiers and writes "
        "it, also as a process of its own. Contenders take turns; medians.",
    )  # fmt: skip
    if len(rows_of) > 1:
        yield _growth({size: found["median"] for size, found in rows_of.items()})


def _beside_duckdb(context: Context, size: int) -> dict[str, Run]:
    context.say(f"file to release, {size:,} rows, beside DuckDB")
    source = context.hands(size)
    target = context.scratch / "sorted.parquet"
    sort = python("-m", "benchmarks.duckdb_sort", str(source), str(target), *CARDS)
    fragments = {"fragments": max(2, min(8, size // MILLION))}
    jobs = {cut: context.job(size, cut=cut, partitioning=fragments) for cut in ("median", "gain")}
    contenders = {"duckdb": partial(process, sort)}
    contenders |= {cut: partial(context.run, job) for cut, job in jobs.items()}
    found = alternate(contenders, context.rounds if size <= MILLION else 1)
    target.unlink()
    shutil.rmtree(context.scratch / "release", ignore_errors=True)
    return found


def _ratio(found: dict[str, Run], cut: str) -> float:
    return found[cut].seconds / found["duckdb"].seconds


def _growth(runs: dict[int, Run]) -> Table:
    sizes = sorted(runs)
    rows = []
    for smaller, larger in pairwise(sizes):
        grown = runs[larger].seconds / runs[smaller].seconds
        linear = larger / smaller
        within = grown <= linear * (1 + required.LINEAR)
        rows.append((f"{smaller:,} → {larger:,}", times(grown), times(linear), verdict(within)))
    return Table(
        "Growth of the whole process with the rows (median)",
        ("rows", "time", "rows", "at most linear + 20 %"),
        rows,
        note="Small sizes are mostly start-up. Peak memory of any task is to stay below "
        f"{mib(required.PEAK_MIB)}.",
    )
