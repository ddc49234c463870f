"""Which drops a landing folder holds, and the jobs they become."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from mondrian_ops.core.errors import InputError
from mondrian_ops.landing import Drop, find_drops
from mondrian_ops.operators.base import read_job

DAY = date(2025, 6, 1)


def put(landing: Path, *names: str) -> None:
    for name in names:
        path = landing / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a\n1\n")


def test_drops_are_found_by_data_set_and_day(tmp_path):
    put(tmp_path, "people/2025-06-01.csv", "poker/2025-06-01.parquet", "poker/2025-06-02.parquet")
    put(tmp_path, "poker/2025-05-31.parquet", "visits/2025-06-01-b.csv", "visits/2025-06-01-a.csv")
    assert [drop.name for drop in find_drops(tmp_path, DAY, DAY)] == [
        "people/2025-06-01",
        "poker/2025-06-01",
        "visits/2025-06-01",
    ]
    assert len(find_drops(tmp_path, DAY, date(2025, 6, 2))) == 4


@pytest.mark.parametrize(
    "name",
    [
        "people/.2025-06-01.csv",
        "people/_2025-06-01.csv",
        "people/2025-06-01.csv.tmp",
        "people/2025-06-01.json",
        "people/2025-06-011.csv",
        "people/2025-13-01.csv",
        ".people/2025-06-01.csv",
        "people/deep/2025-06-01.csv",
        "2025-06-01.csv",
    ],
)
def test_what_is_no_drop_is_not_looked_at(tmp_path, name):
    put(tmp_path, name)
    assert find_drops(tmp_path, date.min, date.max) == []


def test_no_landing_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such landing folder"):
        find_drops(tmp_path / "nowhere", DAY, DAY)


def test_a_drop_is_one_file_or_a_pattern(tmp_path):
    folder = tmp_path / "odd[1]" / "people"
    one, other = folder / "2025-06-01-a.csv", folder / "2025-06-01-b.csv"
    assert Drop("people", DAY, (one,)).input == str(one)
    pattern = Drop("people", DAY, (one, other)).input
    put(folder, one.name, other.name, "2025-06-02.csv")
    import glob

    assert sorted(glob.glob(pattern)) == [str(one), str(other)]
    assert Drop("people", DAY, (one, other.with_suffix(".parquet"))).input.endswith("2025-06-01*")


def test_the_job_of_a_drop_is_its_data_sets_file_with_input_and_output(tmp_path):
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "people.yaml").write_text("k: 7\nquasi_identifiers: [age]\n")
    drop = Drop("people", DAY, (tmp_path / "a: b, 'c'.csv",))
    job = read_job(drop.job(jobs, tmp_path / "releases"))
    assert job.k == 7
    assert job.input == str(drop.files[0])
    assert job.output == str(tmp_path / "releases" / "people" / "2025-06-01")
