"""Grids that the values of a column decide."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.data.grid_steps import Grids, can_be_told_apart, grid_step, rare_values
from mondrian_ops.data.spans import quantiles_of, robust_ends
from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.job.quasi_identifier import QuasiIdentifier

ROWS = 2000
DRAW = np.random.default_rng(2)
LATITUDES = DRAW.uniform(50, 54, ROWS)
DAYS = DRAW.integers(0, 20_000, ROWS).astype(np.int32)
AGES = DRAW.integers(18, 90, ROWS)
PAY = DRAW.integers(10_000, 90_000, ROWS)
PRECISE = {
    "latitude": pa.array(LATITUDES),
    "single precision": pa.array(LATITUDES, pa.float32()),
    "cents": pa.array([Decimal(int(pay)).scaleb(-2) for pay in PAY]),
    "pay": pa.array(PAY),
    "birthday": pa.array(DAYS).cast(pa.date32()),
    "moment": pa.array(DAYS.astype(np.int64) * 86_400_000 + 12_345).cast(pa.timestamp("ms")),
}
COARSE = {
    "age": pa.array(AGES),
    "height in metres": pa.array(DRAW.integers(150, 200, ROWS) / 100),
    "pay in thousands": pa.array(PAY // 1000 * 1000),
    "text": pa.array(["a"] * ROWS),
    "one value": pa.array([1.23456789] * ROWS),
    "missing": pa.nulls(ROWS, pa.float64()),
}


def grids_of(
    values: pa.Array,
    k: int = 5,
    rows: int | None = None,
    how: object = "q",
    chosen: str = "",
    **job: object,
) -> Grids:
    sample = pa.table({"q": values, "who": job.pop("who", pa.nulls(len(values), pa.int64()))})
    mapping = {"input": "i", "output": "o", "k": k, "quasi_identifiers": [how], **job}
    present = values.drop_null()
    ends = pa.array([min(present.to_pylist()), max(present.to_pylist())], values.type)
    quantiles = {"q": quantiles_of(sample["q"])}
    known, rows = {"q": chosen} if chosen else {}, rows or len(values)
    return Grids.of(Job.from_dict(mapping), rows, sample, {"q": ends}, quantiles, known)


@pytest.mark.parametrize("name", PRECISE)
def test_values_of_few_are_rounded_where_thousands_are_possible(name: str) -> None:
    assert can_be_told_apart(quantiles_of(PRECISE[name]))
    found = grids_of(PRECISE[name])
    assert found.rare["q"] > 0.9
    assert found.steps["q"] > 0
    (note,) = found.notes({"q": PRECISE[name].type})
    assert note.startswith("column 'q': ")
    assert "distinct values belong to fewer than k rows (persons), so its intervals end on" in note


@pytest.mark.parametrize("name", COARSE)
def test_few_possible_values_tell_nobody_apart(name: str) -> None:
    assert not can_be_told_apart(quantiles_of(COARSE[name]))


def test_values_that_k_have_stay_as_they_are() -> None:
    common = pa.array(np.repeat(LATITUDES[:200], 10))
    assert grids_of(common) == Grids()
    assert grids_of(common, k=11).rare == {"q": 1.0}


def test_a_cell_has_about_k_people_or_a_hundredth_of_the_span() -> None:
    assert grids_of(pa.array(LATITUDES), k=5).steps == {"q": 0.01}  # 4 degrees, 400 times 5
    assert grids_of(pa.array(LATITUDES), k=500).steps == {"q": 0.05}
    assert grids_of(PRECISE["birthday"]).steps == {"q": 50.0}  # 20,000 days
    _, people = np.unique(LATITUDES // 0.01, return_counts=True)
    assert 4 <= np.median(people) <= 6


def test_zeros_that_most_have_do_not_hide_the_rare_rest() -> None:
    gains = np.where(np.arange(ROWS) % 10, 0, PAY)
    found = grids_of(pa.array(gains))
    assert found.rare["q"] > 0.9
    assert found.steps["q"] <= 1000


def test_persons_count_where_they_have_several_rows() -> None:
    """Each value has ten rows, all of one person."""
    values = pa.array(np.repeat(LATITUDES[:200], 10))
    assert grids_of(values).rare == {}
    who = pa.array(np.repeat(np.arange(200), 10))
    assert grids_of(values, who=who, entity_id="who").rare == {"q": 1.0}


@pytest.mark.parametrize(("holders", "rare"), [(1, 1.0), (100, 0.0)])
def test_the_share_of_rare_values_is_estimated_from_a_sample(holders: int, rare: float) -> None:
    of_all = np.repeat(DRAW.uniform(0, 1, 200_000 // holders), holders)
    sample = pa.chunked_array([DRAW.permutation(of_all)[:20_000]])
    assert rare_values(sample, len(of_all), 5, None) == pytest.approx(rare, abs=0.05)


def test_what_has_no_grid_is_named() -> None:
    """Grids of moments have whole days; edges of numbers are exact in a float64."""
    in_one_day = pa.array(DRAW.integers(0, 86_400_000, ROWS)).cast(pa.timestamp("ms"))
    huge = pa.array(np.append(LATITUDES, 1e300))
    first_days = pa.array([dt.date(1, 1, 1) + dt.timedelta(int(day)) for day in DAYS])
    for values in (in_one_day, huge, first_days):
        found = grids_of(values)
        assert (found.steps, list(found.rare)) == ({}, ["q"])
        (note,) = found.notes({"q": values.type})
        assert "and its intervals end at them; round the values before anonymizing" in note


def test_a_grid_that_the_job_asks_for_and_cannot_have_is_refused() -> None:
    ten_days = pa.array(DRAW.integers(0, 864_000, ROWS)).cast(pa.timestamp("s"))
    huge = pa.array(DRAW.integers(2**53, 2**62, ROWS))
    for values in (ten_days, huge):
        with pytest.raises(
            JobError, match=r"column 'q' .* can have no grid: auto.*; give the step"
        ):
            grids_of(values, how="q=grid:auto")
    assert grids_of(COARSE["one value"], how="q=grid:auto") == Grids()
    nearly_one = pa.array([0.0] * 1999 + [10.0])
    assert grids_of(nearly_one, how="q=grid:auto").steps == {"q": 0.1}


def test_tails_in_whose_cells_few_are_may_be_left_open() -> None:
    """The step of a skewed column follows its middle: its greatest values lie apart."""
    pay = pa.array(DRAW.lognormal(10, 1, ROWS))
    found = grids_of(pay)
    assert found.tails == {"q": ["top"]}
    *_, note = found.notes({"q": pay.type})
    assert "outermost cells of its grid hold far fewer than k rows" in note
    assert note.endswith("give it top: 1 %")
    assert grids_of(pay, how={"name": "q", "top": "1 %"}).tails == {}
    assert grids_of(pa.array(LATITUDES)).tails == {}


def test_who_describes_a_column_decides_and_auto_asks_for_a_grid() -> None:
    latitudes = pa.array(LATITUDES)
    for how in ("q=interval", "q=grid:2"):
        assert grids_of(latitudes, how=how) == Grids()
    assert grids_of(latitudes, how={"name": "q", "weight": 3}).steps == {"q": 0.01}
    for values, step in ((latitudes, 0.01), (COARSE["age"], 1.0)):
        found = grids_of(values, how="q=grid:auto")
        assert (found.rare, found.steps) == ({}, {"q": step})
    stable = {"series": {"boundaries": "stable"}, "output": "o/2024-01-01"}
    assert grids_of(latitudes, **stable) == Grids()


def test_what_an_earlier_release_had_is_kept_whatever_the_values() -> None:
    latitudes, few = pa.array(LATITUDES), COARSE["age"]
    assert grids_of(latitudes, chosen="grid 0.5").steps == {"q": 0.5}
    assert grids_of(few, chosen="grid 5") == Grids(steps={"q": 5.0})
    assert grids_of(few, chosen="grid 5", how="q=grid:auto").steps == {"q": 5.0}
    without = grids_of(latitudes, chosen="interval")
    assert (without.steps, list(without.rare)) == ({}, ["q"])
    (note,) = without.notes({"q": latitudes.type})
    assert "and its intervals end at them" in note


def test_a_column_is_resolved_with_its_step() -> None:
    grids = Grids(steps={"q": 0.5})
    asked, other = QuasiIdentifier("q"), QuasiIdentifier("other")
    assert grids.resolved(asked) == QuasiIdentifier("q", generalization="interval", grid=0.5)
    assert grids.resolved(other) is other
    auto = QuasiIdentifier("other", generalization="interval", grid="auto")
    assert grids.resolved(auto) == QuasiIdentifier("other", generalization="interval")


def test_one_value_has_no_grid() -> None:
    one = pa.chunked_array([[1.5, 1.5]])
    ends = robust_ends(quantiles_of(one), "q")
    assert grid_step(one, ends, ends, 2, 2) is None
