"""`python -m benchmarks`: measure, print, and keep the figures.

Prints each table when it is ready. A full run writes `benchmarks/RESULTS.md`; every run leaves
`results.md` and `results.json` in `benchmarks/results/`, which git ignores.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import (
    airflow_dag,
    algorithms,
    di_mondrian,
    quality,
    samarati,
    scale_out,
    speed,
    tds,
)
from benchmarks.context import Context
from benchmarks.measure import ROOT, machine
from benchmarks.tables import Table

PARTS: dict[str, Callable[[Context], Iterator[Table]]] = {
    "speed": speed.cutting,
    "whole": speed.whole,
    "loss": quality.losses,
    "distribution": quality.distribution,
    "adult": quality.adult,
    "algorithms": algorithms.compared,
    "samarati": samarati.tables,
    "di_mondrian": di_mondrian.compared,
    "tds": tds.figures,
    "dag": airflow_dag.beside_empty_dag,
    "spark": scale_out.spark_engine,
    "fragments": scale_out.figure_10,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    parts = options.only or list(PARTS)
    scratch = Path(tempfile.mkdtemp(prefix="mondrian_ops-bench-", dir=options.scratch))
    context = Context(
        scratch=scratch,
        rows=options.rows or (20_000 if options.quick else 1_000_000),
        sizes=tuple(options.sizes or ((5_000,) if options.quick else _SIZES)),
        adult_sizes=tuple(options.adult_sizes or ((5_000,) if options.quick else _ADULT_SIZES)),
        rounds=1 if options.quick else options.rounds,
        seeds=1 if options.quick else options.seeds,
        data=options.data,
        say=_say,
    )
    facts = machine()
    try:
        tables = list(_measured(parts, context))
    except Exception:
        _say(f"failed; the working files are kept: {scratch}")
        raise
    shutil.rmtree(scratch)
    _keep(tables, facts, options.results, full=parts == list(PARTS) and not options.quick)
    return 0


_SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
_ADULT_SIZES = (500_000, 5_000_000, 25_000_000)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="these parts alone")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run at all")
    parser.add_argument("--rows", type=int, help="rows for speed, loss, distribution and dag")
    parser.add_argument("--sizes", type=int, nargs="+", help="rows for the whole process")
    parser.add_argument("--adult-sizes", type=int, nargs="+", help="rows of Adult enlarged (tds)")
    parser.add_argument("--rounds", type=int, default=3, help="runs to take the median of")
    parser.add_argument("--seeds", type=int, default=3, help="samples to average over")
    parser.add_argument(
        "--data", type=Path, default=_data_folder(), help="folder with adult/adult.csv"
    )
    parser.add_argument("--scratch", type=Path, help="where to put working files")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    return parser


def _data_folder() -> Path | None:
    folder = ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def _measured(parts: Sequence[str], context: Context) -> Iterator[Table]:
    for part in parts:
        start = time.perf_counter()
        for table in PARTS[part](context):
            print(f"\n{table.text()}", flush=True)
            yield table
        _say(f"{part}: {time.perf_counter() - start:.0f} s")


def _keep(tables: Sequence[Table], facts: dict[str, str], results: Path, full: bool) -> None:
    today = datetime.now(UTC).date().isoformat()
    about = ", ".join(f"{name}: {value}" for name, value in facts.items())
    text = "\n".join(
        [
            "# Measurements\n",
            f"Made by `make bench` on {today}. {about}. Required figures are the design's; "
            "nothing here is a test. Times mean something only on a machine that does nothing "
            "else (load before: about 0).\n",
            *(table.markdown() for table in tables),
        ]
    )
    results.mkdir(parents=True, exist_ok=True)
    kept = {"date": today, "machine": facts, "tables": [table.as_dict() for table in tables]}
    (results / "results.json").write_text(
        json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (results / "results.md").write_text(text, encoding="utf-8")
    _say(f"kept in {results}")
    if full:
        (ROOT / "benchmarks" / "RESULTS.md").write_text(text, encoding="utf-8")


def _say(line: str) -> None:
    sys.stderr.write(f"  {line}\n")


if __name__ == "__main__":
    sys.exit(main())
