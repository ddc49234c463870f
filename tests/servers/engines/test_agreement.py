"""Same job, same release: the Spark engine's and the local engine's, row by row, part by part."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from engines.samples import Site, quasi_identifiers
from mapped_phases import run_mapped
from mondrian_ops import pipeline
from mondrian_ops.core.job import Job
from mondrian_ops.engines import Engine
from mondrian_ops.engines.local import LocalEngine
from published_text import in_any_order

pytestmark = pytest.mark.java

CLOSE = {"sensitive": ["word", "grade"], "t": 0.6, "t_distance": "ordered"}
TREE = {"sensitive": ["grade"], "t": 0.6, "t_distance": "hierarchical"}
APPLICATION = {"shape": "application"}
FEW = ("int", "text", "zoned", "decimal")

# Every way of every kind of column (five turns), every retrieval, both shapes, every criterion.
JOBS: Mapping[str, dict[str, Any]] = {
    "scattered": {
        "quasi_identifiers": quasi_identifiers(0),
        "partitioning": {"fragments": 5, "sample": 1.0},
        "retrieval": "scatter",
        "cut": "gain",
    },
    "pushed down": {
        "quasi_identifiers": quasi_identifiers(1),
        "partitioning": {"fragments": 5, "sample": 1.0},
        "retrieval": "pushdown",
        "sensitive": ["word"],
        "l": 2,
        "cut": "median",
    },
    "shuffled": {
        "quasi_identifiers": quasi_identifiers(2),
        "partitioning": {"fragments": 6, "sample": 1.0},
        "spark": APPLICATION,
        "identifier_policy": "redact",
        "cut": "lookahead",
    },
    "a small sample": {
        "quasi_identifiers": quasi_identifiers(3),
        "partitioning": {"fragments": 6, "sample": 0.01, "min_sample": 0, "seed": 3},
        "retrieval": "pushdown",
        **CLOSE,
    },
    "an application that scatters": {
        "quasi_identifiers": quasi_identifiers(4),
        "partitioning": {"fragments": 4, "sample": 0.3, "max_rows": 60},
        "retrieval": "scatter",
        "spark": APPLICATION,
        "sensitive_hierarchy": {"grade": "grades.csv"},
        **TREE,
    },
    "bounds of quantiles": {
        "quasi_identifiers": [
            "date",
            "int",
            "zoned",
            "decimal=grid:0.25",
            "text=hierarchy:tree.csv",
        ],
        "partitioning": {"strategy": "quantile", "fragments": 4, "sample": 1.0},
        "interval_style": "bounds",
        "spark": APPLICATION,
        "relaxed": True,
    },
    "merged fragments": {
        "quasi_identifiers": list(FEW),
        "partitioning": {"fragments": 24, "sample": 0.05, "min_sample": 0},
        "k": 30,
        "sensitive": ["grade"],
        "l": 3,
        "diversity": "recursive",
        "c": 2,
        "unlisted": "drop",
    },
    "full-domain levels": {
        "quasi_identifiers": [*FEW, "bool", "float=ladder:0.5/1", "large text=prefix"],
        "algorithm": "samarati",
        "samarati": {"max_suppressed": 0.05, "choice": "first"},
        "partitioning": {"fragments": 4, "sample": 1.0},
    },
    "top-down specialization": {
        "quasi_identifiers": [each for each in quasi_identifiers(1) if "grid" not in each],
        "algorithm": "tds",
        "tds": {"partitions": 3, "k_intermediate": 12},
        "sensitive": ["word", "grade"],
        "l": 2,
        "spark": APPLICATION,
        "partitioning": {"fragments": 8},
    },
    "one fragment": {"quasi_identifiers": list(FEW), "partitioning": {"fragments": 1}},
    "persons": {
        "quasi_identifiers": ["date=grid:7@4", "int", "timestamp=grid:1", "bool"],
        "partitioning": {"fragments": 6, "sample": 0.1, "min_sample": 0},
        "retrieval": "scatter",
        "entity_id": "number dictionary",
        "k": 6,
    },
    "persons in one application": {
        "quasi_identifiers": list(FEW),
        "partitioning": {"fragments": 6, "sample": 1.0},
        "spark": APPLICATION,
        "entity_id": "large text",
        "k": 3,
        "cut": "lookahead",
    },
    "persons and levels": {
        "quasi_identifiers": ["bool", "float=ladder:0.5/1"],
        "algorithm": "samarati",
        "partitioning": {"fragments": 3},
        "entity_id": "int",
    },
    "CSV": {
        "source": "csv",
        "quasi_identifiers": [
            "int",
            "float",
            "date",
            "timestamp",
            "bool",
            "text=hierarchy:tree.csv",
        ],
        "partitioning": {"fragments": 5, "sample": 0.5},
        "spark": APPLICATION,
    },
}


MORE = ("bounds of quantiles", "merged fragments", "one fragment", "persons", "persons and levels")
"""What only makes products of the others: an engine knows no bounds, no merging and no persons."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.soak if case in MORE else ()) for case in JOBS],
)
def test_the_same_release(case: str, site: Site, spark_engine: Engine, tmp_path: Path) -> None:
    keys = JOBS[case]
    local, its_parts = released(site, LocalEngine(), tmp_path / "out", **keys)
    spark, parts = released(site, spark_engine, tmp_path / "out", **keys)
    assert parts == its_parts
    assert compared(spark) == compared(local)
    how = {"scatter", "pushdown"} if len(parts) > 1 else {"pushdown"}
    if keys.get("spark") == APPLICATION and "retrieval" not in keys:
        how = {"shuffle"}
    assert spark["retrieval"]["used"] in how
    if case == "merged fragments":
        assert spark["partitioning"]["merged"] > 0


