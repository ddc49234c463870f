"""The ledger of releases: people who were released before are found, and refused where asked."""

from __future__ import annotations

import json
import logging
import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledger_runs import impatient
from mondrian_ops import anonymize, pipeline, storage
from mondrian_ops.core import sketch as core_sketch
from mondrian_ops.core.errors import JobError, PrivacyError, StorageError
from mondrian_ops.core.job import Job
from servers.stores import S3Folder

ROWS = 12_000

CANARY = "Zyx-wvu!tsr"  # of characters that base64 has not


def drop(first: int, rows: int = ROWS) -> pa.Table:
    """People with these numbers, who have the same name in every drop, and other rows."""
    generator = np.random.default_rng(first)
    return pa.table(
        {
            "name": [f"{CANARY} {at}" for at in range(first, first + rows)],
            "age": generator.integers(18, 90, rows),
            "size": generator.integers(150, 200, rows),
        }
    )


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    impatient(monkeypatch)
    return Nights(tmp_path)


class Nights:
    """Drops of a dataset, each released by a run of its own."""

    def __init__(self, here: Path) -> None:
        self.here = here
        self.ledger = here / "ledger"

    def job(self, night: int, table: pa.Table, **keys: object) -> Job:
        source = self.here / f"people-2025-01-{night:02d}.parquet"
        pq.write_table(table, source)
        return pipeline.load_job(
            {
                "input": str(source),
                "output": str(self.here / "out" / f"2025-01-{night:02d}"),
                "k": 5,
                "identifiers": ["name"],
                "quasi_identifiers": ["age", "size"],
                "cut": "median",
                "partitioning": {"fragments": 2},
                "ledger": str(self.ledger),
                **keys,
            }
        )

    def run(self, night: int, table: pa.Table, **keys: object) -> dict:
        return pipeline.run(self.job(night, table, **keys))

    def entries(self) -> list[dict]:
        return storage.Ledger(str(self.ledger)).read().entries

    def unsure(self) -> Path:
        """The one entry, whose run did not come to say that it published."""
        (path,) = (self.ledger / "releases").glob("*.json")
        path.with_suffix(".sure").unlink(missing_ok=True)
        return path


