"""Ladders by name: what each level says of a text, and that a level holds those below it."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.ladders import finest_units, named_ladder
from mondrian_ops.errors import HierarchyError
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.verify.spans import KINDS, days_of, key_of

DAYS = [str(date(1999, 12, 1) + timedelta(at * 37)) for at in range(300)]
CODES = ["A00", "A01.0", "B99", "C50.1", "C7A.00", "D48", "E08.1", "E10.9", "E11", "I1A", "O9A2"]


def tree(text: str, texts: list[str]) -> Hierarchy:
    return named_ladder(QuasiIdentifier.read(text), texts)


def path(ladder: Hierarchy, leaf: int) -> list[str]:
    """The labels above a leaf, without those that repeat."""
    return list(dict.fromkeys(ladder.labels[node] for node in ladder.ancestors[:, leaf]))


@pytest.mark.parametrize(
    ("ladder", "text", "labels"),
    [
        ("d=ladder:calendar", "2024-05-09", ["2024-05-09", "2024-05", "2024-Q2", "2024", "2020s"]),
        ("d=ladder:month/decade", "2024-05-09", ["2024-05", "2020s"]),
        ("d=ladder:quarter", "2024-12-31 23:59:59.5+0100", ["2024-Q4"]),
        ("d=ladder:day/week", "2024-12-30", ["2024-12-30", "2025-W01"]),
        ("d=ladder:week", "2021-01-03", ["2020-W53"]),
        ("c=ladder:icd10", "E11.9", ["E11.9", "E11", "E10-E14", "E00-E90"]),
        ("c=ladder:icd10", "E08.1", ["E08.1", "E08", "E00-E90"]),
        ("c=ladder:icd10", "C7A", ["C7A", "C76-C80", "C00-D49"]),
        ("c=ladder:icd10", "W19", ["W19", "V01-X59", "V00-Y99"]),
        ("z=ladder:postal", "SW1A 1AA", ["SW1A 1AA", "SW1A", "SW", "S", ""]),
        ("z=ladder:postal", "10115", ["10115", "101", "10", "1", ""]),
        ("z=ladder:postal", "94103-1234", ["94103-1234", "94103", "941", "94", "9", ""]),
        ("z=ladder:postal", "1012 AB", ["1012 AB", "1012", "10", "1", ""]),
        ("z=ladder:ip", "192.168.1.17", ["192.168.1.17", "192.168.1.", "192.168.", "192.", ""]),
        (
            "z=ladder:ip",
            "2001:db8:1:2:3:4:5:6",
            ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2:", "2001:db8:1:", "2001:db8:", "2001:", ""],
        ),
        ("z=ladder:ip", "fe80::1", ["fe80::1", "fe80:", ""]),
        ("z=prefix:5/3/1", "10115", ["10115", "101", "1", ""]),
    ],
)
def test_the_labels_above_a_value(ladder: str, text: str, labels: list[str]) -> None:
    other = "1899-01-01" if ladder.startswith("d") else "Q00"
    found = path(tree(ladder, [text, other]), 0)
    assert [label for label in found if label != "*"] == labels


@pytest.mark.parametrize(
    ("ladder", "texts", "kind"),
    [
        *((f"d=ladder:{each}", DAYS, "calendar") for each in ("calendar", "day/week", "year")),
        ("c=ladder:icd10", CODES, "icd10"),
    ],
)
def test_what_the_checker_reads_holds_the_values_below_a_label_and_no_others(
    ladder: str, texts: list[str], kind: str
) -> None:
    """The two sides share no code."""
    made = tree(ladder, texts)
    leaf_of = texts
    if kind == "calendar":
        leaf_of = finest_units(QuasiIdentifier.read(ladder), texts)
    place = {leaf: at for at, leaf in enumerate(made.leaves)}
    for level in made.ancestors:
        for node in {*level.tolist()} - {made.root}:
            below = {
                text
                for text, leaf in zip(texts, leaf_of, strict=True)
                if level[place[leaf]] == node
            }
            label = made.labels[node]
            if label in texts and kind == "icd10":
                continue  # the code itself, or a category that is one
            first, last = KINDS[kind](label)
            assert {text for text in texts if first <= key_of(text, kind) <= last} >= below
            if kind == "calendar":
                assert {text for text in texts if first <= text <= last} == below


@pytest.mark.parametrize("text", ["2024-13", "2024-W60", "2024-Q5", "202", "2024-5", "", "2024s"])
def test_other_texts_are_no_units_of_the_calendar(text: str) -> None:
    with pytest.raises(ValueError, match=r"|month|week"):
        days_of(text)


def test_codes_that_are_none_are_counted_and_not_named() -> None:
    with pytest.raises(HierarchyError, match=r"'c': 2 distinct value\(s\) are no codes") as caught:
        tree("c=ladder:icd10", ["E11", "e12", "E95"])
    assert "e12" not in str(caught.value)


@pytest.mark.parametrize("retrieval", ["pushdown", "scatter"])
def test_fragments_are_divided_by_the_steps_of_ladders(tmp_path: Path, retrieval: str) -> None:
    draw = np.random.default_rng(1)
    seen = pa.array(draw.integers(10**9, 17 * 10**8, 900)).cast(pa.timestamp("s"))
    pay = pa.array(draw.choice(["low", "medium", "high"], 900), mask=draw.random(900) < 0.05)
    pq.write_table(pa.table({"seen": seen, "pay": pay}), tmp_path / "a.parquet", row_group_size=99)
    job = {"input": str(tmp_path / "a.parquet"), "output": str(tmp_path / "out"), "k": 5}
    job |= {"quasi_identifiers": ["pay=order:low/medium/high", "seen=ladder:quarter/year"]}
    job |= {"retrieval": retrieval, "partitioning": {"fragments": 4, "sample": 1.0}}
    (tmp_path / "job.json").write_text(json.dumps(job))
    pipeline.run(pipeline.load_job(tmp_path / "job.json"))
    report = json.loads((tmp_path / "out" / "_report.json").read_text())
    assert report["rows"]["published"] == 900
    assert len(report["fragments"]) > 1
