"""How many rows of each class are made up, and whether enough are left that are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops.errors import StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.series.intersection.counterfeits import (
    by_class,
    content_of,
    without_counterfeits,
)
from mondrian_ops.verify.requirements import Verdict

JOB = Job.from_dict({"k": 2, "quasi_identifiers": ["age", "zip"]}, paths_required=False)
FINE = Verdict(True, {"k": 4, "l": 2}, ("k",), ())
A, B, C = ("[0, 9]", "1*"), ("[0, 9]", "2*"), ("[10, 19]", None)
CHECKED = ("k", "k = 2 without 3 counterfeits in 2 classes")


def table(classes: Sequence[tuple[str, str | None]]) -> pa.Table:
    """A row of each class, by the columns of its quasi-identifiers."""
    ages, zips = zip(*classes, strict=True) if classes else ((), ())
    return pa.table({"age": pa.array(ages, pa.string()), "zip": pa.array(zips, pa.string())})


def put(
    folder: Path,
    classes: Mapping[tuple[str, str | None], int],
    made_up: Mapping[tuple[str, str | None], int] | None,
) -> str:
    """A release with so many rows of each class, and the file beside it."""
    rows = [each for each, count in classes.items() for _ in range(count)]
    pq.write_table(table(rows), folder / "part-0.parquet")
    if made_up is not None:
        rows = [each for each, count in made_up.items() for _ in range(count)]
        (folder / "_counterfeits.parquet").write_bytes(content_of(table(rows)))
    return str(folder)


@pytest.mark.parametrize(
    ("made_up", "reported", "failures", "least"),
    [
        ({A: 2, C: 1}, 3, [], 2),
        ({A: 2, C: 1}, None, [], 2),
        ({A: 2, C: 1}, 2, ["has 3 counterfeits, but 2 are in the report"], 2),
        ({A: 3}, 3, ["1 of 3 classes have fewer than k = 2 rows that are not"], 1),
        ({A: 3, C: 2}, 5, ["2 of 3 classes have fewer than k = 2 rows that are not"], 1),
        ({A: 1, ("x", "y"): 2}, 3, ["1 class(es) are not in the release"], 2),
        ({}, 0, [], 4),
        ({}, 1, ["has 0 counterfeits, but 1 are in the report"], 4),
        (None, 0, [], 4),
        (None, 1, ["is missing, so persons cannot be counted"], 4),
        (None, None, ["is missing, so persons cannot be counted"], 4),
    ],
)
def test_a_class_needs_k_rows_that_are_not_made_up(
    tmp_path: Path,
    made_up: Mapping[tuple[str, str | None], int] | None,
    reported: int | None,
    failures: Sequence[str],
    least: int,
) -> None:
    release = put(tmp_path, {A: 4, B: 2, C: 3}, made_up)
    found = without_counterfeits(JOB, release, FINE, reported)
    assert found.passed is not bool(failures)
    assert len(found.failures) == len(failures)
    assert all(text in each for text, each in zip(failures, found.failures, strict=True))
    assert found.achieved == {"k": least, "l": 2}
    if made_up == {A: 2, C: 1}:
        assert found.checked == CHECKED
    failed = without_counterfeits(JOB, release, replace(FINE, passed=False), reported)
    assert not failed.passed


def test_the_file_says_how_many_of_each_class_whatever_its_labels(tmp_path: Path) -> None:
    made_up = by_class(put(tmp_path, {A: 4}, {A: 2, B: 1, C: 3}))
    assert made_up is not None
    assert sorted(made_up.values()) == [1, 2, 3]
    assert by_class(str(tmp_path / "none")) is None


@pytest.mark.parametrize("content", [b"", b"no parquet", pa.table({"age": ["*"]})])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | pa.Table) -> None:
    path = tmp_path / "_counterfeits.parquet"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        pq.write_table(content, path)
    with pytest.raises(StorageError, match=r"_counterfeits\.parquet: cannot be read; restore it"):
        by_class(str(tmp_path))


def test_a_class_without_counterfeits_has_no_place_in_the_file(tmp_path: Path) -> None:
    release = put(tmp_path, {A: 4, B: 2}, {})
    counts = table([A, B]).append_column("counterfeits", pa.array([2, 0]))
    pq.write_table(counts, tmp_path / "_counterfeits.parquet")
    (failure,) = without_counterfeits(JOB, release, FINE, 2).failures
    assert "has a class without counterfeits" in failure
