"""The parts of a first phase one by one: retried, killed or obsolete; what lists the source."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from listings import asked_by_phase
from mondrian_ops import pipeline, publish
from mondrian_ops.cut.algorithms.tds import TwoPhase
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.run import Run
from mondrian_ops.errors import InputError, JobError, StorageError
from mondrian_ops.publish import WorkDir
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
    assert publish.FREQUENCIES in names(work.root)
    work.remove_fragments()
    work.remove_fragments()
    assert publish.FREQUENCIES not in names(work.root)


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


# Listings of the source


@pytest.fixture
def drop(tmp_path):
    """Twelve files, each with other values of x than the others, and a job for them."""
    (tmp_path / "in").mkdir()
    for number in range(12):
        x = np.arange(100) + 100 * number
        table = pa.table({"x": x, "y": x % 9, "s": x % 4})
        pq.write_table(table, tmp_path / "in" / f"{number:02d}.parquet")
    described = {
        "input": str(tmp_path / "in"),
        "output": str(tmp_path / "out"),
        "k": 5,
        "l": 2,
        "quasi_identifiers": ["x"],
        "sensitive": ["s"],
        "unlisted": "publish",
        "partitioning": {"fragments": 4, "sample": 1.0},
    }
    return lambda **more: pipeline.load_job({**described, **more})


@pytest.mark.parametrize("retrieval", ["scatter", "pushdown", "auto"])
def test_only_the_partition_task_lists_the_source(drop, retrieval):
    job = drop(retrieval=retrieval)
    partition, tasks, wrap_up = asked_by_phase(job)
    # To find the files, and after the second of two passes, to refuse a change.
    assert partition.listed == [str(job.input)] * 2
    assert len(tasks) == 4
    assert not any(each.listed for each in (*tasks, wrap_up))
    assert not partition.files
    assert not wrap_up.files


@pytest.mark.parametrize("fragments", [1, 4])
@pytest.mark.parametrize("error", [None, KeyError("a value"), JobError("too few quantiles")])
def test_a_file_that_comes_while_the_source_is_read_is_refused(drop, tmp_path, fragments, error):
    """Whether there is a second pass or not, and also if it explains an error."""

    class Engine(LocalEngine):
        def draft(self, run, rows_seen):
            super().draft(run, rows_seen)
            pq.write_table(pa.table({"x": [1], "y": [1], "s": [1]}), tmp_path / "in" / "12.parquet")
            if error:
                raise error

    job = drop(partitioning={"fragments": fragments, "sample": 1.0})
    with pytest.raises(InputError, match=r"12\.parquet: changed while it was read"):
        pipeline.partition(job, work=str(tmp_path / "work"), engine=Engine())
    assert names(tmp_path) == ["in"]


def test_a_mapped_task_reads_and_asks_for_the_files_that_may_have_its_rows(drop):
    _, tasks, _ = asked_by_phase(drop(retrieval="pushdown"))
    of_tasks = [len(each.files) for each in tasks]
    assert all(3 <= files <= 4 for files in of_tasks), of_tasks
    assert len({file for each in tasks for file in each.files}) == 12
    _, tasks, _ = asked_by_phase(drop(retrieval="scatter"))
    assert not any(each.files for each in tasks)


def test_a_file_of_other_rows_may_change_but_none_of_its_own(drop, tmp_path):
    """A fragment is of the rows that were counted, whatever becomes of other files."""
    work = str(tmp_path / "work")
    first, *_, last = pipeline.partition(drop(retrieval="pushdown"), work=work)
    changed = tmp_path / "in" / "11.parquet"
    pq.write_table(pq.read_table(changed).slice(1), changed)
    pq.write_table(pq.read_table(changed), tmp_path / "in" / "12.parquet")
    assert pipeline.anonymize_fragment(first).rows == first.rows
    with pytest.raises(InputError, match=r"11\.parquet: changed while it was read"):
        pipeline.anonymize_fragment(last)
