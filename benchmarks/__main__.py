"""`python -m benchmarks`: measure, print, and keep the figures.

Prints each table when it is ready. Every run leaves `results.md` and `results.json` in
`benchmarks/results/`, which git ignores; a full one, or one with `--renew`, also puts its parts
into `benchmarks/RESULTS.md`, which is committed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import (
    airflow_dag,
    algorithms,
    billion,
    checking,
    cores,
    di_mondrian,
    growth,
    iceberg,
    inspection,
    load,
    pages,
    publishing,
    quality,
    results,
    samarati,
    scale_out,
    series,
    small_files,
    speed,
    tds,
    truth,
    use,
)
from benchmarks.context import Context
from benchmarks.measure import HERE, ROOT, Checkout, machine
from benchmarks.tables import Table

PARTS: dict[str, Callable[[Context], Iterator[Table]]] = {
    "speed": speed.cutting,
    "whole": speed.whole,
    "values": speed.different_values,
    "truth": truth.tables,
    "loss": quality.losses,
    "distribution": quality.distribution,
    "adult": quality.on_adult,
    "algorithms": algorithms.compared,
    "samarati": samarati.tables,
    "di_mondrian": di_mondrian.compared,
    "tds": tds.figures,
    "use": use.tables,
    "inspect": inspection.tables,
    "series": series.tables,
    "dag": airflow_dag.beside_empty_dag,
    "pages": pages.listed,
    "publish": publishing.tables,
    "small_files": small_files.tables,
    "iceberg": iceberg.tables,
    "spark": scale_out.spark_engine,
    "fragments": scale_out.figure_10,
    "growth": growth.tables,
    "load": load.tables,
    "check": checking.tables,
    "billion": billion.tables,
    "cores": cores.tables,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else every process compiles what it imports
    parts = options.only or [name for name in PARTS if name not in _ASKED_FOR]
    scratch = Path(tempfile.mkdtemp(prefix="mondrian_ops-bench-", dir=options.scratch))
    context = Context(
        scratch=scratch,
        rows=options.rows or (20_000 if options.quick else 1_000_000),
        sizes=tuple(options.sizes or ((5_000,) if options.quick else _SIZES)),
        adult_sizes=tuple(options.adult_sizes or ((5_000,) if options.quick else _ADULT_SIZES)),
        rounds=1 if options.quick else options.rounds,
        seeds=1 if options.quick else options.seeds,
        data=options.data,
        load_sizes=tuple(options.load_sizes or ((20_000,) if options.quick else load.SIZES)),
        check_sizes=tuple(options.check_sizes or ((20_000,) if options.quick else _CHECK_SIZES)),
        billion_sizes=tuple(
            options.billion_sizes or ((2_000, 20_000) if options.quick else billion.SIZES)
        ),
        load_runs=tuple(options.load_runs or ()),
        load_minutes=options.load_minutes,
        people=options.people or (500 if options.quick else 20_000),
        nights=options.nights or (3 if options.quick else 60),
        parts=tuple(options.parts or ((5, 10) if options.quick else publishing.PARTS)),
        beside=options.beside and Checkout(options.beside.resolve()),
        say=_say,
    )
    renews = options.renew or not (options.only or options.quick)
    page = ROOT / "benchmarks" / "RESULTS.md"
    measured = []
    try:
        for name in parts:
            measured.append(_measured(name, context))
            if renews and measured[-1].tables:
                results.renew(measured[-1], page, list(PARTS))
    except Exception:
        _say(f"failed; the working files are kept: {scratch}")
        raise
    shutil.rmtree(scratch)
    results.keep(measured, options.results)
    _say(f"kept in {options.results}")
    outdated = results.outdated(page, HERE)
    for commit in dict.fromkeys(outdated.values()):
        names = ", ".join(part for part, of_part in outdated.items() if of_part == commit)
        _say(f"RESULTS.md: measured at {commit}, and the code here is another one: {names}")
    return 0


_ASKED_FOR = {"billion"}  # by --only
_SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
_CHECK_SIZES = (10_000_000, 100_000_000, 1_000_000_000)
_ADULT_SIZES = (500_000, 5_000_000, 25_000_000)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    by_name = "these parts alone; billion, which takes 25 GiB, runs only so"
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help=by_name)
    parser.add_argument("--renew", action="store_true", help="put the parts into RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run at all")
    parser.add_argument("--rows", type=int, help="rows for speed, loss, distribution and dag")
    parser.add_argument("--sizes", type=int, nargs="+", help="rows for the whole process")
    parser.add_argument("--adult-sizes", type=int, nargs="+", help="rows of Adult enlarged (tds)")
    parser.add_argument("--load-sizes", type=int, nargs="+", help="rows for growth and load")
    parser.add_argument("--check-sizes", type=int, nargs="+", help="rows for check")
    parser.add_argument("--billion-sizes", type=int, nargs="+", help="rows for billion")
    parser.add_argument(
        "--load-runs",
        nargs="+",
        choices=load.NAMES,
        metavar="RUN",
        help=f"these runs of load alone: {', '.join(load.NAMES)}",
    )
    parser.add_argument(
        "--load-minutes", type=float, default=40, help="begin no run of such a part after so many"
    )
    parser.add_argument("--people", type=int, help="people of a night (series); default: 20000")
    parser.add_argument("--nights", type=int, help="nights of a series; default: 60")
    parser.add_argument("--parts", type=int, nargs="+", help="parts of a release (publish)")
    parser.add_argument("--rounds", type=int, default=3, help="runs to take the median of")
    parser.add_argument("--seeds", type=int, default=3, help="samples to average over")
    parser.add_argument(
        "--data", type=Path, default=_data_folder(), help="folder with adult/adult.csv"
    )
    parser.add_argument(
        "--beside", type=Path, help="another checkout with its .venv, measured in turn with this"
    )
    parser.add_argument("--scratch", type=Path, help="where to put working files")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    return parser


def _data_folder() -> Path | None:
    folder = ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def _measured(part: str, context: Context) -> results.Part:
    before = machine()
    start = time.perf_counter()
    tables = []
    for table in PARTS[part](context):
        print(f"\n{table.text()}", flush=True)
        tables.append(table)
    _say(f"{part}: {time.perf_counter() - start:.0f} s")
    return results.Part(part, before, tables, HERE.name)


def _say(line: str) -> None:
    sys.stderr.write(f"  {line}\n")


if __name__ == "__main__":
    sys.exit(main())
