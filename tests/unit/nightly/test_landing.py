"""Which drops a landing folder holds, when they are complete, and the jobs they become."""

from __future__ import annotations

import glob
import os
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from mondrian_ops import stores
from mondrian_ops.errors import InputError
from mondrian_ops.nightly.landing import Drop, read_landing
from mondrian_ops.stores import load_job
from mondrian_ops.tables.discovery import data_files

DAY = date(2025, 6, 1)
TEN_MINUTES = timedelta(minutes=10)


def put(landing: Path, *names: str) -> None:
    for name in names:
        path = landing / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a\n1\n")


def drops_in(landing: object) -> list[Drop]:
    return [drop for drops in read_landing(str(landing)).drops.values() for drop in drops]


def test_drops_are_found_by_data_set_and_day(tmp_path):
    put(tmp_path, "people/2025-06-01.csv", "poker/2025-06-02.parquet", "poker/2025-06-01.parquet")
    put(tmp_path, "visits/2025-06-01-b.csv.gz", "visits/2025-06-01-a.csv.gz")
    put(tmp_path, "stays/2025-06-01/part-0.parquet", "stays/2025-06-01/_SUCCESS")
    assert [drop.name for drop in drops_in(tmp_path)] == [
        "people/2025-06-01",
        "poker/2025-06-01",
        "poker/2025-06-02",
        "stays/2025-06-01",
        "visits/2025-06-01",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "people/.2025-06-01.csv",
        "people/_2025-06-01.csv",
        "people/2025-06-01.csv.tmp",
        "people/2025-06-01.json",
        "people/2025-06-011.csv",
        "people/2025-13-01.csv",
        "people/2025-06-01-late/part-0.csv",
        "people/_2025-06-01/part-0.csv",
        ".people/2025-06-01.csv",
        "people/deep/2025-06-01.csv",
        "2025-06-01.csv",
    ],
)
def test_what_is_no_drop_is_not_looked_at(tmp_path, name):
    put(tmp_path, name)
    assert read_landing(str(tmp_path)) == ({}, {})