def test_a_third_of_the_people_again_is_told_with_its_share(nights, caplog):
    nights.run(1, drop(0))
    with caplog.at_level(logging.WARNING):
        report = nights.run(2, drop(7 * ROWS // 10))
    (overlap,) = report["ledger"]["overlaps"]
    assert overlap["error"] < 0.02
    assert abs(overlap["share"] - 0.3) < 4 * overlap["error"]
    assert not overlap["same"]
    assert overlap["dataset"].endswith("out/*")
    assert abs(report["ledger"]["people"] / ROWS - 1) < 0.07
    (note,) = (note for note in report["notes"] if "of its people" in note)
    assert note in caplog.text
    assert CANARY not in json.dumps(report)


def test_disjoint_drops_share_nothing(nights):
    nights.run(1, drop(0))
    report = nights.run(2, drop(ROWS), overlap="refuse")
    assert report["ledger"]["overlaps"] == []
    assert not any("people" in note for note in report["notes"])
    assert len(nights.entries()) == 2


def test_a_drop_beside_one_that_is_much_larger_is_told_or_refused(nights, monkeypatch):
    """All of them were released, and the sketches do not show it.

    The key is a given one: of few people, now and then one of another key's is in both sketches.
    """
    monkeypatch.setattr(core_sketch, "SIZE", 64)
    monkeypatch.setattr(storage.Ledger, "key", lambda _: bytes([3] * 32))
    nights.run(1, drop(0))
    few = drop(0).slice(0, 40)
    report = nights.run(2, few)
    assert any("so much larger than this drop" in note for note in report["notes"])
    with pytest.raises(PrivacyError, match="so much larger than this drop"):
        nights.run(3, drop(0).slice(100, 40), overlap="refuse")


def test_the_same_drop_again_is_told_as_that(nights):
    nights.run(1, drop(0))
    mixed = drop(0).take(np.random.default_rng(0).permutation(ROWS))
    (overlap,) = nights.run(2, mixed)["ledger"]["overlaps"]
    assert overlap["same"]
    assert overlap["share"] == 1.0
    (overlap,) = nights.run(3, drop(0, ROWS + 1))["ledger"]["overlaps"][1:]
    assert not overlap["same"]


def test_the_release_that_shares_most_is_named_first_and_the_others_are_counted(nights):
    for night, first in enumerate((0, 500, 900), 1):
        nights.run(night, drop(first, 1000))
    report = nights.run(4, drop(950, 1000))
    shares = [each["share"] for each in report["ledger"]["overlaps"]]
    assert shares == [0.95, 0.55, 0.05]
    assert any("95.0 % of its people" in note and "in 2 more" in note for note in report["notes"])


def test_where_no_overlap_is_wanted_nothing_is_published_and_the_last_release_stands(nights):
    nights.run(1, drop(0, 1000))
    before = {path.name: path.read_bytes() for path in (nights.here / "out/2025-01-01").iterdir()}
    with pytest.raises(
        PrivacyError, match=r"^overlap: .*10.0 % of its people.* set overlap: warn$"
    ):
        nights.run(2, drop(900, 1000), overlap="refuse")
    with pytest.raises(PrivacyError, match=r"^overlap: .*the same drop was released"):
        pipeline.run(nights.job(1, drop(0, 1000), overlap="refuse"))
    assert sorted(os.listdir(nights.here / "out")) == ["2025-01-01"]  # and no working files
    after = {path.name: path.read_bytes() for path in (nights.here / "out/2025-01-01").iterdir()}
    assert after == before
    assert len(nights.entries()) == 1


def phases(job: Job, run_id: str) -> dict:
    """A run as tasks do it, with an id that a retry has too."""
    work = storage.work_path(str(job.output), run_id)
    fragments = pipeline.partition(job, work=work)
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]
    return pipeline.wrap_up(job, work=work, summaries=summaries)


def checked(job: Job, run_id: str) -> str:
    """A run up to its publication; where its working files are."""
    work = storage.work_path(str(job.output), run_id)
    fragments = pipeline.partition(job, work=work)
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]
    pipeline.check(job, work=work, summaries=summaries)
    return work


def test_a_run_that_is_done_again_does_not_accuse_itself(nights):
    job = nights.job(1, drop(0, 1000), overlap="refuse")
    for _ in range(2):  # cleared and done again, with the same id
        assert phases(job, "scheduled")["ledger"]["overlaps"] == []
        pipeline.discard(storage.work_path(str(job.output), "scheduled"))
    with pytest.raises(PrivacyError, match="same drop"):
        phases(job, "manual")


class Killed(BaseException):
    """A process that ends here."""


@pytest.mark.parametrize("published", [False, True])
def test_a_run_killed_around_publication_is_in_the_ledger_if_it_was_published(
    nights, monkeypatch, published
):
    job = nights.job(1, drop(0, 1000), overlap="refuse")
    work = storage.work_path(str(job.output), "scheduled")
    publish = storage.publish

    def killed(*args):
        if published:
            publish(*args)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(storage, "publish", killed)
        with pytest.raises(Killed):
            phases(job, "scheduled")
    (entry,) = nights.entries()
    assert not entry["sure"]
    other = nights.job(2, drop(0, 1000), overlap="refuse")
    if not published:  # nor will be, with its working files gone
        pipeline.discard(work)
        assert phases(other, "other")["ledger"]["overlaps"] == []
        return
    with pytest.raises(PrivacyError, match="same drop"):
        phases(other, "other")
    report = pipeline.wrap_up(job, work=work, summaries=[])  # the retry
    assert report["ledger"]["overlaps"] == []
    (entry,) = nights.entries()
    assert entry["sure"]


def test_a_killed_run_that_may_be_retried_stands_in_the_way_until_its_files_are_gone(
    nights, monkeypatch
):
    first, second = (nights.job(at, drop(0, 1000), overlap="refuse") for at in (1, 2))

    def killed(*_args):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(storage, "publish", killed)
        with pytest.raises(Killed):
            phases(first, "scheduled")
    (path,) = (nights.ledger / "releases").iterdir()
    with pytest.raises(
        OSError, match=rf"^overlap: 1 other run.* run again .* its entry in the ledger: {path}$"
    ):
        phases(second, "other")
    assert [path] == list((nights.ledger / "releases").iterdir())
    assert not Path(str(second.output)).exists()
    assert nights.run(3, drop(5000, 1000), overlap="refuse")  # other people
    assert nights.run(4, drop(500, 1000))["ledger"]["overlaps"] == []  # it may be, and is not yet
    pipeline.discard(storage.work_path(str(first.output), "scheduled"))
    with pytest.raises(PrivacyError, match=r"50\.0 % of its people"):
        phases(second, "other")


