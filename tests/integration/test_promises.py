"""What always holds of a release, checked by reading it back."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import brute_force
from drawn_jobs import GRADE_FILE, Case, Release, cases, plans, run
from hypothesis_profiles import examples
from mondrian_ops import anonymize, pipeline
from mondrian_ops.engines import local
from mondrian_ops.errors import JobError, PrivacyError
from mondrian_ops.job.job import Job
from published_text import TREE_FILE, Column, is_missing, text_of


def check(case: Case, release: Release) -> None:
    """Every promise that a release shows by itself."""
    rows = release.table.to_pylist()
    assert release.report["rows"] == {
        "input": case.rows,
        "published": len(rows),
        "suppressed": 0,
    }
    assert sorted(row["row"] for row in rows) == list(range(case.rows))
    for at, values in enumerate(case.sensitive):
        assert all(row[f"s{at}"] == values[row["row"]] for row in rows)

    published = release.published(case.columns)
    classes = brute_force.classes_of(published)
    sizes = [len(members) for members in classes.values()]
    holds = case.privacy.of_rows(case.sensitive)
    assert all(holds(members) for members in classes.values())

    report = release.report
    assert report["equivalence_classes"] == len(classes)
    assert report["metrics"]["DP"] == sum(size**2 for size in sizes)
    assert report["metrics"]["C_avg"] == pytest.approx(case.rows / len(classes) / case.keys["k"])
    assert report["achieved"]["k"] == min(sizes) >= case.keys["k"]
    assert sum(each["rows"] for each in report["fragments"]) == case.rows
    check_losses(case, release, list(classes.values()))


def check_losses(case: Case, release: Release, classes: Sequence[Sequence[int]]) -> None:
    """Each class covers its originals, tightly, and the losses in the report are those."""
    by_row = {row["row"]: row for row in release.table.to_pylist()}
    attributes = release.report["attributes"]
    whole_ncp = whole_lm = 0.0
    for column in case.columns:
        ncp = lm = 0.0
        for members in classes:
            originals = [column.values[i] for i in members]
            text = published_text(column, by_row[members[0]], originals)
            each_ncp, each_lm = column.check(text, originals)
            ncp += len(members) * each_ncp
            lm += len(members) * each_lm
        assert attributes[column.name]["NCP"] == pytest.approx(ncp / case.rows, abs=1e-9)
        assert attributes[column.name]["LM"] == pytest.approx(lm / case.rows, abs=1e-9)
        whole_ncp += attributes[column.name]["NCP"] * case.rows
        whole_lm += attributes[column.name]["LM"] * case.rows
    metrics, cells = release.report["metrics"], case.rows * len(case.columns)
    assert metrics["NCP"] == pytest.approx(whole_ncp, abs=1e-6)
    assert metrics["GCP"] == pytest.approx(whole_ncp / cells, abs=1e-9)
    assert metrics["LM"] == pytest.approx(whole_lm / cells, abs=1e-9)
    parts = sum(each["NCP"] for each in release.report["fragments"])
    assert parts == pytest.approx(whole_ncp, abs=1e-6)


def published_text(column: Column, row: Mapping[str, Any], originals: Sequence[Any]) -> str | None:
    """What is published of a column; two bounds as the text that would stand for them."""
    if column.name in row:
        return row[column.name]
    low, high = row[f"{column.name}_min"], row[f"{column.name}_max"]
    if low is None:
        assert high is None
        return "*" if row[f"{column.name}_hidden"] else None
    if "grid" in column.way:
        return f"[{low}, {high})"
    low, high = text_of(column.kind, low), text_of(column.kind, high)
    return low if low == high else f"[{low}, {high}]"


# The promises


@examples(120)
@given(cases(), plans())
def test_every_release_keeps_every_promise(case, plan):
    try:
        release = run(case, **plan)
    except PrivacyError:
        assert not case.attainable
        return
    except JobError as error:  # too few quantiles, and it says how many there are
        assert plan["partitioning"]["strategy"] == "quantile"
        assert "at most" in str(error)
        return
    assert case.attainable
    check(case, release)


@pytest.mark.servers
@examples(40)
@given(cases())
def test_in_memory_as_on_files(case):
    assume(case.attainable)
    on_files = run(case, partitioning={"fragments": 1})
    with tempfile.TemporaryDirectory() as name:
        for file, text in (("tree.csv", TREE_FILE), ("grades.csv", GRADE_FILE)):
            Path(name, file).write_text(text, encoding="utf-8")
        job = replace(Job.from_dict(case.job, paths_required=False), base_dir=name)
        before = case.table
        table = before.slice(0)
        released, report = anonymize(table, job)
    assert table.equals(before) or any(
        is_missing(v) for column in case.columns for v in column.values
    )
    in_memory = Release(released, report, {})
    check(case, in_memory)
    if not any(pa.types.is_temporal(column.kind.type) for column in case.columns):
        # Parquet knows no seconds: on files such a column has milliseconds.
        assert in_memory.labels(case.columns) == on_files.labels(case.columns)


@examples(70)
@given(
    cases(max_rows=60),
    st.integers(2, 9),
    st.sampled_from(["scatter", "pushdown"]),
    st.sampled_from([7, 10**6]),
    st.none() | st.integers(1, 40),
)
def test_distribution_costs_nothing_when_the_sample_is_everything(
    case, fragments, retrieval, budget, max_rows
):
    assume(case.attainable)
    case = replace(case, keys={**case.keys, "cut_budget_s": budget})
    alone = run(case, partitioning={"fragments": 1})
    spread = {"fragments": fragments, "sample": 1.0, "max_rows": max_rows}
    together = run(case, partitioning=spread, retrieval=retrieval)
    # `max_rows` bounds the nodes in which groups are tried, too.
    assume(together.report["cut"].get("group_rows") == alone.report["cut"].get("group_rows"))
    assert together.published(case.columns) == alone.published(case.columns)
    for metric in ("DP", "NCP", "LM"):
        assert together.report["metrics"][metric] == pytest.approx(alone.report["metrics"][metric])


@examples(40)
@given(cases(), plans())
def test_scatter_and_pushdown_give_the_same_release(case, plan):
    assume(case.attainable)
    plan["partitioning"]["strategy"] = "multidimensional"
    scattered = run(case, **{**plan, "retrieval": "scatter"})
    pushed = run(case, **{**plan, "retrieval": "pushdown"})
    assert scattered.labels(case.columns) == pushed.labels(case.columns)
    assert len(scattered.files) == len(pushed.files)


@pytest.mark.servers
@examples(12)
@given(cases(), plans())
def test_the_same_seed_gives_the_same_classes_on_any_number_of_threads(case, plan):
    assume(case.attainable)
    plan["partitioning"]["strategy"] = "multidimensional"
    with pytest.MonkeyPatch.context() as patch:
        releases = []
        for cores in (1, 2, 7):
            patch.setattr(local, "available_cores", lambda n=cores: n)
            releases.append(run(case, **plan))
    labels = [release.labels(case.columns) for release in releases]
    assert labels[0] == labels[1] == labels[2]


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({"cut": "median"}, id="median", marks=pytest.mark.soak),
        pytest.param({"cut": "gain"}, id="gain"),
        pytest.param({"cut": "lookahead"}, id="lookahead", marks=pytest.mark.soak),
        pytest.param({"algorithm": "di_mondrian"}, id="di_mondrian", marks=pytest.mark.soak),
    ],
)
def test_distribution_costs_nothing_on_more_rows_than_a_block(keys, tmp_path):
    """Nodes above and below the size of a block, codes of 16 and of 32 bits."""
    generator = np.random.default_rng(11)
    rows = 70_000
    table = pa.table(
        {
            "x": generator.normal(size=rows).round(5),
            "y": pa.array(generator.integers(0, 50, rows), mask=generator.random(rows) < 0.01),
            "z": generator.choice(["a", "ab", "b", "c"], rows),
            "s": generator.choice(["u", "v", "w"], rows, p=[0.9, 0.05, 0.05]),
            "row": np.arange(rows),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    published = []
    for fragments in (1, 6):
        job = {
            "input": str(tmp_path / "in.parquet"),
            "output": str(tmp_path / "out"),
            "k": 40,
            "l": 2,
            "quasi_identifiers": ["x", "y", "z"],
            "sensitive": ["s"],
            "unlisted": "publish",
            "partitioning": {"fragments": fragments, "sample": 1.0},
            **keys,
        }
        report = pipeline.run(pipeline.load_job(job))
        # The last cut of di_mondrian may make one part more than asked for.
        assert fragments <= len(report["fragments"]) <= fragments + (fragments > 1)
        published.append(pq.read_table(tmp_path / "out").sort_by("row"))
    assert published[0].equals(published[1])


def test_a_plan_is_that_of_the_run(tmp_path):
    table = pa.table({"x": np.arange(500), "y": np.arange(500) % 13})
    pq.write_table(table, tmp_path / "in.parquet")
    job = pipeline.load_job(
        {
            "input": str(tmp_path / "in.parquet"),
            "output": str(tmp_path / "out"),
            "k": 5,
            "quasi_identifiers": ["x", "y"],
            "partitioning": {"fragments": 5, "sample": 0.1},
        }
    )
    planned = pipeline.plan(job)
    assert not (tmp_path / "out").exists()
    assert sorted(os.listdir(tmp_path)) == ["in.parquet"]
    report = pipeline.run(job)
    assert [(f.where, f.rows) for f in planned] == [
        (f["where"], f["rows"]) for f in report["fragments"]
    ]
    assert pipeline.verify(job, str(tmp_path / "out"))["passed"]
    stricter = replace(job, k=report["achieved"]["k"] + 1)
    assert not pipeline.verify(stricter, str(tmp_path / "out"))["passed"]


def test_phases_can_be_repeated(tmp_path):
    """A retried task does its work again, and the release is the same."""
    table = pa.table({"x": np.arange(300) % 71, "s": np.arange(300) % 4})
    pq.write_table(table, tmp_path / "in.parquet")
    job = pipeline.load_job(
        {
            "input": str(tmp_path / "in.parquet"),
            "output": str(tmp_path / "out"),
            "k": 5,
            "l": 2,
            "quasi_identifiers": ["x"],
            "sensitive": ["s"],
            "cut": "gain",
            "partitioning": {"fragments": 3, "sample": 1.0},
            "retrieval": "scatter",
        }
    )
    work = str(tmp_path / ".work")
    pipeline.partition(job, work=work)
    fragments = pipeline.partition(job, work=work)
    assert stat.S_IMODE(os.stat(work).st_mode) == 0o700
    assert len(fragments) == 3
    first = [pipeline.anonymize_fragment(fragment) for fragment in fragments]
    again = [pipeline.anonymize_fragment(fragment) for fragment in reversed(fragments)]
    assert {each.id: each.DP for each in first} == {each.id: each.DP for each in again}
    report = pipeline.wrap_up(job, work=work, summaries=again)
    assert pipeline.wrap_up(job, work=work, summaries=again)["rows"] == report["rows"]
    pipeline.discard(work)
    pipeline.discard(work)
    release = pq.read_table(tmp_path / "out")
    assert release.num_rows == 300
    assert Counter(release["s"].to_pylist()) == Counter(table["s"].to_pylist())
    assert sorted(os.listdir(tmp_path)) == ["in.parquet", "out"]


def test_csv_and_parquet_give_the_same_release(tmp_path):
    rows = [f"{at % 17 if at % 11 else ''},{'ab'[at % 2]},{at}\n" for at in range(200)]
    (tmp_path / "in.csv").write_text("x,t,row\n" + "".join(rows))
    table = pa.table(
        {
            "x": [at % 17 if at % 11 else None for at in range(200)],
            "t": ["ab"[at % 2] for at in range(200)],
            "row": range(200),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    found = []
    for name in ("in.csv", "in.parquet"):
        for retrieval in ("scatter", "pushdown"):
            job = {
                "input": str(tmp_path / name),
                "output": str(tmp_path / "out"),
                "k": 6,
                "quasi_identifiers": ["x", "t"],
                "unlisted": "publish",
                "retrieval": retrieval,
                "cut": "gain",
                "partitioning": {"fragments": 4, "sample": 1.0},
            }
            pipeline.run(pipeline.load_job(job))
            found.append(pq.read_table(tmp_path / "out").sort_by("row").to_pylist())
    assert found[0] == found[1] == found[2] == found[3]
    assert found[0][0]["x"] is None


def test_no_value_of_fewer_than_k_persons_gets_out(tmp_path, caplog):
    """Neither the fragments (XCom), nor the summaries, the report, its page or the log."""
    caplog.set_level("DEBUG")
    numbers = 7_000_000 + np.random.default_rng(2).permutation(400)
    table = pa.table(
        {
            "ssn": [f"Ssnone{at}" for at in range(400)],
            "x": numbers,
            "zip": [f"Zipcode{at % 20}" for at in range(400)],
            "note": [f"Remark{at}" for at in range(400)],
            "s": [f"Illness{at % 5}" for at in range(400)],
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    job = pipeline.load_job(
        {
            "input": str(tmp_path / "in.parquet"),
            "output": str(tmp_path / "out"),
            "k": 5,
            "l": 2,
            "identifiers": ["ssn"],
            "sensitive": ["s"],
            "quasi_identifiers": ["x", "zip=set"],
            "unlisted": "publish",
            "partitioning": {"fragments": 4},
        }
    )
    work = str(tmp_path / ".work")
    said: list[str] = []
    fragments = pipeline.partition(job, work=work, progress=lambda *told: said.append(str(told)))
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]
    pipeline.wrap_up(job, work=work, summaries=summaries)
    pipeline.discard(work)
    out = tmp_path / "out"
    shown = "".join(
        [
            *(json.dumps(each.to_dict()) for each in [*fragments, *summaries]),
            *((out / name).read_text() for name in ("_report.json", "_report.html", "_SUCCESS")),
            *said,
            caplog.text,
        ]
    )
    people = {str(value) for name in table.column_names for value in table[name].to_pylist()}
    assert not [value for value in people if value in shown and not value.startswith("Zip")]
