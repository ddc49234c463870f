"""The algorithms beside one another: what each loses, and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks.context import Context
from benchmarks.quality import ADULT_COLUMNS
from benchmarks.tables import Table, seconds

ALGORITHMS: dict[str, dict[str, Any]] = {
    "mondrian, auto": {},
    "mondrian, median": {"cut": "median"},
    "di_mondrian": {"algorithm": "di_mondrian"},
    "tds": {"algorithm": "tds"},
    "samarati, minimal": {"algorithm": "samarati"},
    "samarati, minimal, 1 % suppressed": {
        "algorithm": "samarati",
        "samarati": {"max_suppressed": 0.01},
    },
    "samarati, optimal, 1 % suppressed": {
        "algorithm": "samarati",
        "samarati": {"max_suppressed": 0.01, "choice": "optimal"},
    },
}
K = (5, 10, 50)


def compared(context: Context) -> Iterator[Table]:
    """Every algorithm on Adult and on poker hands."""
    yield from _adult(context)
    yield _poker(context)


def _adult(context: Context) -> Iterator[Table]:
    source = context.data / "adult" / "adult.csv" if context.data else None
    if source is None or not source.exists():
        context.say("algorithms: no data folder with adult/adult.csv; give one with --data")
        return
    job = {
        "input": str(source),
        "output": str(context.scratch / "adult"),
        "quasi_identifiers": [f"{name}=hierarchy:{name}.csv" for name in ADULT_COLUMNS],
        "sensitive": ["salary-class"],
    }
    lines = []
    for name, keys in ALGORITHMS.items():
        runs = []
        for k in K:
            context.say(f"adult, {name}, k = {k}")
            started = time.perf_counter()
            report = context.report({**job, **keys, "k": k}, beside=source.parent / "hierarchies")
            runs.append((report, time.perf_counter() - started))
        lines.append(
            (
                name,
                *(f"{report['metrics']['LM']:.4f}" for report, _ in runs),
                f"{runs[0][0]['equivalence_classes']:,}",
                str(runs[0][0]["rows"]["suppressed"]),
                seconds(max(took for _, took in runs)),
            )
        )
    yield Table(
        "The algorithms on Adult, 8 quasi-identifiers with hierarchies",
        ("", *(f"LM, k = {k}" for k in K), "classes, k = 5", "suppressed, k = 5", "slowest"),
        lines,
        note="30,162 rows; file to verified release, in this process, which had anonymized before.",
    )


def _poker(context: Context) -> Table:
    lines = []
    for name, keys in ALGORITHMS.items():
        if "samarati" in name:
            continue  # ten columns with all their levels: a lattice of 759,375 nodes
        context.say(f"poker, {name}")
        started = time.perf_counter()
        report = context.report(context.job(context.rows, **keys))
        took = time.perf_counter() - started
        lines.append(
            (
                name,
                f"{report['metrics']['GCP']:.3f}",
                f"{report['equivalence_classes']:,}",
                seconds(took),
            )
        )
    return Table(
        f"The algorithms on {context.rows:,} poker hands, k = 5, l = 2",
        ("", "GCP", "classes", "time"),
        lines,
        note="10 quasi-identifiers; file to verified release, in this process, two cores. Samarati "
        "is for few columns: these ten have 759,375 combinations of levels.",
    )