def test_a_release_that_was_never_confirmed_counts_when_another_has_taken_its_place(
    nights, monkeypatch
):
    def killed(*args):
        storage.release.publish(*args)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(storage, "publish", killed)
        with pytest.raises(Killed):
            nights.run(1, drop(0, 1000))
    (entry,) = nights.entries()
    assert not entry["sure"]
    nights.run(1, drop(5000, 1000))
    assert [each["sure"] for each in nights.entries()] == [True, True]
    with pytest.raises(PrivacyError, match="same drop"):
        nights.run(2, drop(0, 1000), overlap="refuse")


@pytest.mark.parametrize("output", ["s3://no-connection@bucket/out", "ftp://host/out"])
def test_an_unsure_entry_whose_output_cannot_be_looked_at_counts(nights, caplog, output):
    nights.run(1, drop(0, 1000))
    path = nights.unsure()
    path.write_text(json.dumps({**json.loads(path.read_text()), "output": output}))
    report = nights.run(2, drop(900, 1000))
    assert [each["share"] for each in report["ledger"]["overlaps"]] == [0.1]
    assert "cannot tell whether it was published" in caplog.text
    assert CANARY not in caplog.text


def test_an_unsure_entry_whose_output_is_not_allowed_here_counts(nights, monkeypatch):
    nights.ledger = nights.here / "theirs" / "ledger"
    nights.run(1, drop(0, 1000))
    nights.unsure()
    other = nights.job(2, drop(0, 1000), output=str(nights.here / "theirs" / "2"), overlap="refuse")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_INPUTS", str(nights.here))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS", str(nights.here / "theirs"))
    with pytest.raises(PrivacyError, match="same drop"):
        pipeline.run(other)


def test_a_store_that_does_not_answer_does_not_stop_the_jobs_of_a_ledger(nights, monkeypatch):
    nights.run(1, drop(0, 1000))
    nights.unsure()
    other = nights.job(2, drop(500, 1000))
    asked, published = str(nights.here / "out" / "2025-01-01"), storage.published

    def silent(output, token):
        if output == asked:
            raise TimeoutError
        return published(output, token)

    monkeypatch.setattr(storage, "published", silent)
    assert pipeline.run(other)["ledger"]["overlaps"][0]["share"] == 0.5


def test_a_release_that_is_refused_for_good_leaves_no_entry(nights):
    job = nights.job(1, drop(0, 1000))
    work = checked(job, "late")
    pipeline.run(nights.job(1, drop(5000, 1000), ledger=None))
    with pytest.raises(StorageError, match="another run has published"):
        pipeline.publish(job, work=work)
    assert nights.entries() == []


def test_a_release_that_was_published_keeps_its_entry_whatever_was_raised_then(nights, monkeypatch):
    publish = storage.publish

    def late(*args):
        publish(*args)
        raise StorageError("too late")

    monkeypatch.setattr(storage, "publish", late)
    with pytest.raises(StorageError, match="too late"):
        nights.run(1, drop(0, 1000))
    assert len(nights.entries()) == 1


def test_a_release_that_may_be_tried_again_keeps_its_entry(nights, monkeypatch):
    def failing(*_args):
        raise OSError("disk")

    monkeypatch.setattr(storage, "publish", failing)
    with pytest.raises(OSError, match="disk"):
        nights.run(1, drop(0, 1000))
    (entry,) = nights.entries()
    assert not entry["sure"]


def test_who_is_released_between_the_check_and_the_publication_is_seen(nights):
    late, other = nights.job(1, drop(0, 1000), overlap="refuse"), nights.job(2, drop(0, 1000))
    work = checked(late, "late")
    pipeline.run(other)
    with pytest.raises(PrivacyError, match="same drop"):
        pipeline.publish(late, work=work)
    assert not Path(str(late.output)).exists()


