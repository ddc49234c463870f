"""The algorithms beside one another: what each loses, and how long it takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.adult import Adult, adult
from benchmarks.context import Context
from benchmarks.measure import timed
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
    for data in adult(context, "algorithms"):
        yield _adult(context, data)
    yield _poker(context)


def _adult(context: Context, data: Adult) -> Table:
    lines = []
    for name, keys in ALGORITHMS.items():
        runs = []
        for k in K:
            context.say(f"adult, {name}, k = {k}")
            job = data.job(sensitive=["salary-class"], k=k, **keys)
            runs.append(timed(partial(data.report, job)))
        lines.append(
            (
                name,
                *(f"{report['metrics']['LM']:.4f}" for report, _ in runs),
                f"{runs[0][0]['equivalence_classes']:,}",
                str(runs[0][0]["rows"]["suppressed"]),
                seconds(max(took for _, took in runs)),
            )
        )
    return Table(
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
        report, took = timed(partial(context.report, context.job(context.rows, **keys)))
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
