"""What always holds of a release with global recoding."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import brute_force
from drawn_jobs import GRADE_FILE, Release, cases, run
from hypothesis_profiles import examples
from mapped_phases import run_mapped
from mondrian_ops import anonymize, pipeline
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from published_text import STAR, TREE_FILE, is_missing, text_of
from tiers import one_in

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


@pytest.mark.servers
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


@pytest.mark.servers
@pytest.mark.parametrize(
    "keys",
    one_in(
        2,
        [
            {"algorithm": "samarati", "samarati": {"max_suppressed": 0.01, "choice": "optimal"}},
            {"algorithm": "tds"},
        ],
    ),
)
def test_more_rows_than_one_batch(keys, tmp_path):
    generator = np.random.default_rng(11)
    rows = 150_000
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
    # Files declare which columns have no missing value; a table keeps what its caller declared.
    assert released.cast(in_memory.schema).equals(in_memory.sort_by("row"))


def names(work):
    return sorted(path.name for path in Path(work).iterdir())


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