def test_the_ledger_holds_no_name_and_is_private(nights):
    nights.run(1, drop(0, 1000))
    assert stat.S_IMODE(nights.ledger.stat().st_mode) == 0o700
    assert stat.S_IMODE((nights.ledger / "key").stat().st_mode) == 0o600
    for path in nights.ledger.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes()
    (entry,) = nights.entries()
    assert len(json.dumps(entry)) < 50_000
    assert entry["rows"]["published"] == 1000


def test_two_ledgers_hash_the_same_people_differently(nights, tmp_path):
    nights.run(1, drop(0, 1000))
    nights.run(2, drop(0, 1000), ledger=str(tmp_path / "other"))
    sketches = [
        json.loads(path.read_text())["sketch"] for path in tmp_path.glob("*/releases/*.json")
    ]
    assert sketches[0]["least"] != sketches[1]["least"]


def test_people_are_told_apart_by_text_whatever_their_columns_type(nights):
    numbers = drop(0, 1000).set_column(0, "name", pa.array(range(1000), pa.int32()))
    texts = numbers.set_column(0, "name", pa.array([str(at) for at in range(1000)]))
    coded = texts.set_column(0, "name", texts["name"].dictionary_encode())
    nights.run(1, numbers)
    for night, table in enumerate((texts, coded), 2):
        assert all(each["same"] for each in nights.run(night, table)["ledger"]["overlaps"])
    assert len(nights.entries()) == 3


def test_rows_without_a_name_are_nobodys(nights):
    nameless = drop(0, 1000).set_column(0, "name", pa.nulls(1000, pa.string()))
    assert nights.run(1, nameless)["ledger"]["people"] == 0
    assert nights.run(2, nameless)["ledger"]["overlaps"] == []


def test_without_identifiers_whole_rows_are_compared(nights):
    nights.run(1, drop(0, 1000), identifiers=[])
    report = nights.run(2, pa.concat_tables([drop(0, 1000)[:250], drop(5000, 750)]), identifiers=[])
    assert report["ledger"]["people_by"] == ["age", "name", "size"]
    (overlap,) = report["ledger"]["overlaps"]
    assert overlap["share"] == 0.25


def test_columns_by_which_nobody_can_be_told_apart_are_refused(nights):
    listed = drop(0, 1000).set_column(0, "name", pa.array([[at] for at in range(1000)]))
    with pytest.raises(JobError, match="ledger: name: none of these columns has text, numbers"):
        nights.run(1, listed)


