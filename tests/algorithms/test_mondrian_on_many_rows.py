"""Many rows are cut as if they stayed where they are, though they are brought together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.algorithms.anonymizer import Anonymizer
from mondrian_ops.algorithms.mondrian import APART, NEAR, CodedRows, Cut, _grown
from mondrian_ops.core import kernels
from mondrian_ops.core.job import Job
from mondrian_ops.core.survey import Surveyor

CUTS = [Cut("median"), Cut("gain"), Cut("relaxed")]


def people(count: int, ages: int) -> pa.Table:
    """Rows of an interval, one with missing values, and a set; several of a person."""
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "age": rng.integers(0, ages, count),
            "height": pa.array(rng.normal(170, 20, count).round(), mask=rng.random(count) < 0.03),
            "town": np.array(["p", "q", "r", "s", "t"])[rng.integers(0, 5, count)],
            "ill": np.array(["x", "y", "z"])[rng.integers(0, 3, count)],
            "person": rng.integers(0, count // 2, count),
        }
    )


def coded(table: pa.Table, **keys: object) -> CodedRows:
    asked = {"k": 5, "l": 2, "sensitive": ["ill"], "cut": "median", **keys}
    asked["quasi_identifiers"] = ["age", "height", "town=set"]
    job = Job.from_dict(asked, paths_required=False)
    surveyor = Surveyor(job, table.schema, {})
    surveyor.add(table)
    return Anonymizer(job, surveyor.finish(), {}, Cut("median")).encode(table)


def plainly_grown(rows: CodedRows, cut: Cut) -> list[np.ndarray]:
    policy = cut.policy()
    index, marks = np.arange(rows.count, dtype=np.int32), np.zeros(rows.count, np.uint8)
    kernels.cut_down(rows.rows, index, 0, rows.criteria, policy, rows.work(policy), marks)
    return [index, np.flatnonzero(marks)]


def assert_same_classes(rows: CodedRows, cut: Cut) -> None:
    for found, plain in zip(_grown(rows, cut), plainly_grown(rows, cut), strict=True):
        np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.greedy)
@pytest.mark.parametrize("keys", [{}, {"entity_id": "person"}], ids=["rows", "persons"])
@pytest.mark.parametrize("ages", [90, 1 << 17], ids=["16 bits", "32 bits"])
def test_where_rows_lie_changes_no_class(ages, keys, cut):
    assert_same_classes(coded(people(NEAR + 50_000, ages), **keys), cut)


def test_rows_are_brought_together_twice():
    """Once from all, where nodes are larger than what is near, and again from those."""
    count = NEAR * APART + 300_000
    assert_same_classes(coded(people(count, 1 << 10)), Cut("median"))
