"""``fragments: auto``: another number of fragments, the same release."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline
from mondrian_ops.cut import planning
from mondrian_ops.report import page, text
from published_text import in_any_order

ROWS = 3000


@pytest.fixture
def run(tmp_path):
    generator = np.random.default_rng(8)
    columns = {name: generator.integers(0, 400, ROWS) for name in ("x", "y")}
    table = pa.table({**columns, "s": generator.choice(["a", "b", "c"], ROWS)})
    pq.write_table(table, tmp_path / "in.parquet")

    def run(name, **partitioning):
        job = {
            "input": str(tmp_path / "in.parquet"),
            "output": str(tmp_path / name),
            "k": 5,
            "l": 2,
            "quasi_identifiers": ["x", "y"],
            "sensitive": ["s"],
            "cut": "gain",
            "partitioning": {"sample": 1.0, **partitioning},
        }
        report = pipeline.run(pipeline.load_job(job))
        return in_any_order(pq.read_table(job["output"])), report

    return run


def test_a_table_that_is_cut_faster_than_a_task_starts_is_one_fragment(run):
    _, report = run("small")
    assert len(report["fragments"]) == 1
    assert report["partitioning"]["asked"] == "auto"


def test_the_classes_are_the_same_whatever_is_worthwhile(run, monkeypatch):
    rows, one = run("one")
    monkeypatch.setattr(planning, "_VALUE_S", 1e9)
    monkeypatch.setattr(
        sys.modules["mondrian_ops.pipeline.partitioning"], "available_cores", lambda: 2
    )
    again, several = run("several")
    asked, six = run("asked", fragments=6)
    assert [len(each["fragments"]) for each in (one, several, six)] == [1, 8, 6]
    assert rows == again == asked
    assert several["partitioning"]["asked"] == "auto"
    assert several["partitioning"]["note"] == ""


def test_the_report_states_the_rule(run):
    _, report = run("small")
    why = report["partitioning"]["reason"]
    assert why.startswith("auto: about 0.0 s of work for one core, at least 0.15 s per task")
    basis = f"multidimensional: 1 fragment ({why})"
    assert basis in page.render_html(report)
    assert why not in text.render_text(report)
