"""The parts of a first phase one by one: retried, killed or obsolete."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline, storage
from mondrian_ops.algorithms.tds import TwoPhase
from mondrian_ops.core.errors import StorageError
from mondrian_ops.engines.run import Run
from mondrian_ops.storage import WorkDir
from published_text import in_any_order


@pytest.fixture
def top_down(tmp_path):
    """A job with a first phase in three parts."""
    rng = np.random.default_rng(6)
    table = {"x": rng.integers(0, 60, 900), "y": rng.integers(0, 9, 900), "s": np.arange(900) % 4}
    pq.write_table(pa.table(table), tmp_path / "in.parquet")
    return pipeline.load_job(
        {
            "input": str(tmp_path / "in.parquet"),
            "output": str(tmp_path / "out"),
            "k": 5,
            "l": 2,
            "quasi_identifiers": ["x", "y"],
            "sensitive": ["s"],
            "partitioning": {"fragments": 2, "sample": 1.0},
            "algorithm": "tds",
            "tds": {"partitions": 3, "k_intermediate": 40},
        }
    )


@pytest.fixture
def parts(top_down, tmp_path):
    """Its parts, counted."""
    work = str(tmp_path / "work")
    pipeline.partition(top_down, work=work, recode=False)
    return pipeline.parts_to_map(top_down, work)


def names(work):
    return sorted(path.name for path in Path(work).iterdir())


def test_each_part_is_specialized_by_itself_and_all_of_them_decide(top_down, parts):
    assert [(each.part, each.parts) for each in parts] == [(0, 3), (1, 3), (2, 3)]
    summaries = [pipeline.specialize_part(part) for part in parts]
    assert sum(each.rows for each in summaries) == 900
    assert all(each.rows > 200 and each.specializations for each in summaries)
    work = parts[0].work
    fragments = pipeline.recode(work, summaries)
    assert sum(each.rows for each in fragments) == 900
    state = Run(WorkDir(work)).state
    by_part = {each.part: each.specializations for each in summaries}
    assert state.recoding["specializations"]["parts"] == [by_part[part] for part in range(3)]
    assert state.recoding["k_intermediate"] == 40


def test_a_part_done_again_and_a_decision_made_again_change_nothing(top_down, parts, tmp_path):
    work = parts[0].work
    for part in [*parts, parts[1]]:
        pipeline.specialize_part(part)
    fragments = pipeline.recode(work)
    state = Run(WorkDir(work)).state
    pipeline.specialize_part(parts[0])
    assert pipeline.recode(work) == fragments
    assert Run(WorkDir(work)).state == state
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]
    pipeline.wrap_up(top_down, work=work, summaries=summaries)
    mapped = in_any_order(pq.read_table(tmp_path / "out"))
    pipeline.run(top_down)
    assert in_any_order(pq.read_table(tmp_path / "out")) == mapped


@contextmanager
def breaking_down(sink, _schema):
    """A stream that has written something when the disk is full."""

    def write_table(_table):
        sink.write(b"half of it")
        raise OSError(28, "no space left on device")

    yield SimpleNamespace(write_table=write_table)


def test_what_was_counted_does_not_wait_with_a_release(parts):
    work = WorkDir(parts[0].work)
    assert storage.FREQUENCIES in names(work.root)
    work.remove_fragments()
    work.remove_fragments()
    assert storage.FREQUENCIES not in names(work.root)


def test_a_part_that_fails_half_way_leaves_nothing_behind(parts, monkeypatch):
    """And no decision is made without it."""
    work = parts[0].work
    before = names(work)
    with monkeypatch.context() as patch:
        patch.setattr(pa.ipc, "new_stream", breaking_down)
        with pytest.raises(OSError, match="no space left"):
            pipeline.specialize_part(parts[1])
    assert names(work) == before
    pipeline.specialize_part(parts[0])
    pipeline.specialize_part(parts[2])
    with pytest.raises(StorageError, match="run again from the partition task"):
        pipeline.recode(work)
    assert Run(WorkDir(work)).state.recoding is None
    pipeline.specialize_part(parts[1])
    assert pipeline.recode(work)


def test_what_an_obsolete_attempt_found_is_not_taken(top_down, parts, monkeypatch):
    """It has counted another time; its successor's working files are not touched."""
    work = parts[0].work
    first = TwoPhase.first

    def overtaken(self, frequencies, part):
        level = first(self, frequencies, part)
        pipeline.partition(top_down, work=work, recode=False)
        return level

    with monkeypatch.context() as patch:
        patch.setattr(TwoPhase, "first", overtaken)
        with pytest.raises(StorageError, match="belongs to a later attempt"):
            pipeline.specialize_part(parts[0])
    assert not [name for name in names(work) if name.startswith("level")]


def test_other_jobs_have_no_parts_and_are_recoded_already(top_down, tmp_path):
    work = str(tmp_path / "work")
    tds = top_down.tds
    for job in (
        replace(top_down, algorithm="mondrian"),
        replace(top_down, algorithm="samarati"),
        replace(top_down, tds=replace(tds, partitions=1)),
    ):
        assert pipeline.parts_to_map(job, work) == []
        fragments = pipeline.partition(job, work=work)
        state = Run(WorkDir(work)).state
        assert pipeline.recode(work) == fragments
        assert Run(WorkDir(work)).state == state
    assert pipeline.parts_to_map(replace(top_down, engine="spark"), work) == []
