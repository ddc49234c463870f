"""What always holds (design, section 4) where columns are recoded as a whole."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import brute_force
from cases import GRADE_FILE, Release, cases, run
from examples import examples
from mondrian_ops import anonymize, pipeline, storage
from mondrian_ops.core.errors import PrivacyError, StorageError
from mondrian_ops.core.job import Job
from mondrian_ops.engines.run import Run
from mondrian_ops.pipeline import recoding
from mondrian_ops.storage import WorkDir
from phases import run_mapped
from reading import STAR, TREE_FILE, in_any_order, is_missing, text_of

SAMARATI = st.fixed_dictionaries(
    {
        "algorithm": st.just("samarati"),
        "samarati": st.fixed_dictionaries(
            {
                "max_suppressed": st.sampled_from([0, 0, 2, 5, 0.2]),
                "choice": st.sampled_from(["first", "minimal", "optimal"]),
            }
        ),
    }
)
TDS = st.fixed_dictionaries(
    {
        "algorithm": st.just("tds"),
        "tds": st.fixed_dictionaries(
            {"partitions": st.integers(1, 4), "k_intermediate": st.none() | st.integers(40, 50)}
        ),
    }
)
DIVISIONS = st.fixed_dictionaries(
    {
        "partitioning": st.fixed_dictionaries(
            {"fragments": st.integers(1, 5), "sample": st.sampled_from([1.0, 0.3])}
        ),
        "retrieval": st.sampled_from(["scatter", "pushdown"]),
    }
)


def check(case, release, keys):
    rows = release.table.to_pylist()
    told = release.report["rows"]
    allowed = keys.get("samarati", {}).get("max_suppressed", 0)
    allowed = case.rows // 5 if allowed == 0.2 else allowed
    assert told["input"] == case.rows == told["published"] + told["suppressed"]
    assert told["published"] == len(rows) == len({row["row"] for row in rows})
    assert told["suppressed"] <= allowed
    published = release.published(case.columns)
    holds = case.privacy.of_rows(case.sensitive)
    classes = brute_force.classes_of(published)
    assert all(holds(members) for members in classes.values())
    assert release.report["equivalence_classes"] == len(classes)
    for column in case.columns:
        check_column(column, {row["row"]: row[column.name] for row in rows})
    metrics = release.report["metrics"]
    assert 0 <= metrics["GCP"] <= 1
    assert 0 <= metrics["LM"] <= 1


def check_column(column, published):
    """Every value is published alike in all rows, and as what it is or as more than that."""
    alike = {}
    for row, text in published.items():
        value = column.values[row]
        key = None if is_missing(value) else text_of(column.kind, value)
        assert alike.setdefault(key, text) == text
    mixed = None in alike and alike[None] == STAR
    if mixed:
        assert set(alike.values()) == {STAR}
    for key, text in alike.items():
        if key is None:
            assert text in (None, STAR)
        elif Counter(alike.values())[text] > 1:
            assert text != key or text == STAR


def suited(keys, case):
    """``keys`` without suppression where t forbids it."""
    if "t" not in case.keys or "samarati" not in keys:
        return keys
    return {**keys, "samarati": {**keys["samarati"], "max_suppressed": 0}}


def check_each_file(case, release):
    """In each file, too, what is published alike satisfies what is asked."""
    holds = case.privacy.of_rows(case.sensitive)
    for table in release.files.values():
        classes = {}
        names = [name for name in table.column_names if name.startswith("q")]
        for row in table.to_pylist():
            classes.setdefault(tuple(row[name] for name in names), []).append(row["row"])
        assert all(holds(rows) for rows in classes.values())


@examples(100)
@given(cases(grids=False), SAMARATI | TDS, DIVISIONS)
def test_every_release_keeps_every_promise(case, keys, division):
    asked = {**suited(keys, case), "cut": "auto"}
    try:
        release = run(case, **asked, **division)
    except PrivacyError:
        assert not case.attainable
        return
    check(case, release, keys)
    check_each_file(case, release)
    report = release.report
    assert report["job"]["algorithm"] == keys["algorithm"]
    assert report["recoding"]["summary"]
    assert ("levels" in report) == (keys["algorithm"] == "samarati")
    assert ("ILoss" in report["metrics"]) == (keys["algorithm"] == "tds")


@examples(40)
@given(cases(grids=False), SAMARATI | TDS, DIVISIONS)
def test_neither_fragments_nor_files_change_anything(case, keys, division):
    assume(case.attainable)
    asked = {**suited(keys, case), "cut": "auto"}
    alone = run(case, **asked, partitioning={"fragments": 1})
    divided = run(case, **asked, **division)
    with tempfile.TemporaryDirectory() as name:
        Path(name, "tree.csv").write_text(TREE_FILE, encoding="utf-8")
        Path(name, "grades.csv").write_text(GRADE_FILE, encoding="utf-8")
        job = Job.from_dict({**case.job, **asked}, paths_required=False)
        table, report = anonymize(case.table, replace(job, base_dir=name))
    in_memory = Release(table, report, {})
    assert divided.published(case.columns) == alone.published(case.columns)
    assert in_memory.published(case.columns) == alone.published(case.columns) or any(
        pa.types.is_temporal(column.kind.type) for column in case.columns
    )
    for other in (divided, in_memory):
        for name in ("recoding", "rows", "equivalence_classes"):
            assert other.report[name] == alone.report[name]
        assert other.report["metrics"] == pytest.approx(alone.report["metrics"])


@examples(30)
@given(cases(grids=False), st.integers(2, 4), st.none() | st.integers(5, 50), DIVISIONS)
def test_a_mapped_first_phase_changes_nothing(case, partitions, k_intermediate, division):
    assume(case.attainable)
    assume(k_intermediate is None or k_intermediate >= case.keys["k"])
    tds = {"partitions": partitions, "k_intermediate": k_intermediate}
    asked = {"algorithm": "tds", "tds": tds, "cut": "auto", **division}
    threads = run(case, **asked)
    mapped = run(case, by=run_mapped, **asked)
    assert mapped.published(case.columns) == threads.published(case.columns)
    for name in ("recoding", "rows", "class_sizes", "partitioning"):
        assert mapped.report[name] == threads.report[name]
    for name in ("achieved", "metrics"):  # sums in the order of the rows, which is drawn by lot
        assert mapped.report[name] == pytest.approx(threads.report[name])
    assert set(mapped.report["timings_s"]) == {
        *("specialize_part", "recode"),
        *threads.report["timings_s"],
    }


@pytest.mark.parametrize(
    "keys",
    [
        {"algorithm": "samarati", "samarati": {"max_suppressed": 0.01, "choice": "optimal"}},
        {"algorithm": "tds"},
    ],
)
def test_more_rows_than_one_batch(keys, tmp_path):
    generator = np.random.default_rng(11)
    rows = 300_000
    table = pa.table(
        {
            "x": generator.normal(size=rows).round(1),
            "y": pa.array(generator.integers(0, 50, rows), mask=generator.random(rows) < 0.01),
            "z": generator.choice(["a", "ab", "b", "c"], rows),
            "s": generator.choice(["u", "v", "w"], rows, p=[0.9, 0.05, 0.05]),
            "row": np.arange(rows),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=20_000)
    job = pipeline.load_job(
        {
            "input": str(tmp_path / "in.parquet"),
            "output": str(tmp_path / "out"),
            "k": 40,
            "l": 2,
            "quasi_identifiers": ["x", "y", "z=prefix"],
            "sensitive": ["s"],
            "unlisted": "publish",
            "partitioning": {"fragments": 6},
            **keys,
        }
    )
    report = pipeline.run(job)
    assert 1 < len(report["fragments"]) < 6
    assert "merged" in report["partitioning"]["note"]
    assert report["partitioning"]["split_classes"] == 0
    assert pipeline.verify(job, str(tmp_path / "out"))["passed"]
    in_memory, again = anonymize(table, job)
    assert again["metrics"] == pytest.approx(report["metrics"])
    released = pq.read_table(tmp_path / "out").sort_by("row")
    assert released.num_rows == report["rows"]["published"]
    assert released.equals(in_memory.sort_by("row"))


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
    pipeline.count(top_down, work=work)
    return pipeline.parts_to_map(top_down, work)


def names(work):
    return sorted(path.name for path in Path(work).iterdir())


def test_each_part_is_specialized_by_itself_and_all_of_them_decide(top_down, parts):
    assert [(each["part"], each["parts"]) for each in parts] == [(0, 3), (1, 3), (2, 3)]
    summaries = [pipeline.specialize_part(part) for part in parts]
    assert sum(each["rows"] for each in summaries) == 900
    assert all(each["rows"] > 200 and each["specializations"] for each in summaries)
    work = parts[0]["work"]
    fragments = pipeline.recode(work, summaries)
    assert sum(each["rows"] for each in fragments) == 900
    told = Run(WorkDir(work)).state
    asked = {each["part"]: each["specializations"] for each in summaries}
    assert told["recoding"]["specializations"]["parts"] == [asked[part] for part in range(3)]
    assert told["recoding"]["k_intermediate"] == 40


def test_a_part_done_again_and_a_decision_made_again_change_nothing(top_down, parts, tmp_path):
    work = parts[0]["work"]
    for part in [*parts, parts[1]]:
        pipeline.specialize_part(part)
    fragments = pipeline.recode(work)
    state = Run(WorkDir(work)).state
    pipeline.specialize_part(parts[0])
    assert pipeline.recode(work) == fragments
    assert Run(WorkDir(work)).state == state
    summaries = [pipeline.anonymize_fragment(top_down, each) for each in fragments]
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
    work = WorkDir(parts[0]["work"])
    assert storage.FREQUENCIES in names(work.root)
    work.remove_fragments()
    work.remove_fragments()
    assert storage.FREQUENCIES not in names(work.root)


def test_a_part_that_fails_half_way_leaves_nothing_behind(parts, monkeypatch):
    """And no decision is made without it."""
    work = parts[0]["work"]
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
    assert Run(WorkDir(work)).state["recoding"] is None
    pipeline.specialize_part(parts[1])
    assert pipeline.recode(work)


def test_what_an_obsolete_attempt_found_is_not_taken(top_down, parts, monkeypatch):
    """It has counted another time; its successor's working files are not touched."""
    work = parts[0]["work"]
    first_phase = recoding.specialized

    def overtaken(anonymizer, frequencies, part):
        level = first_phase(anonymizer, frequencies, part)
        pipeline.count(top_down, work=work)
        return level

    with monkeypatch.context() as patch:
        patch.setattr(recoding, "specialized", overtaken)
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


def test_a_fragment_may_lose_all_of_its_rows(tmp_path):
    """Its part of the release has none; all are accounted for."""
    table = pa.table({"x": [1] * 20 + [900] * 2, "y": ["a"] * 22})
    pq.write_table(table, tmp_path / "in.parquet")
    job = {
        "input": str(tmp_path / "in.parquet"),
        "output": str(tmp_path / "out"),
        "k": 2,
        "quasi_identifiers": [{"name": "x", "ladder": [10, 100], "generalization": "hierarchy"}],
        "partitioning": {"fragments": 2, "sample": 1.0},
        "algorithm": "samarati",
        "samarati": {"max_suppressed": 2},
    }
    report = pipeline.run(pipeline.load_job({**job, "k": 3}))
    assert report["rows"] == {"input": 22, "published": 20, "suppressed": 2}
    assert report["levels"] == {"x": 0}
    assert report["metrics"]["LM"] == pytest.approx(2 / 22)
