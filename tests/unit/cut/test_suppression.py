"""Rows that Mondrian leaves out: those that cost most, counted, and no more than allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import anonymize, pipeline
from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job

FAR = [70, 71, 72, 90, 95, 120]


def people() -> pa.Table:
    draw = np.random.default_rng(2)
    ages = [*draw.integers(20, 40, 294).tolist(), *FAR]
    return pa.table(
        {
            "age": ages,
            "height": draw.integers(150, 190, 300),
            "ill": draw.choice(["flu", "cold", "none"], 300),
            "person": [f"p{at // 2}" for at in range(300)],
        }
    )


def released(**options: Any) -> tuple[pa.Table, Any]:
    job = {"k": 5, "quasi_identifiers": ["age", "height"], "sensitive": ["ill"]}
    table, report = anonymize(people(), {**job, "unlisted": "publish", **options})
    return table, report


@pytest.mark.parametrize("cut", ["median", "gain", "auto"])
@pytest.mark.parametrize("more", [{}, {"l": 2}, {"relaxed": True}], ids=["k", "l", "relaxed"])
def test_the_others_lose_less_and_the_rows_are_counted(cut: str, more: dict[str, Any]) -> None:
    options = {"cut": "median" if "relaxed" in more else cut, **more}
    everything, before = released(**options)
    table, after = released(**options, mondrian={"max_suppressed": 0.02})
    rows = after["rows"]
    assert rows["published"] == table.num_rows
    assert rows["published"] + rows["suppressed"] == rows["input"] == everything.num_rows
    assert 0 < rows["suppressed"] <= 6
    share = 0.9 if cut == "gain" and "relaxed" not in more else 0.99
    assert after["metrics"]["GCP"] < share * before["metrics"]["GCP"]
    classes = table.group_by(["age", "height"]).aggregate(
        [("ill", "count"), ("ill", "count_distinct")]
    )
    assert min(classes["ill_count"].to_pylist()) >= 5
    assert min(classes["ill_count_distinct"].to_pylist()) >= more.get("l", 1)


def test_persons_are_counted_in_what_remains() -> None:
    _, report = released(entity_id="person", l=2, mondrian={"max_suppressed": "2 %"})
    assert report["rows"]["suppressed"] > 0
    assert report["achieved"]["k"] >= 5


def test_a_limit_on_suppressed_rows_holds_before_rows_are_left_out() -> None:
    """So a policy's `max_suppressed`, which jobs have to set, forbids it."""
    for limit in (0, 2):
        _, report = released(max_suppressed=limit, mondrian={"max_suppressed": 6})
        assert report["rows"]["suppressed"] <= limit


def test_fragments_have_their_share(tmp_path: Path) -> None:
    pq.write_table(people(), tmp_path / "people.parquet")
    job = {"input": str(tmp_path / "people.parquet"), "output": str(tmp_path / "out"), "k": 5}
    job |= {"quasi_identifiers": ["age", "height"], "mondrian": {"max_suppressed": 7}}
    job |= {"partitioning": {"fragments": 3, "sample": 1.0}, "retrieval": "scatter"}
    (tmp_path / "job.json").write_text(json.dumps(job))
    pipeline.run(pipeline.load_job(tmp_path / "job.json"))
    report = json.loads((tmp_path / "out" / "_report.json").read_text())
    assert 0 < report["rows"]["suppressed"] <= 7
    assert report["rows"]["published"] + report["rows"]["suppressed"] == 300


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"t": 0.3}, r"mondrian.max_suppressed: cannot be combined with t"),
        (
            {"series": {"hold_nights": 2, "hold_above": 0.2, "kind": "increments"}},
            r"mondrian.max_suppressed: cannot be combined with series.hold_nights",
        ),
        ({"mondrian": {"max_suppressed": "110 %"}}, r"mondrian.max_suppressed: must be a number"),
    ],
)
def test_what_it_cannot_be_combined_with(options: dict[str, Any], message: str) -> None:
    job = {"k": 5, "quasi_identifiers": ["age"], "sensitive": ["ill"]}
    with pytest.raises(JobError, match=message):
        Job.from_dict({**job, "mondrian": {"max_suppressed": 0.1}, **options}, paths_required=False)
