"""Cutting alone, on codes; and the whole way, from a file to a checked release.

Where another checkout is named (``--beside``), what it takes is measured in turn with this one's.
"""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from functools import partial
from itertools import pairwise

from benchmarks import required
from benchmarks.context import CARDS, MILLION, Context
from benchmarks.measure import HERE, Checkout, Run, alternate, process, python
from benchmarks.tables import Table, mib, seconds, times, verdict

_IMPORTS = python("-c", "import numpy, pyarrow, pyarrow.parquet, pyarrow.compute")


def cutting(context: Context) -> Iterator[Table]:
    """Median, gain, lookahead and auto on coded rows, on one core and on two; and how they grow."""
    policies = {"median": "median", "gain": "gain", "lookahead": "gain,40"}
    with_auto = {**policies, "auto": _auto(context)}
    rows = context.rows
    contenders = {"one": (HERE, 1, with_auto), "two": (HERE, 2, with_auto)}
    if context.beside:
        contenders["beside"] = (context.beside, 1, policies)
    taken = {
        size: _alternated(context, size, contenders if size == rows else {"one": contenders["one"]})
        for size in (rows // 10, rows, 10 * rows)
    }
    one, two = taken[rows]["one"], taken[rows]["two"]
    yield Table(
        f"Cutting {rows:,} × 10, k = 5, l = 2",
        ("cut", "required", "one core", "", "two cores", "of one core's, ≤ 0.60 ×", "",
         f"{rows // 10:,} rows", f"{10 * rows:,} rows", f"of {rows:,}"),
        [
            (cut, seconds(required.CUT_S[cut]), seconds(one[cut]),
             context.verdict(one[cut] <= required.CUT_S[cut]),
             seconds(two[cut]), times(two[cut] / one[cut]),
             context.verdict(two[cut] <= required.TWO_CORES * one[cut]),
             seconds(taken[rows // 10]["one"][cut]), seconds(taken[10 * rows]["one"][cut]),
             times(taken[10 * rows]["one"][cut] / one[cut]))
            for cut in one
        ],
        note=f"Coded rows in memory to equivalence classes; median of {context.rounds} runs, each "
        "a process. Lookahead looks ahead once, in nodes of up to 8 k rows; auto has the default "
        "budget of a million rows in all columns. Tenfold rows are to take at most "
        f"{times(required.TENFOLD)} with `median`. The published reference program takes "
        f"{required.REFERENCE_CUT_S:.0f} s for the million.",
    )  # fmt: skip
    if context.beside:
        beside = taken[rows]["beside"]
        yield Table(
            f"Cutting {rows:,} × 10, one core, beside {context.beside.name}",
            ("cut", "here", context.beside.name, "share of it", "required"),
            [
                (cut, seconds(one[cut]), seconds(beside[cut]), times(one[cut] / beside[cut]),
                 f"≤ {times(required.CUT_SHARE[cut])}")
                for cut in beside
            ],
            note="In turn, in one run; medians.",
        )  # fmt: skip


def _auto(context: Context) -> str:
    """What the pipeline makes of `cut: auto` for that many rows."""
    from mondrian_ops.cut.cut_policy import policy_of

    job = context.job(context.rows, cut="auto", partitioning={"fragments": 1})
    return ",".join(map(str, astuple(policy_of(context.report(job)["cut"]))))


def _alternated(
    context: Context, rows: int, contenders: Mapping[str, tuple[Checkout, int, Mapping[str, str]]]
) -> dict[str, dict[str, float]]:
    """Median seconds of each contender's policies, all contenders in turn."""
    runs: dict[str, dict[str, list[float]]] = {}
    for turn in range(context.rounds if rows <= MILLION else 1):
        for name, (checkout, cores, policies) in contenders.items():
            context.say(f"cutting {rows:,} rows: {name}, round {turn + 1}")
            options_of = [f"{cut}={options}" for cut, options in policies.items()]
            path = context.job_file(context.job(rows), checkout=checkout)
            program = str(checkout.root / "benchmarks" / "cutting.py")
            printed = checkout.output(program, str(path), "1", str(cores), *options_of)
            for cut, took in json.loads(printed).items():
                runs.setdefault(name, {}).setdefault(cut, []).extend(took)
    return {
        name: {cut: statistics.median(took) for cut, took in of.items()}
        for name, of in runs.items()
    }


def whole(context: Context) -> Iterator[Table]:
    """From a file to a checked and published release, beside DuckDB, whole processes in turn."""
    rows_of = {size: _beside_duckdb(context, size) for size in context.sizes}
    yield Table(
        "File to checked and published release, whole process",
        ("rows", "DuckDB", "median", "× DuckDB", "gain", "× DuckDB", "required", "", "peak memory"),
        [
            (f"{size:,}", seconds(runs["duckdb"].seconds),
             seconds(runs["median"].seconds), times(_ratio(runs, "median")),
             seconds(runs["gain"].seconds), times(_ratio(runs, "gain")),
             *_required(size, runs),
             mib(max(runs["median"].peak_mib, runs["gain"].peak_mib)))
            for size, runs in rows_of.items()
        ],
        note="DuckDB reads the same Parquet file, sorts it by the 10 quasi-identifiers and writes "
        "it, also as a process of its own. Contenders take turns; medians of "
        f"{2 * context.rounds + 1} runs, of {context.rounds} from 10 million rows on.",
    )  # fmt: skip
    smallest = min(rows_of)
    yield _beside_imports(smallest, rows_of[smallest])
    if context.beside:
        yield Table(
            f"The same beside {context.beside.name}, median",
            ("rows", "here", context.beside.name, "share of it"),
            [
                (f"{size:,}", seconds(runs["median"].seconds), seconds(runs["beside"].seconds),
                 times(runs["median"].seconds / runs["beside"].seconds))
                for size, runs in rows_of.items()
            ],
            note="In turn with the contenders above.",
        )  # fmt: skip
    if len(rows_of) > 1:
        yield _growth({size: runs["median"] for size, runs in rows_of.items()})


def _beside_imports(size: int, runs: Mapping[str, Run]) -> Table:
    """A tiny job beside a process that only imports what every job needs."""
    job, imports = runs["median"], runs["imports"]
    wall, cpu = job.seconds / imports.seconds, job.cpu_s / imports.cpu_s
    most = required.TINY_TIMES_IMPORTS
    return Table(
        f"A job of {size:,} rows, whole process, beside the imports that it needs",
        ("", "imports", "median", "× imports", "required", ""),
        [
            ("clock", seconds(imports.seconds), seconds(job.seconds), times(wall),
             f"≤ {times(most)}", verdict(wall <= most)),
            ("CPU", seconds(imports.cpu_s), seconds(job.cpu_s), times(cpu),
             f"≤ {times(most)}", verdict(cpu <= most)),
        ],
        note="Imports: a process that imports numpy and pyarrow with its parquet and compute "
        "modules, and ends. In turn with the contenders above; medians.",
    )  # fmt: skip


def different_values(context: Context) -> Iterator[Table]:
    """As many different texts as rows in the sensitive column: does the work follow the rows?"""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    source, lines = context.scratch / "texts.parquet", []
    for rows in (context.rows, 4 * context.rows):
        drawn = np.random.default_rng(1)
        columns = {"age": drawn.integers(0, 90, rows), "zip": drawn.integers(0, 1000, rows)}
        texts = [f"text {at * 2654435761 % 2**40:x}" for at in range(rows)]
        pq.write_table(pa.table({**columns, "text": texts}), source)
        job = {"input": str(source), "output": str(context.scratch / "release"), "replace": "any"}
        job |= {"k": 5, "l": 2, "quasi_identifiers": [*columns], "sensitive": ["text"]}
        run = context.run(job)
        lines.append((f"{rows:,}", seconds(run.seconds), seconds(run.cpu_s), mib(run.peak_mib)))
        context.say(" | ".join(lines[-1]))
    source.unlink()
    yield Table(
        "A sensitive column of different texts: file to checked and published release",
        ("rows and texts", "takes", "CPU", "peak memory"),
        lines,
        note="k = 5, l = 2, two quasi-identifiers; a process of its own each.",
    )


def _required(size: int, runs: dict[str, Run]) -> tuple[str, str]:
    if size >= MILLION:
        met = _ratio(runs, "median") <= required.TIMES_DUCKDB
        return f"≤ {times(required.TIMES_DUCKDB)}", verdict(met)
    if size == required.TINY_ROWS:
        met = runs["median"].seconds <= required.TINY_S
        return f"≤ {seconds(required.TINY_S)}", verdict(met)
    return "", ""


def _beside_duckdb(context: Context, size: int) -> dict[str, Run]:
    context.say(f"file to release, {size:,} rows, beside DuckDB")
    source = context.hands(size)
    target = context.scratch / "sorted.parquet"
    sort = python("-m", "benchmarks.duckdb_sort", str(source), str(target), *CARDS)
    jobs = {cut: context.job(size, cut=cut) for cut in ("median", "gain")}
    contenders = {"duckdb": partial(process, sort), "imports": partial(process, _IMPORTS)}
    contenders |= {cut: partial(context.run, job) for cut, job in jobs.items()}
    if context.beside:
        contenders["beside"] = partial(context.run, jobs["median"], checkout=context.beside)
    runs = alternate(contenders, context.rounds * (1 if size > MILLION else 2) + (size <= MILLION))
    target.unlink()
    shutil.rmtree(context.scratch / "release", ignore_errors=True)
    return runs


def _ratio(runs: dict[str, Run], cut: str) -> float:
    return runs[cut].seconds / runs["duckdb"].seconds


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