def test_a_damaged_entry_is_told_or_refused_until_it_is_restored_or_removed(nights, caplog):
    for night in (1, 2):
        nights.run(night, drop(night * 1000, 1000))
    paths = sorted((nights.ledger / "releases").glob("*.json"))
    whole = [path.read_bytes() for path in paths]
    for path, content in zip(paths, whole, strict=True):
        path.write_bytes(content[: len(content) // 2])
    report = nights.run(3, drop(4000, 1000))
    (note,) = (note for note in report["notes"] if "damaged" in note)
    assert f"{paths[0]} and 1 more is damaged" in note
    assert note in caplog.text
    paths[0].write_bytes(whole[0])
    with pytest.raises(
        PrivacyError, match=rf"^overlap: .*{paths[1]} is damaged.*restore.*remove.*overlap: warn$"
    ):
        nights.run(4, drop(5000, 1000), overlap="refuse")
    assert not (nights.here / "out" / "2025-01-04").exists()
    paths[1].unlink()
    assert nights.run(4, drop(5000, 1000), overlap="refuse")["ledger"]["overlaps"] == []


def test_an_entry_that_is_damaged_after_the_check_is_seen_before_publication(nights):
    nights.run(1, drop(0, 1000))
    (path,) = (nights.ledger / "releases").glob("*.json")
    job = nights.job(2, drop(2000, 1000), overlap="refuse")
    work = checked(job, "late")
    path.write_text("null")
    with pytest.raises(PrivacyError, match="is damaged"):
        pipeline.publish(job, work=work)
    assert not Path(str(job.output)).exists()
    assert list(path.parent.glob("*.json")) == [path]


def test_a_damaged_key_is_refused(nights):
    nights.run(1, drop(0, 1000))
    (nights.ledger / "key").write_bytes(b"")
    with pytest.raises(StorageError, match="is not a key of 32 bytes"):
        nights.run(3, drop(4000, 1000))


TEXTS = ("id", "run", "token", "work", "output", "time", "dataset", "key")


@pytest.mark.parametrize(
    "damage",
    [
        *({key: None} for key in (*TEXTS, "by", "sketch")),
        {"by": "name"},
        {"by": ["name", 1]},
        {"sketch": {"rows": 1}},
        {"sketch": {"rows": 1, "total": "0", "least": "?"}},
    ],
)
def test_an_entry_that_lacks_something_is_damaged(nights, damage):
    ledger = storage.Ledger(str(nights.ledger))
    sketch = core_sketch.Sketch.nothing().to_json()
    whole = {**dict.fromkeys(TEXTS, "x"), "by": ["name"], "sketch": sketch}
    ledger.write(whole)
    assert ledger.read() == ([{**whole, "sure": False}], [])
    for broken in ({**whole, **damage}, {key: whole[key] for key in whole.keys() - damage.keys()}):
        (nights.ledger / "releases" / "x.json").write_text(json.dumps(broken))
        assert ledger.read() == ([], [f"{nights.ledger}/releases/x.json"])


def test_an_entry_that_goes_while_the_ledger_is_read_is_none(nights, monkeypatch):
    nights.run(1, drop(0, 1000))
    monkeypatch.setattr("mondrian_ops.storage.ledger.names_in", lambda _: {"gone.json": False})
    assert storage.Ledger(str(nights.ledger)).read() == ([], [])


@pytest.mark.parametrize("overlap", ["warn", "refuse"])
def test_a_key_that_is_lost_is_not_made_anew_beside_its_entries(nights, overlap):
    nights.run(1, drop(0, 1000))
    key = (nights.ledger / "key").read_bytes()
    (nights.ledger / "key").unlink()
    with pytest.raises(StorageError, match=r"^ledger: .*/key is missing.* 1 release.*restore it"):
        nights.run(2, drop(0, 1000), overlap=overlap)
    assert [path.name for path in nights.ledger.iterdir()] == ["releases"]
    (nights.ledger / "key").write_bytes(key)
    assert nights.run(2, drop(0, 1000))["ledger"]["overlaps"][0]["same"]


def test_releases_of_another_key_are_counted_and_refused(nights, caplog):
    for night in (1, 2):
        nights.run(night, drop(night * 1000, 1000))
    (nights.ledger / "key").write_bytes(bytes(32))
    with pytest.raises(PrivacyError, match=r"^overlap: .*2 release\(s\) .*another key.*restore"):
        nights.run(3, drop(0, 1000), overlap="refuse")
    report = nights.run(3, drop(0, 1000))
    (note,) = (note for note in report["notes"] if "another key" in note)
    assert "2 release(s)" in note
    assert note in caplog.text


def test_releases_that_tell_people_apart_by_other_columns_are_counted(nights):
    nights.run(1, drop(0, 1000), identifiers=[])
    nights.run(2, drop(0, 1000))
    report = nights.run(3, drop(5000, 1000), overlap="refuse")
    (note,) = (note for note in report["notes"] if "other columns" in note)
    assert "1 release(s)" in note


def test_a_release_of_a_key_that_was_replaced_meanwhile_is_not_published(nights):
    job = nights.job(1, drop(0, 1000))
    work = storage.work_path(str(job.output), "slow")
    fragments = pipeline.partition(job, work=work)
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]
    (nights.ledger / "key").write_bytes(bytes(32))
    with pytest.raises(StorageError, match="changed since this run began"):
        pipeline.wrap_up(job, work=work, summaries=summaries)
    assert not Path(str(job.output)).exists()
    assert not (nights.ledger / "releases").exists()


def test_a_job_without_a_ledger_makes_none(nights):
    report = nights.run(1, drop(0, 1000), ledger=None)
    assert "ledger" not in report
    assert not nights.ledger.exists()


def test_a_table_in_memory_goes_into_no_ledger(nights):
    keys = {"k": 5, "quasi_identifiers": ["age"], "ledger": str(nights.ledger)}
    with pytest.raises(JobError, match="ledger: a release in memory is not recorded"):
        anonymize(drop(0, 1000), keys)


@pytest.mark.parametrize(
    "ledger",
    [
        *("out/2025-01-01", "out/2025-01-01/", "out/2025-01-01/ledger", "out", "."),
        *("out/x/../2025-01-01/l", "link", "link/ledger"),
    ],
)
def test_a_ledger_that_nests_with_the_output_is_refused_before_any_work(nights, ledger):
    job = nights.job(1, drop(0, 1000), ledger=os.path.join(nights.here, ledger))
    (nights.here / "out" / "2025-01-01").mkdir(parents=True)
    (nights.here / "link").symlink_to(nights.here / "out" / "2025-01-01")
    with pytest.raises(JobError, match=r"^ledger: .* the output .*one lies in the other; choose"):
        pipeline.run(job)
    assert list((nights.here / "out").rglob("*")) == [nights.here / "out" / "2025-01-01"]


@pytest.mark.parametrize("ledger", ["elsewhere/ledger", "out/.hidden", "out/link/ledger"])
def test_where_locations_are_limited_a_ledger_lies_below_an_allowed_output(
    nights, monkeypatch, ledger
):
    (nights.here / "out").mkdir()
    (nights.here / "out" / "link").symlink_to(nights.here / "elsewhere")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_INPUTS", str(nights.here))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS", str(nights.here / "out"))
    with pytest.raises(JobError, match=r"^ledger: "):
        nights.run(1, drop(0, 1000), ledger=str(nights.here / ledger))
    assert not (nights.here / "elsewhere").exists()
    assert nights.run(1, drop(0, 1000), ledger=str(nights.here / "out" / "ledger"))


