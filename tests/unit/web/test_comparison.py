"""Two releases side by side."""

from __future__ import annotations

import re

import pytest

from html_page import page_at
from releases import entry_id, keep, report_of


def test_two_releases_are_compared(client, catalogue):
    keep(catalogue, 1, GCP=0.1, report=report_of(names=["age", "zip"]))
    keep(catalogue, 2, GCP=0.15, report=report_of(names=["age", "sex"]))
    page = page_at(client, f"compare?id={entry_id(2)}&id={entry_id(1)}")
    assert "+50.0 %" in page.text  # whichever was chosen first, the older one is A
    loss, sizes = page.charts
    assert loss.says == [
        "age: A 20.0 %, B 20.0 %",
        "zip: A 20.0 %, B –",
        "sex: A –, B 20.0 %",
    ]
    for letter in "AB":
        shares = [float(re.search(rf"{letter} ([\d.]+) %", each)[1]) for each in sizes.says]
        assert sum(shares) == pytest.approx(100, abs=0.1)


def test_two_releases_without_classes_are_compared(client, catalogue):
    for number in (1, 2):
        keep(catalogue, number, report={**report_of(), "class_sizes": []})
    page = page_at(client, f"compare?id={entry_id(2)}&id={entry_id(1)}")
    assert page.charts[1].says == []


@pytest.mark.parametrize("query", ["", "?id=x", f"?id={entry_id(1)}", "?id=a&id=b&id=c"])
def test_other_than_two_cannot_be_compared(client, catalogue, query):
    keep(catalogue, 1)
    assert client.get(f"compare{query}").status_code == 400
