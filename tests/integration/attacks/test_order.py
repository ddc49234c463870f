"""Unsorted matching: what the order of rows in a release tells.

L. Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002, section 4.1: where
rows keep the order of the source, two lists that are in one order are matched line by line.
"""

from __future__ import annotations

import math
from itertools import combinations, groupby

import numpy as np
import pyarrow as pa
import pytest

from adversary import ALGORITHMS, ASKED, Release, name_of, population, released
from mondrian_ops import anonymize
from mondrian_ops.cut import anonymizer
from tiers import in_soak, one_here

PEOPLE = population()


def matched(release: Release) -> tuple[int, int]:
    """Rows named rightly by who lists the people of each class in the source's order; classes."""
    classes = release.classes().values()
    numbers = [[row["row"] for row in rows] for rows in classes]
    return sum(sum(map(int.__eq__, each, sorted(each))) for each in numbers), len(numbers)


@pytest.mark.parametrize(
    "keys", one_here([*ALGORITHMS[1::2], *in_soak(ALGORITHMS[::2])]), ids=name_of
)
def test_the_order_of_the_source_names_one_row_of_a_class_like_any_guess(tmp_path, keys):
    found, classes = matched(released(tmp_path, PEOPLE, **keys))
    # A random order leaves one row of a class in its place on average, with a variance of one.
    assert found <= classes + 4 * math.sqrt(classes)


@pytest.mark.parametrize("keys", [ALGORITHMS[0], ALGORITHMS[5]], ids=name_of)
def test_without_the_shuffle_the_order_names_most(tmp_path, monkeypatch, keys):
    monkeypatch.setattr("mondrian_ops.cut.anonymizer.shuffle_classes", lambda *_: None)
    found, classes = matched(released(tmp_path, PEOPLE, **keys))
    assert found > 2 * classes


def ordered_pairs(release: Release) -> tuple[int, int]:
    """Pairs of rows published alike whose ZIP codes differ, and those that lie in their order."""
    zips = PEOPLE["zip"].to_pylist()
    found = pairs = 0
    for rows in release.classes(("zip", "country")).values():
        real = [zips[row["row"]] for row in rows if zips[row["row"]] is not None]
        for first, second in combinations(real, 2):
            pairs += first != second
            found += first < second
    return pairs, found


def of_cut_classes(classes, published):
    """The order of rows before those published alike were put together."""
    return classes.index, np.arange(len(classes.starts), dtype=np.int32), classes.sizes


def test_rows_published_alike_do_not_lie_by_the_side_of_a_cut_they_were_on(tmp_path, monkeypatch):
    keys = {**ALGORITHMS[0], "quasi_identifiers": ASKED[2:]}
    now = [ordered_pairs(released(tmp_path / f"now{run}", PEOPLE, **keys)) for run in range(5)]
    pairs, found = map(sum, zip(*now, strict=True))  # of one release by itself it varies by 0.01
    assert abs(found / pairs - 0.5) < 0.02
    monkeypatch.setattr(anonymizer, "laid_out", of_cut_classes)
    pairs, found = ordered_pairs(released(tmp_path / "once", PEOPLE, **keys))
    assert found / pairs > 0.6


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("style", ["text", "bounds"])
def test_classes_ascend_by_what_is_published_and_not_by_the_cuts(style, null):
    """Of sets and of bounds, too: they were in the order in which they were cut."""
    rng = np.random.default_rng(7)
    text = pa.array([f"v{at:02}" for at in rng.integers(0, 20, 600)])
    number = pa.array(rng.integers(0, 40, 600), mask=null & (rng.random(600) < 0.1))
    columns = ["number", "text"] if style == "bounds" else ["text", "number"]
    job = {"k": 3, "cut": "median", "quasi_identifiers": columns, "interval_style": style}
    table, _ = anonymize(pa.table({"text": text, "number": number}).select(columns), job)
    if style == "bounds":
        low = table["number_min"].to_pylist()
        missing = low.count(None)
        assert low[missing:] == sorted(low[missing:])
        assert low[:missing] == [None] * missing
    else:
        runs = [label for label, _ in groupby(table["text"].to_pylist())]
        assert len(runs) == len(set(runs)) > 20


@pytest.mark.parametrize(
    "keys", one_here([*ALGORITHMS[1:5:3], *in_soak([ALGORITHMS[0], ALGORITHMS[3]])]), ids=name_of
)
def test_the_order_of_classes_does_not_depend_on_the_order_of_the_source(tmp_path, keys):
    mixed = PEOPLE.take(pa.array(np.random.default_rng(1).permutation(PEOPLE.num_rows)))
    here, there = (
        released(tmp_path / name, table, **keys)
        for name, table in (("as it is", PEOPLE), ("mixed", mixed))
    )
    assert list(here.classes()) == list(there.classes())
    assert here.report["metrics"] == there.report["metrics"]
