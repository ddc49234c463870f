"""People who were released before are found, and refused where asked."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import anonymize, catalogue, pipeline
from mondrian_ops import publish as publishing
from mondrian_ops.catalogue import opening
from mondrian_ops.data import sketch as core_sketch
from mondrian_ops.errors import JobError, PrivacyError, StorageError
from mondrian_ops.job.job import Job
from people_runs import publications
from tiers import one_in

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
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


class Nights:
    """Drops of a dataset, each released by a run of its own."""

    def __init__(self, here: Path) -> None:
        self.here = here

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
                "overlap": "warn",
                **keys,
            }
        )

    def run(self, night: int, table: pa.Table, **keys: object) -> dict:
        return pipeline.run(self.job(night, table, **keys))


def test_a_third_of_the_people_again_is_told_with_its_share(nights, caplog):
    nights.run(1, drop(0))
    with caplog.at_level(logging.WARNING):
        report = nights.run(2, drop(7 * ROWS // 10))
    (overlap,) = report["overlap"]["releases"]
    assert overlap["error"] < 0.02
    assert abs(overlap["share"] - 0.3) < 4 * overlap["error"]
    assert not overlap["same"]
    assert overlap["dataset"].endswith("out/*")
    assert abs(report["overlap"]["people"] / ROWS - 1) < 0.07
    (note,) = (note for note in report["notes"] if "of its people" in note)
    assert note in caplog.text
    assert CANARY not in json.dumps(report)


def test_disjoint_drops_share_nothing(nights):
    nights.run(1, drop(0))
    report = nights.run(2, drop(ROWS), overlap="refuse")
    assert report["overlap"]["releases"] == []
    assert not any("people" in note for note in report["notes"])
    assert len(publications()) == 2


def test_a_drop_beside_one_that_is_much_larger_is_told_or_refused(nights, monkeypatch):
    """All of them were released, and the sketches do not show it.

    The key is a given one: of few people, now and then one of another key's is in both sketches.
    """
    monkeypatch.setattr(core_sketch, "SIZE", 64)
    monkeypatch.setattr(catalogue.Catalogue, "key", bytes([3] * 32))
    nights.run(1, drop(0))
    few = drop(0).slice(0, 40)
    report = nights.run(2, few)
    assert any("so much larger than this drop" in note for note in report["notes"])
    with pytest.raises(PrivacyError, match="so much larger than this drop"):
        nights.run(3, drop(0).slice(100, 40), overlap="refuse")


def test_the_same_drop_again_is_told_as_that(nights):
    nights.run(1, drop(0))
    mixed = drop(0).take(np.random.default_rng(0).permutation(ROWS))
    (overlap,) = nights.run(2, mixed)["overlap"]["releases"]
    assert overlap["same"]
    assert overlap["share"] == 1.0
    (overlap,) = nights.run(3, drop(0, ROWS + 1))["overlap"]["releases"][1:]
    assert not overlap["same"]


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
    assert len(publications()) == 1


def phases(job: Job, run_id: str) -> dict:
    """A run as tasks do it, with an id that a retry has too."""
    work = publishing.work_path(str(job.output), run_id)
    fragments = pipeline.partition(job, work=work)
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]
    return pipeline.wrap_up(job, work=work, summaries=summaries)


def checked(job: Job, run_id: str) -> str:
    """A run up to its publication; where its working files are."""
    work = publishing.work_path(str(job.output), run_id)
    fragments = pipeline.partition(job, work=work)
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]
    pipeline.check(job, work=work, summaries=summaries)
    return work


def test_a_run_that_is_done_again_does_not_accuse_itself(nights):
    job = nights.job(1, drop(0, 1000), overlap="refuse")
    for _ in range(2):  # cleared and done again, with the same id
        assert phases(job, "scheduled")["overlap"]["releases"] == []
        pipeline.discard(publishing.work_path(str(job.output), "scheduled"))
    with pytest.raises(PrivacyError, match="same drop"):
        phases(job, "manual")


class Killed(BaseException):
    """A process that ends here."""


@pytest.mark.parametrize("published", [False, True])
def test_a_run_killed_around_publication_is_recorded_if_it_was_published(
    nights, monkeypatch, published
):
    job = nights.job(1, drop(0, 1000), overlap="refuse")
    work = publishing.work_path(str(job.output), "scheduled")
    publish = publishing.publish

    def killed(*args):
        if published:
            publish(*args)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "publish", killed)
        with pytest.raises(Killed):
            phases(job, "scheduled")
    (found,) = publications()
    assert not found.published
    other = nights.job(2, drop(0, 1000), overlap="refuse")
    if not published:  # nor will be, with its working files gone
        pipeline.discard(work)
        assert phases(other, "other")["overlap"]["releases"] == []
        return
    with pytest.raises(PrivacyError, match="same drop"):
        phases(other, "other")
    report = pipeline.wrap_up(job, work=work, summaries=[])  # the retry
    assert report["overlap"]["releases"] == []
    (found,) = publications()
    assert found.published


def test_a_release_that_was_never_confirmed_counts_when_another_has_taken_its_place(
    nights, monkeypatch
):
    never_confirmed(nights, monkeypatch)
    nights.run(1, drop(5000, 1000))
    assert [each.published for each in publications()] == [True, True]
    with pytest.raises(PrivacyError, match="same drop"):
        nights.run(2, drop(0, 1000), overlap="refuse")


def never_confirmed(nights, monkeypatch, **keys):
    """The first night's release, whose publisher was killed before it could say so."""

    def killed(*args):
        publishing.release.publish(*args)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "publish", killed)
        with pytest.raises(Killed):
            nights.run(1, drop(0, 1000), **keys)
    (found,) = publications()
    assert not found.published


