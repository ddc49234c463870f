"""The sections of a job."""

from __future__ import annotations

import pytest

from jobs import minimal
from mondrian_ops.core.errors import JobError
from mondrian_ops.core.job import Job, rows_of


def test_what_makes_tasks_has_a_limit() -> None:
    for section, key in (("partitioning", "fragments"), ("tds", "partitions")):
        assert Job.from_dict(minimal(**{section: {key: 10_000}}))
        with pytest.raises(JobError, match=f"^{section}.{key}: asks for 10,001; the limit 'frag"):
            Job.from_dict(minimal(**{section: {key: 10_001}}))


@pytest.mark.parametrize(("limit", "rows"), [(0, 0), (0.25, 2), (0.99, 9), (1, 1), (20, 20)])
def test_a_limit_is_a_number_of_rows_or_a_share_of_them(limit: float, rows: int) -> None:
    assert rows_of(limit, 10) == rows


@pytest.mark.parametrize(
    ("asked", "rows"), [(0.29, 29), (0.57, 57), (0.2, 20), (0.999, 99), (0, 0), (7, 7)]
)
def test_a_share_of_rows_is_not_one_row_short(asked: float, rows: int) -> None:
    keys = {"algorithm": "samarati", "samarati": {"max_suppressed": asked}}
    assert Job.from_dict(minimal(**keys)).suppressible(100) == rows


def test_only_samarati_suppresses() -> None:
    assert Job.from_dict(minimal(samarati={"max_suppressed": 7})).suppressible(100) == 0
