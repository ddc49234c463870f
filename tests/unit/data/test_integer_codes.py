"""Codes that are whole numbers are asked about; numbers are not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops import anonymize
from mondrian_ops.data.integer_codes import look_like_codes
from mondrian_ops.data.spans import quantiles_of

DRAW = np.random.default_rng(1)
ROWS = 5000
RACES = DRAW.choice([1, 2, 3, 4, 9], ROWS, p=[0.5, 0.1, 0.25, 0.05, 0.1])
NUMBERS = {
    "children": DRAW.poisson(1.4, ROWS),
    "years of school": np.clip(DRAW.normal(12, 3, ROWS).round(), 0, 19).astype(int),
    "hands": DRAW.integers(1, 14, ROWS),
    "stars": np.sort(DRAW.integers(1, 6, ROWS)),
    "yes or no": DRAW.choice([0, 1], ROWS, p=[0.9, 0.1]),
    "ages": DRAW.integers(18, 90, ROWS),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_counted_or_measured_is_no_code(name: str) -> None:
    assert not look_like_codes(quantiles_of(pa.array(NUMBERS[name])))


def test_codes_are_found_by_how_often_they_occur() -> None:
    assert look_like_codes(quantiles_of(pa.array(RACES)))
    assert not look_like_codes(quantiles_of(pa.array(RACES.astype(float))))
    assert not look_like_codes(quantiles_of(pa.nulls(5, pa.int64())))
    assert not look_like_codes(quantiles_of(pa.array(RACES[:20])))  # by chance


@pytest.mark.parametrize(("how", "asked"), [("", 1), ("=set", 0), ("=interval", 0), ("*2", 1)])
def test_the_report_asks_unless_the_job_says_it(how: str, asked: int) -> None:
    column = {"name": "race", "weight": 2} if how == "*2" else f"race{how}"
    table = pa.table({"race": RACES, "age": NUMBERS["ages"]})
    _, report = anonymize(table, {"k": 5, "quasi_identifiers": [column, "age"]})
    notes = [note for note in report["notes"] if "look like codes" in note]
    assert len(notes) == asked
    assert all(note.startswith("column 'race': has few whole numbers") for note in notes)
