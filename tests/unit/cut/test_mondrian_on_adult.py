"""Strict and relaxed Mondrian on age and education-num of Adult: Table 2 of the source on Samarati.

Its program flips a coin for the attribute and never looks again at a class whose first cut fails:
its figures are no one's but that night's. What must be seen here is their shape, at less loss.
"""

from __future__ import annotations

import csv
from collections import Counter

import pyarrow as pa
import pytest

import brute_force
from mondrian_ops import anonymize
from shared_data import shared_data

NAMES = ("age", "education-num")
PRINTED = {10: 0.2887, 50: 0.3166, 100: 0.3459, 1000: 0.4890}  # loss by k, over both attributes


@pytest.fixture(scope="module")
def adult():
    with shared_data("adult/adult_uci.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    complete = [row for row in rows if "?" not in row.values()]  # the source drops the others
    assert len(complete) == 30_162
    return pa.table({name: [int(row[name]) for row in complete] for name in NAMES})


@pytest.fixture(scope="module")
def reports(adult):
    """By relaxed and k."""

    def report(relaxed, k):
        job = {"k": k, "cut": "median", "relaxed": relaxed, "quasi_identifiers": list(NAMES)}
        return anonymize(adult, job)[1]

    return {(relaxed, k): report(relaxed, k) for relaxed in (False, True) for k in PRINTED}


@pytest.mark.parametrize("relaxed", [False, True], ids=["strict", "relaxed"])
def test_loss_grows_and_classes_dwindle_with_k(reports, relaxed):
    losses = [2 * reports[relaxed, k]["metrics"]["LM"] for k in PRINTED]
    classes = [reports[relaxed, k]["equivalence_classes"] for k in PRINTED]
    assert losses == sorted(losses)
    assert classes == sorted(classes, reverse=True)
    assert all(ours < printed for ours, printed in zip(losses, PRINTED.values(), strict=True))


@pytest.mark.parametrize("k", PRINTED)
def test_rows_of_a_median_on_both_sides_make_smaller_classes(reports, k):
    strict, relaxed = (reports[each, k]["class_sizes"] for each in (False, True))
    assert k <= min(relaxed)[0]
    assert k <= min(strict)[0]
    assert max(relaxed)[0] < max(strict)[0]


@pytest.mark.servers
@pytest.mark.parametrize("k", [pytest.param(100, marks=pytest.mark.soak), 1000])
def test_strict_classes_are_those_of_the_brute_force_reference(adult, reports, k):
    rows = list(zip(*(adult[name].to_pylist() for name in NAMES), strict=True))
    spans = [max(column) - min(column) for column in zip(*rows, strict=True)]
    attributes = [brute_force.Interval(span) for span in spans]
    expected = brute_force.mondrian(rows, attributes, "median", lambda some: len(some) >= k)
    lost = [
        len(each) * attribute.loss({rows[i][a] for i in each})
        for each in expected
        for a, attribute in enumerate(attributes)
    ]
    sizes = Counter(len(each) for each in expected)
    assert reports[False, k]["class_sizes"] == sorted(map(list, sizes.items()))
    assert 2 * reports[False, k]["metrics"]["LM"] == pytest.approx(sum(lost) / len(rows))
