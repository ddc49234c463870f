"""The figures of a report as people read them."""

from __future__ import annotations

import re

import pytest

from mondrian_ops import report as reports
from mondrian_ops.report import figures
from report_samples import make


def test_the_first_lines_name_some_of_very_many_raw_columns() -> None:
    names = [f"c{at}" for at in range(10_000)]
    columns = {**make()["columns"], "unlisted": names}
    report = make(columns=columns)
    note = report["published_raw"]["note"]
    assert note.startswith("10,000 columns go out raw, as unlisted: publish asks: c0, c1, ")
    assert "c19 and 9,980 more." in note and "c20" not in note
    assert report["published_raw"]["columns"] == names
    assert "published_raw" not in make(columns={**columns, "unlisted": []})
    assert "published_raw" not in make(columns={**columns, "unlisted_policy": "drop"})


@pytest.mark.parametrize(
    ("made_by", "said"),
    [
        (None, "the command line or Python"),
        ("hospital", "the DAG 'hospital'"),
        ("hospital/a.b", "the DAG 'hospital' (group 'a.b')"),
    ],
)
def test_who_made_a_release_and_what_it_replaces(made_by: str | None, said: str) -> None:
    report = make(made_by=made_by)
    assert report["made_by"] == made_by
    page = re.sub("&#x27;|&#39;", "'", reports.render_html(report))
    assert said in page and "Replaces" not in page
    replaced = {"made_by": made_by, "k": 3, "created": "2025-06-01T10:00:00+00:00"}
    told = f"It replaces the release of {said}, k = 3, no l, made 2025-06-01 10:00:00 UTC"
    assert figures.replaced({"replaces": replaced}) == told
    assert told in re.sub("&#x27;|&#39;", "'", reports.render_html(report | {"replaces": replaced}))
    assert "It replaces" in reports.render_markdown(report | {"replaces": replaced})
    unknown = figures.replaced({"replaces": {"k": 3, "l": 2, "t": 0.25}})
    assert unknown == "It replaces the release, k = 3, l = 2, t = 0.25"


class TestBins:
    def test_few_sizes_have_a_bar_each(self) -> None:
        found = figures.bins([(7, 2), (5, 10)], k=5)
        assert [(b.low, b.high, b.classes, b.rows) for b in found] == [
            (5, 5, 10, 50), (6, 6, 0, 0), (7, 7, 2, 14),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "sizes",
        [
            [(5 + i, 100) for i in range(200)],
            [(5, 10**6), (6, 10**6), (100_000, 1)],
            [(2**i * 5, 100) for i in range(20)],
            [(5, 1), (5000, 1), (10**8, 1)],
            [(2, 5), (3, 1), (10, 7), (400, 2)],
            [(1, 3)],
        ],
    )
    def test_no_class_is_lost_or_counted_twice(self, sizes: list[tuple[int, int]]) -> None:
        found = figures.bins(sizes, k=5)
        assert sum(b.classes for b in found) == sum(n for _, n in sizes)
        assert sum(b.rows for b in found) == sum(s * n for s, n in sizes)
        assert len(found) <= figures.MAX_BARS + 9
        assert [b for b in found if b.low < 5] == [b for b in found if b.high and b.high < 5]

    def test_no_classes(self) -> None:
        assert figures.bins([], k=5) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 %"), (0.0001, "< 0.1 %"), (0.5, "50.0 %"), (0.99999, "> 99.9 %"), (1, "100.0 %")],
)
def test_percent(value: float, shown: str) -> None:
    assert figures.percent(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(950, "950"), (12_345, "12.3 k"), (999_999, "1 M"), (1.8e6, "1.8 M")]
)
def test_size(value: float, shown: str) -> None:
    assert figures.size(value) == shown


def test_guarantees_of_every_kind() -> None:
    report = make(
        job={"k": 2, "l": 1.5, "diversity": "entropy", "t": 0.2},
        achieved={"k": 2, "l": {"a": 1.4, "b": 3}, "t": 0.2},
    )
    assert [(g.name, g.met) for g in figures.guarantees(report)] == [
        ("k-anonymity", True), ("l-diversity (entropy)", False), ("t-closeness", True),
    ]  # fmt: skip
    assert figures.guarantees(make(achieved={}))[0].met is None


def test_a_class_of_one_sensitive_value_is_pointed_out() -> None:
    report = make(job={"l": None}, achieved={"k": 5, "l": 1})
    assert "l-diversity was not asked for" in reports.render_html(report)
    assert "warning" in reports.render_text(report)
    for harmless in (make(), make(job={"l": None}, achieved={"k": 5, "l": 2})):
        assert "not asked for" not in reports.render_html(harmless)