def test_no_landing_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such landing folder"):
        read_landing(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("dataset", ["s3:", "a\nb", "%2e%2e", "a[1]", "-rf", "x" * 201])
def test_a_data_sets_name_is_no_url_pattern_or_option(tmp_path, dataset):
    put(tmp_path, f"{dataset}/2025-06-01.csv", "people/2025-06-01.csv")
    landing = read_landing(str(tmp_path))
    assert list(landing.drops) == ["people"]
    assert "rename the folder" in landing.unusable[ascii(dataset)]
    assert "\n" not in "".join(landing.unusable)


def test_a_folder_that_cannot_be_read_does_not_affect_the_others(tmp_path, monkeypatch):
    put(tmp_path, "people/2025-06-01.csv", "secret/2025-06-01.csv", "lost#found/x.csv")

    def names_in(folder: str) -> dict[str, bool]:  # root may read every folder
        if Path(folder).name in ("secret", "lost#found"):
            raise PermissionError(folder)
        return readable(folder)

    readable = stores.names_in
    monkeypatch.setattr(stores, "names_in", names_in)
    landing = read_landing(str(tmp_path))
    assert list(landing.drops) == ["people"]
    assert list(landing.unusable) == ["secret"]


def test_a_directory_and_a_file_of_one_day_are_no_drop(tmp_path):
    put(tmp_path, "people/2025-06-01/part-0.csv", "people/2025-06-01.csv")
    landing = read_landing(str(tmp_path))
    assert landing.drops == {}
    assert landing.unusable["people/2025-06-01"].endswith("remove one")


def test_a_drop_is_one_file_a_directory_or_a_pattern(tmp_path):
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
    store.put("landing[1]/stays/2025-06-01/part-0.csv", b"n\n1\n")
    drop, directory = drops_in(store.url("landing[1]"))
    assert drop.name == "people/2025-06-01"
    assert [file.url.rpartition("/")[2] for file in data_files(drop.input)] == [
        "2025-06-01-a.csv",
        "2025-06-01-b.csv",
    ]
    (option,) = [
        each for each in drop.job(Path("jobs"), store.url("out"))["set"] if "output" in each
    ]
    assert option == f'output="{store.url("out/people/2025-06-01")}"'
    now, later = datetime.now(UTC), datetime.now(UTC) + timedelta(minutes=11)
    assert "settles in 10" in str(drop.incomplete(now, TEN_MINUTES))
    assert drop.incomplete(later, TEN_MINUTES) is None
    assert "no _SUCCESS" in str(directory.incomplete(later, TEN_MINUTES))
    store.put("landing[1]/stays/2025-06-01/_SUCCESS", b"")
    assert directory.incomplete(now, TEN_MINUTES) is None
    before = directory.version
    store.put("landing[1]/stays/2025-06-01/part-1.csv", b"n\n1\n")
    assert drops_in(store.url("landing[1]"))[1].version != before
    with pytest.raises(InputError, match="no such landing folder"):
        read_landing(store.url("nowhere"))


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


# When a drop is complete


def reason(landing: Path, after: timedelta = timedelta(0), settle: timedelta = TEN_MINUTES):
    (drop,) = drops_in(landing)
    return drop.incomplete(datetime.now(UTC) + after, settle)


def test_a_file_is_complete_when_it_has_not_changed_for_a_while(tmp_path):
    put(tmp_path, "people/2025-06-01.csv")
    assert reason(tmp_path) == "it changed 0 minutes ago, and settles in 10"
    assert reason(tmp_path, after=timedelta(minutes=9, seconds=50))
    assert reason(tmp_path, after=TEN_MINUTES) is None
    assert reason(tmp_path, settle=timedelta(0)) is None


def test_a_drop_is_as_young_as_its_youngest_file(tmp_path):
    put(tmp_path, "people/2025-06-01-a.csv", "people/2025-06-01-b.csv")
    (drop,) = drops_in(tmp_path)
    first = (tmp_path / "people" / "2025-06-01-a.csv").stat().st_ctime_ns
    moment = datetime.fromtimestamp(first / 1e9, UTC) + TEN_MINUTES
    time.sleep(0.01)
    put(tmp_path, "people/2025-06-01-b.csv")
    assert drop.incomplete(moment, TEN_MINUTES)


def test_a_copy_that_keeps_the_time_of_its_original_has_to_settle_too(tmp_path):
    """As do the ones of rsync, tar and `cp -p`: the time of modification says nothing."""
    put(tmp_path, "people/2025-06-01.csv")
    for moment in (0, 4_000_000_000):
        os.utime(tmp_path / "people" / "2025-06-01.csv", (moment, moment))
        assert reason(tmp_path)
        assert reason(tmp_path, after=TEN_MINUTES) is None


def test_a_directory_is_complete_with_its_marker(tmp_path):
    put(tmp_path, "people/2025-06-01/part-0.csv")
    assert reason(tmp_path, after=timedelta(days=9)) == "the directory has no _SUCCESS"
    put(tmp_path, "people/2025-06-01/_SUCCESS")
    assert reason(tmp_path) is None


def test_a_marker_that_is_older_than_a_file_is_not_enough(tmp_path):
    """One that was copied before the files, left from a delivery before, or forged."""
    put(tmp_path, "people/2025-06-01/_SUCCESS")
    time.sleep(0.01)
    put(tmp_path, "people/2025-06-01/part-0.csv")
    os.utime(tmp_path / "people" / "2025-06-01" / "_SUCCESS", (4e9, 4e9))
    assert reason(tmp_path) is None  # it was touched after the files
    put(tmp_path, "people/2025-06-01/deep/part-1.csv")
    assert reason(tmp_path)
    assert reason(tmp_path, after=TEN_MINUTES) is None


@pytest.mark.parametrize("kind", ["directory", "broken link"])
def test_a_marker_is_a_file(tmp_path, kind):
    put(tmp_path, "people/2025-06-01/part-0.csv")
    marker = tmp_path / "people" / "2025-06-01" / "_SUCCESS"
    marker.mkdir() if kind == "directory" else marker.symlink_to(tmp_path / "nowhere")
    assert reason(tmp_path, after=timedelta(days=9)) == "the directory has no _SUCCESS"


def test_what_cannot_be_read_is_left_to_the_tasks_of_the_drop(tmp_path):
    (tmp_path / "people").mkdir()
    (tmp_path / "people" / "2025-06-01.csv").symlink_to(tmp_path / "nowhere")
    (drop,) = drops_in(tmp_path)
    assert drop.incomplete(datetime.now(UTC), TEN_MINUTES) is None
    assert drop.version is None


def test_the_version_of_a_drop_is_that_of_its_files(tmp_path):
    def version() -> str | None:
        (drop,) = drops_in(tmp_path)
        return drop.version

    put(tmp_path, "people/2025-06-01-a.csv")
    file = tmp_path / "people" / "2025-06-01-a.csv"
    first = version()
    file.chmod(0o600)  # no new delivery
    assert version() == first
    os.utime(file, (5, 5))
    second = version()
    assert second != first
    put(tmp_path, "people/2025-06-01-b.csv")
    assert version() not in (first, second)