def test_a_first_phase_of_mapped_tasks_gives_the_release_of_spark_s(
    site: Site, spark_engine: Engine, tmp_path: Path
) -> None:
    keys = {**JOBS["top-down specialization"], "spark": {}, "partitioning": {"fragments": 3}}
    spark, parts = released(site, spark_engine, tmp_path / "out", **keys)
    mapped, its_parts = released(site, LocalEngine(), tmp_path / "out", by=run_mapped, **keys)
    assert mapped["recoding"] == spark["recoding"]
    assert len(spark["recoding"]["specializations"]["parts"]) == 3
    assert parts == its_parts


@pytest.mark.parametrize("case", ["one fragment", "top-down specialization"])
def test_neither_engine_repeats_the_order_of_rows(
    case: str, site: Site, spark_engine: Engine, tmp_path: Path
) -> None:
    """Who reruns a job and lays the releases side by side names as many rows as by guessing."""
    orders = []
    for number, engine in enumerate((spark_engine, spark_engine, LocalEngine())):
        output = tmp_path / str(number)
        name = "spark" if engine.remote else "local"
        keys = {**JOBS[case], "partitioning": {"fragments": 1}, "unlisted": "publish"}
        report = pipeline.run(site.job(output, engine=name, **keys), engine=engine)
        orders.append(pq.read_table(output)["row"].to_pylist())
    classes = report["equivalence_classes"]
    for one, other in combinations(orders, 2):
        assert sum(map(int.__eq__, one, other)) <= classes + 4 * math.sqrt(classes)


def released(
    site: Site,
    engine: Engine,
    output: Path,
    by: Callable[[Job], dict[str, Any]] | None = None,
    **keys: Any,
) -> tuple[dict[str, Any], list[tuple[str, list[str]]]]:
    """The report, and the parts, each its schema and rows, in an order that runs share."""
    job = site.job(output, engine="spark" if engine.remote else "local", **keys)
    report = by(job) if by else pipeline.run(job, engine=engine)
    tables = [pq.read_table(path) for path in output.glob("part-*")]
    if report["cut"].get("group_rows") or report["cut"].get("greedy") == "relaxed":
        # Which of several rows of the same quasi-identifiers is in which class is drawn by lot.
        by_lot = {*report["columns"]["unlisted"], *report["columns"]["sensitive"]}
        tables = [table.drop_columns(by_lot & {*table.column_names}) for table in tables]
        report["achieved"] = report["achieved"]["k"]
        if job.entity_id is not None:  # so are the persons of a class, and the risk
            del report["class_persons"], report["risk"]
    parts = sorted((str(table.schema), in_any_order(table)) for table in tables)
    shutil.rmtree(output)
    assert not list(output.parent.iterdir())
    return report, parts


def compared(report: Mapping[str, Any]) -> str:
    """A report without times and without what names the engine."""
    found = json.loads(json.dumps(report))
    for name in ("timings_s", "retrieval", "created"):
        found.pop(name)
    for name in ("engine", "spark"):
        found["job"].pop(name, None)
    for fragment in found["fragments"]:
        for name in ("seconds", "finished"):
            fragment.pop(name, None)
    return json.dumps(found, indent=1, sort_keys=True)
