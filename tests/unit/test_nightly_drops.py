"""Which drops a landing folder holds, and the jobs they become."""

from __future__ import annotations

import glob
from datetime import date
from pathlib import Path

import pytest

from mondrian_ops.core.errors import InputError
from mondrian_ops.nightly_drops import Drop, find_drops
from mondrian_ops.storage import load_job
from mondrian_ops.storage.discovery import data_files

DAY = date(2025, 6, 1)


def put(landing: Path, *names: str) -> None:
    for name in names:
        path = landing / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a\n1\n")


def test_drops_are_found_by_data_set_and_day(tmp_path):
    put(tmp_path, "people/2025-06-01.csv", "poker/2025-06-01.parquet", "poker/2025-06-02.parquet")
    put(tmp_path, "poker/2025-05-31.parquet", "visits/2025-06-01-b.csv", "visits/2025-06-01-a.csv")
    assert [drop.name for drop in find_drops(str(tmp_path), DAY, DAY)] == [
        "people/2025-06-01",
        "poker/2025-06-01",
        "visits/2025-06-01",
    ]
    assert len(find_drops(str(tmp_path), DAY, date(2025, 6, 2))) == 4


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
    assert find_drops(str(tmp_path), date.min, date.max) == []


def test_no_landing_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such landing folder"):
        find_drops(str(tmp_path / "nowhere"), DAY, DAY)


def test_a_drop_is_one_file_or_a_pattern(tmp_path):
    folder = tmp_path / "odd[1]" / "people"
    one, other = str(folder / "2025-06-01-a.csv"), str(folder / "2025-06-01-b.csv")
    assert Drop("people", DAY, (one,)).input == one
    pattern = Drop("people", DAY, (one, other)).input
    put(folder, "2025-06-01-a.csv", "2025-06-01-b.csv", "2025-06-02.csv")
    assert sorted(glob.glob(pattern)) == [one, other]
    assert Drop("people", DAY, (one, f"{other}.parquet")).input.endswith("2025-06-01*")


def test_drops_on_a_remote_store(store):
    content = {"2025-06-01-a.csv": b"n\n1\n", "2025-06-01-b.csv": b"n\n2\n", "_x.csv": b""}
    for name, text in content.items():
        store.put(f"landing[1]/people/{name}", text)
    store.put("landing[1]/_old/2025-06-01.csv", b"")
    (drop,) = find_drops(store.url("landing[1]"), DAY, DAY)
    assert drop.name == "people/2025-06-01"
    assert [file.url.rpartition("/")[2] for file in data_files(drop.input)] == [
        "2025-06-01-a.csv",
        "2025-06-01-b.csv",
    ]
    (option,) = [
        each for each in drop.job(Path("jobs"), store.url("out"))["set"] if "output" in each
    ]
    assert option == f'output="{store.url("out/people/2025-06-01")}"'
    with pytest.raises(InputError, match="no such landing folder"):
        find_drops(store.url("nowhere"), DAY, DAY)


def test_the_job_of_a_drop_is_its_data_sets_file_with_input_and_output(tmp_path):
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "people.yaml").write_text("k: 7\nquasi_identifiers: [age]\n")
    drop = Drop("people", DAY, (str(tmp_path / "a: b, 'c'.csv"),))
    source = drop.job(jobs, str(tmp_path / "releases"))
    job = load_job(source["file"], source["set"])
    assert job.k == 7
    assert job.input == drop.files[0]
    assert job.output == str(tmp_path / "releases" / "people" / "2025-06-01")
