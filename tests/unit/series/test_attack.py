"""Rows of an unprotected series that waited in a night whose classes cover them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.core.job import Job
from mondrian_ops.series import attack

JOB = {
    "input": "in/2025-01-01.parquet", "output": "out/2025-01-01", "k": 4, "l": 2,
    "entity_id": "person", "quasi_identifiers": ["age"], "sensitive": ["diagnosis"],
    "series": {"hold_nights": 2},
}  # fmt: skip


def drop(persons: range, values: str) -> attack._Rows:
    """Rows of people of the same age."""
    count = len(persons)
    places = pa.table({"age": [20] * count})
    return attack._Rows(
        np.array(persons), np.array([*map(ord, values)]), places, np.zeros(count, np.bool_)
    )


def release(values: str) -> attack._Release:
    """One class that covers everybody."""
    return attack._Release(
        {"age": pa.array(["[20, 24]"])},
        {1: 0},
        np.zeros(len(values), np.int64),
        np.array([*map(ord, values)]),
        Counter(),
    )


@pytest.mark.parametrize(
    ("published", "strange"),
    [("aabb", 0), ("aaab", 1), ("aacb", 1), ("aabbb", 1), ("aaabb", 1), ("aaabbbb", 3)],
)
def test_rows_that_waited_stand_for_as_many_rows_of_their_value_and_class(
    published: str, strange: int
) -> None:
    """One row of b waits in the first night; the second has it, and rows of nobody."""
    player = attack._Player(Job.from_dict(JOB), {})
    for label, rows, shown in [
        ("first", drop(range(1, 6), "aabbb"), "aabb"),
        ("second", drop(range(6, 9), "aab"), published),
    ]:
        player._pool.append(rows)
        player._look(label, release(shown), None)
    player._conclude()
    found = player._found
    assert [each.split(";")[0] for each in found.failures] == [
        f"second: no person of the drop has the values of {strange} row(s) of the release"
    ] * bool(strange)
    assert found.notes[0].startswith("at least 1 row(s) waited")
    assert [night.below_k for night in found.nights] == [0, 0]
