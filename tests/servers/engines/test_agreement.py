"""Same job, same release: the Spark engine's and the local engine's, row by row, part by part."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import shutil
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.samples import Site, quasi_identifiers
from mapped_phases import run_mapped
from mondrian_ops import pipeline
from mondrian_ops.data.column_types import plain_schema
from mondrian_ops.engines import Engine
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.job.job import Job
from published_text import in_any_order
from source_samples import write_declared

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
        "sensitive": ["word"],
        "l": 2,
        "cut": "median",
    },
    "persons in one application": {
        "quasi_identifiers": list(FEW),
        "partitioning": {"fragments": 6, "sample": 1.0},
        "spark": APPLICATION,
        "entity_id": "date",
        "k": 3,
        "cut": "lookahead",
        "sensitive": ["number dictionary"],
        "l": 2,
        "l_width": {"number dictionary": "1 %"},
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


MORE = (
    "a small sample",
    "bounds of quantiles",
    "merged fragments",
    "one fragment",
    "persons",
    "persons and levels",
)
"""What only makes products of the others: an engine knows no bounds, no merging and no persons,
and what it samples the tests of the contract show."""


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


@pytest.mark.parametrize(
    "case", ["one fragment", pytest.param("top-down specialization", marks=pytest.mark.soak)]
)
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


RAW = {"id": pa.uuid(), "note": pa.json_(), "price": pa.decimal32(5, 2), "span": pa.duration("ms")}


# What is read in either way is joined by retrieval alone, as in the jobs above.
@pytest.mark.parametrize(
    ("in_96_bits", "retrieval"),
    [
        pytest.param(False, "scatter", id="64", marks=pytest.mark.soak),
        pytest.param(True, "pushdown", id="96"),
    ],
)
def test_columns_of_any_type_are_read_and_published_as_what_they_are(
    spark_engine: Engine, tmp_path: Path, in_96_bits: bool, retrieval: str
) -> None:
    """Views of text, and timestamps as Spark writes them, are quasi-identifiers."""
    rows = range(80)
    years = [dt.datetime((1, 1500, 2024, 9999)[at // 20], 12, 31, at % 3) for at in rows]
    uuids = pa.array([b"%016d" % at for at in rows], pa.binary(16))
    table = pa.table(
        {
            "when": pa.array(years, pa.timestamp("us")),
            "town": pa.array([f"t{at % 7}" for at in rows]),
            "id": uuids.cast(pa.uuid()),
            "note": pa.array(['{"a": 1}', "[]"] * 40).cast(pa.json_()),
            "price": pa.array([Decimal(at) for at in rows]).cast(pa.decimal32(5, 2)),
            "span": pa.array(rows, pa.duration("ms")),
        }
    )
    options = {"use_deprecated_int96_timestamps": in_96_bits}
    write_declared(
        tmp_path / "in.parquet", table, {"town": pa.string_view()}, options, row_group_size=20
    )
    schemas, releases = [], []
    for engine in (LocalEngine(), spark_engine):
        job = {
            "input": str(tmp_path / "in.parquet"),
            "output": str(tmp_path / "out"),
            "k": 2,
            "l": 2,
            "entity_id": "id" if in_96_bits else None,
            "quasi_identifiers": ["when", "town"],
            "sensitive": ["note"],
            "unlisted": "publish",
            "retrieval": retrieval,
            "partitioning": {"fragments": 3, "sample": 1.0},
            "engine": "spark" if engine.remote else "local",
        }
        pipeline.run(Job.from_dict(job), engine=engine)
        release = pq.read_table(tmp_path / "out")
        schemas.append(release.schema)
        releases.append(in_any_order(_in_plain_types(release)))
        shutil.rmtree(tmp_path / "out")
    assert schemas[0] == schemas[1]
    raw = {name: kind for name, kind in RAW.items() if name != "id" or not in_96_bits}
    assert {name: schemas[0].field(name).type for name in raw} == raw
    assert releases[0] == releases[1]
    assert {"0001", "1500", "2024", "9999"} <= set(re.findall(r"\d{4}(?=-12-31)", str(releases)))


def _in_plain_types(table: pa.Table) -> pa.Table:
    return table.cast(plain_schema(table.schema))


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
    for name in ("timings_s", "phases", "retrieval", "created"):
        found.pop(name)
    for name in ("engine", "spark"):
        found["job"].pop(name, None)
    found["outcome"].pop("at")
    for fragment in found["fragments"]:
        for name in ("seconds", "finished", "phases"):
            fragment.pop(name, None)
    return json.dumps(found, indent=1, sort_keys=True)