def test_a_store_that_does_not_answer_does_not_stop_others(nights, monkeypatch):
    never_confirmed(nights, monkeypatch)
    other = nights.job(2, drop(500, 1000))
    asked, published = str(nights.here / "out" / "2025-01-01"), publishing.published

    def silent(output, token):
        if output == asked:
            raise TimeoutError
        return published(output, token)

    monkeypatch.setattr(publishing, "published", silent)
    assert pipeline.run(other)["overlap"]["releases"][0]["share"] == 0.5


def test_the_catalogue_holds_no_name(nights):
    report = nights.run(1, drop(0, 1000))
    (found,) = publications()
    assert len(found.sketch.least) == report["rows"]["published"] == 1000
    folder = Path(os.environ["MONDRIAN_OPS_CATALOGUE"]).parent
    content = b"".join(path.read_bytes() for path in folder.iterdir())
    assert found.sketch.least.tobytes()[:500] in content
    assert CANARY.encode() not in content


def test_people_are_told_apart_by_text_whatever_their_columns_type(nights):
    numbers = drop(0, 1000).set_column(0, "name", pa.array(range(1000), pa.int32()))
    texts = numbers.set_column(0, "name", pa.array([str(at) for at in range(1000)]))
    coded = texts.set_column(0, "name", texts["name"].dictionary_encode())
    nights.run(1, numbers)
    for night, table in enumerate((texts, coded), 2):
        assert all(each["same"] for each in nights.run(night, table)["overlap"]["releases"])
    assert len(publications()) == 3


def test_rows_without_a_name_are_nobodys(nights):
    nameless = drop(0, 1000).set_column(0, "name", pa.nulls(1000, pa.string()))
    assert nights.run(1, nameless)["overlap"]["people"] == 0
    assert nights.run(2, nameless)["overlap"]["releases"] == []


def test_without_identifiers_whole_rows_are_compared(nights):
    nights.run(1, drop(0, 1000), identifiers=[])
    report = nights.run(2, pa.concat_tables([drop(0, 1000)[:250], drop(5000, 750)]), identifiers=[])
    assert report["overlap"]["people_by"] == ["age", "name", "size"]
    (overlap,) = report["overlap"]["releases"]
    assert overlap["share"] == 0.25


def test_columns_by_which_nobody_can_be_told_apart_are_refused(nights):
    listed = drop(0, 1000).set_column(0, "name", pa.array([[at] for at in range(1000)]))
    with pytest.raises(JobError, match="overlap: name: none of these columns has text, numbers"):
        nights.run(1, listed)


@pytest.mark.parametrize("overlap", one_in(2, ["warn", "refuse"]))
@pytest.mark.parametrize(
    ("other_key", "error"), [(None, "is missing.* restore it"), ("0" * 64, "is not the one")]
)
def test_with_a_lost_or_another_key_nothing_is_published(nights, overlap, other_key, error):
    nights.run(1, drop(0, 1000))
    path = Path(os.environ["MONDRIAN_OPS_CATALOGUE_KEY"])
    key = path.read_text()
    path.write_text(other_key) if other_key else path.unlink()
    opening._opened.cache_clear()  # as in another process
    with pytest.raises(StorageError, match=rf"^catalogue: .*{error}"):
        nights.run(2, drop(0, 1000), overlap=overlap)
    assert os.listdir(nights.here / "out") == ["2025-01-01"]
    path.write_text(key)
    assert nights.run(2, drop(0, 1000))["overlap"]["releases"][0]["same"]


def test_a_job_that_ignores_overlaps_makes_no_catalogue(nights):
    assert "overlap" not in nights.run(1, drop(0, 1000), overlap="ignore")
    assert not Path(os.environ["MONDRIAN_OPS_CATALOGUE"]).exists()


def test_a_table_in_memory_is_not_recorded(nights):
    keys = {"k": 5, "quasi_identifiers": ["age"], "overlap": "warn"}
    with pytest.raises(JobError, match="overlap: a release in memory is not recorded"):
        anonymize(drop(0, 1000), keys)