def test_a_ledger_by_its_url_is_the_same_place(nights):
    job = nights.job(1, drop(0, 1000), ledger=(nights.here / "out/2025-01-01/ledger").as_uri())
    with pytest.raises(JobError, match=r"^ledger: .* the output"):
        pipeline.run(job)


def test_a_ledger_in_the_input_is_refused_and_one_beside_it_is_not(nights):
    drops = nights.here / "drops"
    drops.mkdir()
    pq.write_table(drop(0, 1000), drops / "people.parquet")
    for source, ledger in (
        ("drops", "drops"),
        ("drops", "drops/ledger"),
        ("drops/*", "drops/ledger"),
        ("drops/**/*.parquet", "drops/ledger"),
    ):
        job = nights.job(1, drop(0, 1000), input=f"{nights.here}/{source}")
        with pytest.raises(
            JobError, match=r"^ledger: .* lies inside the input.*; choose a directory"
        ):
            pipeline.run(replace(job, ledger=f"{nights.here}/{ledger}"))
        assert os.listdir(drops) == ["people.parquet"]
    job = nights.job(1, drop(0, 1000), input=f"{drops}/*.parquet", ledger=f"{drops}/ledger")
    assert pipeline.run(job)["ledger"]["overlaps"] == []
    assert nights.run(2, drop(0, 1000), ledger=f"{nights.here}/out/2025-01-02-ledger")


@pytest.mark.s3
def test_a_ledger_can_lie_on_a_remote_store(nights: Nights, s3_folder: S3Folder) -> None:
    ledger = s3_folder.url("ledger")
    assert nights.run(1, drop(0, 1000), ledger=ledger)["ledger"]["overlaps"] == []
    with pytest.raises(PrivacyError, match="same drop"):
        nights.run(2, drop(0, 1000), ledger=ledger, overlap="refuse")
    assert s3_folder.names("ledger") == ["key", "releases"]
    name, sure = s3_folder.names("ledger/releases")
    assert (Path(name).suffix, Path(sure).suffix) == (".json", ".sure")
    s3_folder.put(f"ledger/releases/{name}", b"[1")
    with pytest.raises(PrivacyError, match=rf"{ledger}/releases/{name} is damaged"):
        nights.run(2, drop(5000, 1000), ledger=ledger, overlap="refuse")
    notes = nights.run(2, drop(5000, 1000), ledger=ledger)["notes"]
    assert any(f"{ledger}/releases/{name} is damaged" in note for note in notes)
