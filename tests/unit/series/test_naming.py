"""The name of a series, its nights, and what lies beside an output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs import minimal
from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.series import naming
from mondrian_ops.stores import look_up_with, store_access


@pytest.mark.parametrize(
    ("own", "beside", "others"),
    [
        ("2025-06-01", ["2025-06-02", "20250603"], ["people", "2025-06-02.old"]),
        ("2025-06-01/people", ["2025-06-02/people", "20250603/people"], ["2025-06-02/visits"]),
        ("2025/06/01", ["2025/05/31", "2024/06/01"], ["2025/06/latest", "2025/06"]),
        ("2025-06-01/a/v2", ["2025-06-02/a/v2"], ["2025-06-02/a/v1", "2025-06-02/b/v2"]),
        ("v2/2025-06-01", ["v2/2025-06-02"], ["v1/2025-06-02"]),
        ("2025-06-01/x", ["2025/06/02/x", "20250603/x"], ["2025/06/x", "2025/06/02/y"]),
        ("2025/06/01", ["2025-06-02", "2025_06_03"], ["2024/2025-06-02"]),
        ("daily-2025-06-01-x", ["daily-2025-06-02-x"], ["daily-2025-06-02", "2025-06-02"]),
    ],
)
def test_what_lies_beside_has_the_same_name_at_any_depth(
    tmp_path: Path, own: str, beside: list[str], others: list[str]
) -> None:
    for each in (own, *beside, *others):
        (tmp_path / each).mkdir(parents=True, exist_ok=True)
    (tmp_path / "2025-07-01").write_text("no directory")
    found = naming.outputs_beside(str(tmp_path / own))
    assert sorted(filter(os.path.isdir, found)) == sorted(
        str(tmp_path / each) for each in (own, *beside)
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("s3://b/out/*", "s3://@b/out/*", True),
        ("s3://b/out/*", "s3://conn@b/out/*", True),
        ("s3://b/out/*", "s3://c/out/*", False),
        ("s3://b/out/*", "s3://b/other/*", False),
        ("hdfs://nn1/out/*", "hdfs:///out/*", True),
        ("hdfs://nn1/out/*", "hdfs://nn1:8020/out/*", True),
        ("hdfs://nn1/out/*", "webhdfs://NN2:9870/out/*", True),
        ("hdfs://nn1/out/*", "webhdfs://nn3:9870/out/*", False),
        ("hdfs://nn1/out/*", "hdfs://unknown@nn1/out/*", False),
        ("hdfs://nn1/out/*", "s3://nn1/out/*", False),
        ("/out/*", "s3://b/out/*", False),
        ("/out/*", "/out/*", True),
    ],
)
def test_two_names_of_one_place_are_one_series(
    monkeypatch: pytest.MonkeyPatch, one: str, other: str, same: bool
) -> None:
    look_up_with(None)
    monkeypatch.setattr(store_access, "_given", {})
    monkeypatch.setenv("MONDRIAN_OPS_WEBHDFS", "http://nn1:9870, http://nn2:9870")
    assert naming.is_one_series(one, other) == naming.is_one_series(other, one) == same


@pytest.mark.parametrize(
    "output",
    [
        "s3://b-2025-06-01/out/2025-06-02",
        "s3://b-2025-06-01/out/2025-06-02/",
        "s3://b-2025-06-01//out/./20250603",
        "S3://b-2025-06-01/out/2025-06-02",
    ],
)
def test_a_series_of_a_store_has_one_name_however_its_output_is_spelled(output: str) -> None:
    assert naming.name_of_series(output) == "s3://b-2025-06-01/out/*"


def test_a_date_in_the_name_of_a_bucket_belongs_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JobError, match="a series tells its nights apart by the date in it"):
        naming.series_name(Job.from_dict(minimal(output="s3://b-2025-06-01/out")))
    listed = {"s3://b-2025-06-01": {"2025-06-02": True, "x": True}}
    monkeypatch.setattr(naming.stores, "names_in", listed.__getitem__)
    found = naming.outputs_beside("s3://b-2025-06-01/2025-06-03")
    assert found == ["s3://b-2025-06-01/2025-06-02"]


def test_nothing_lies_beside_an_output_whose_directory_is_not_there(tmp_path: Path) -> None:
    assert naming.outputs_beside(str(tmp_path / "out/2025-06-01")) == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2025-06-01", "20250601", True),
        ("2025-06-01", "2025/06/01", True),
        ("2025-06-01", "2025-06-01T00:00:00Z", True),
        ("2025-06-01", "2025-06-01T10:00", False),
        ("2025-06-01T10:00", "20250601T1000", True),
        ("2025-06-10", "2025-06-01", False),
        ("2025-06-01 10:00", "2025-06-01T10:00", True),
        ("2025-06-01 00:00", "2025-06-01", True),
        ("2025-06-01/2025-06-02", "20250601/20250602", True),
        ("2025-06-01/2025-06-02", "2025-06-01", False),
    ],
)
def test_a_night_is_the_same_however_its_dates_are_spelled(
    one: str, other: str, same: bool
) -> None:
    assert naming.is_same_night(one, other) == naming.is_same_night(other, one) == same
