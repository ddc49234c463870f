"""Many rows are cut as if they stayed where they are, though they are brought together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.algorithms import mondrian
from mondrian_ops.algorithms.anonymizer import Anonymizer
from mondrian_ops.algorithms.mondrian import CodedRows, Cut
from mondrian_ops.core import kernels
from mondrian_ops.core.job import Job
from mondrian_ops.core.survey import Surveyor

COUNT = 5 * kernels.BLOCK
CUTS = {
    "median": Cut("median"),
    "gain": Cut("gain"),
    "relaxed": Cut("relaxed"),
    "ahead": Cut("gain", rollout_rows=COUNT),
    "groups": Cut("widest gain", rollout_rows=3_000, group_rows=1_500),
    "twice ahead": Cut("gain", rollout_rows=3_000, group_rows=1_500, nested_rows=1_500),
}


@pytest.fixture
def gathered(monkeypatch) -> list[int]:
    """How many rows were brought together, time after time; few rows are many here."""
    monkeypatch.setattr(mondrian, "NEAR", kernels.BLOCK + 1_000)
    monkeypatch.setattr(mondrian, "APART", 2)
    sizes: list[int] = []
    taken = CodedRows.taken

    def noting(coded: CodedRows, index: np.ndarray) -> CodedRows:
        sizes.append(len(index))
        return taken(coded, index)

    monkeypatch.setattr(CodedRows, "taken", noting)
    return sizes


def coded(columns: Mapping[str, Any], **keys: Any) -> CodedRows:
    """The rows of a table of which the first three columns are quasi-identifiers."""
    table = pa.table(columns)
    first, second, third = table.column_names[:3]
    listed = [first, second, f"{third}=set" if third == "town" else third]
    job = Job.from_dict(
        {"cut": "median", "quasi_identifiers": listed, **keys}, paths_required=False
    )
    surveyor = Surveyor(job, table.schema, {})
    surveyor.add(table)
    return Anonymizer(job, surveyor.finish(), {}, Cut("median")).encode(table)


def people(ages: int) -> dict[str, Any]:
    """An interval, one with missing values, a set; a sensitive value; persons of several rows."""
    rng = np.random.default_rng(7)
    height = rng.normal(170, 20, COUNT).round()
    return {
        "age": rng.integers(0, ages, COUNT),
        "height": pa.array(height, mask=rng.random(COUNT) < 0.03),
        "town": np.array(["p", "q", "r", "s", "t"])[rng.integers(0, 5, COUNT)],
        "ill": np.array(["x", "y", "z"])[rng.integers(0, 3, COUNT)],
        "person": rng.integers(0, COUNT // 2, COUNT),
    }


def assert_cut_as_where_they_are(rows: CodedRows, cut: Cut) -> None:
    policy = cut.policy()
    index = np.arange(rows.count, dtype=np.int32)
    work, block_work = rows.work(policy), rows.work(policy, kernels.BLOCK)
    marks = kernels.grow(rows.rows, index, rows.criteria, policy, work, block_work)
    classes = mondrian._grown(rows, cut)
    np.testing.assert_array_equal(classes[0], index)
    np.testing.assert_array_equal(classes[1], np.flatnonzero(marks))


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("keys", [{}, {"entity_id": "person"}], ids=["rows", "persons"])
@pytest.mark.parametrize("ages", [90, 1 << 17], ids=["16 bits", "32 bits"])
def test_where_rows_lie_changes_no_class(gathered, ages, keys, cut):
    rows = coded(people(ages), k=400, l=2, sensitive=["ill"], **keys)
    assert_cut_as_where_they_are(rows, cut)
    assert any(size > mondrian.NEAR for size in gathered)  # and then brought together again
    assert sum(gathered) > COUNT


@pytest.mark.parametrize("nested_rows", [0, 10])
def test_what_is_remembered_of_some_rows_is_not_taken_for_that_of_others(gathered, nested_rows):
    """Two halves whose rows have the same numbers, brought together: one is cut by x, one by y."""
    half = 1 << 16
    number = np.arange(2 * half) % half
    second = np.arange(2 * half) >= half
    x, y = number % 2, number // 2 % 10 < 3
    columns = {
        "half": np.where(second, 128, 0),
        "x": np.where(second, 16, 128) * x,
        "y": np.where(second, 128, 1) * y,
    }
    cut = Cut("gain", rollout_rows=2 * half, nested_rows=nested_rows)
    assert_cut_as_where_they_are(coded(columns, k=half // 5), cut)
    assert gathered.count(half) == 2
    assert half > mondrian.NEAR
