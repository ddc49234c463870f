"""Ends of intervals that only one person has: who knows the exact value finds the class by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import anonymize, pipeline, read_release

ROWS = 3000


def people() -> pa.Table:
    draw = np.random.default_rng(9)
    return pa.table(
        {
            "latitude": draw.normal(52, 0.5, ROWS),
            "born": pa.array(draw.integers(0, 20_000, ROWS).astype(np.int32)).cast(pa.date32()),
            "age": draw.integers(18, 90, ROWS),
            "ill": draw.choice(["flu", "cold", "none"], ROWS),
        }
    )


def ends_in(labels: pa.ChunkedArray) -> set[str]:
    """The ends of published intervals, and single values, as texts."""
    texts = {text for text in labels.unique().to_pylist() if text is not None}
    return {end for text in texts for end in text.strip("[()]").split(", ")}


def of_one_person(column: str, labels: pa.ChunkedArray) -> int:
    """How many published ends are the value of exactly one person."""
    values, counts = np.unique(people()[column].cast(pa.string()).to_numpy(), return_counts=True)
    return len(ends_in(labels) & {*values[counts == 1]})


@pytest.mark.parametrize("more", [{}, {"relaxed": True}, {"algorithm": "di_mondrian"}])
def test_no_published_end_is_known_to_be_one_persons_value(more: dict[str, Any]) -> None:
    job = {"k": 5, "quasi_identifiers": ["latitude", "born", "age"], "sensitive": ["ill"], **more}
    released, report = anonymize(people(), job)
    assert of_one_person("latitude", released["latitude"]) == 0
    # An end of whole days may be somebody's birthday by chance, as any day may.
    assert of_one_person("born", released["born"]) <= len(ends_in(released["born"])) / 4
    assert {name for name, each in report["attributes"].items() if "grid" in each} == {
        "latitude",
        "born",
    }
    notes = [note for note in report["notes"] if "so its intervals end on a grid" in note]
    assert [note.split("'")[1] for note in notes] == ["latitude", "born"]


def test_who_asks_for_tight_intervals_publishes_hundreds_of_single_values() -> None:
    job = {"k": 5, "quasi_identifiers": ["latitude=interval", "age"], "sensitive": ["ill"]}
    released, report = anonymize(people(), job)
    assert of_one_person("latitude", released["latitude"]) > 500
    assert "tight intervals show their ends" in report["limits"]


def test_rounding_costs_little() -> None:
    job = {"k": 5, "sensitive": ["ill"]}
    (_, rounded), (_, tight) = (
        anonymize(people(), job | {"quasi_identifiers": [latitude, "age"]})
        for latitude in ("latitude", "latitude=interval")
    )
    assert rounded["metrics"]["GCP"] < 1.1 * tight["metrics"]["GCP"]


@pytest.mark.parametrize("style", ["text", "bounds"])
def test_a_run_in_fragments_is_true_and_can_be_read(tmp_path: Path, style: str) -> None:
    pq.write_table(people(), tmp_path / "people.parquet")
    job: dict[str, Any] = {"input": str(tmp_path / "people.parquet"), "k": 5, "sensitive": ["ill"]}
    job |= {"output": str(tmp_path / "out"), "quasi_identifiers": ["latitude", "born"]}
    job |= {"interval_style": style, "partitioning": {"fragments": 3}}
    (tmp_path / "job.json").write_text(json.dumps(job))
    report = pipeline.run(pipeline.load_job(tmp_path / "job.json"))
    assert len(report["fragments"]) == 3
    read = read_release(tmp_path / "out", "bounds", kind="arrow")
    days = (read["born_max"].cast(pa.int32()).to_numpy() + 1) % report["attributes"]["born"]["grid"]
    assert not days.any()  # the last day is the one before the next cell
