"""The figures of a report as people read them."""

from __future__ import annotations

import pytest

from mondrian_ops.report import number_format


class TestBins:
    def test_few_sizes_have_a_bar_each(self) -> None:
        bars = number_format.bins([(7, 2), (5, 10)], k=5)
        assert [(b.low, b.high, b.classes, b.rows) for b in bars] == [
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
        bars = number_format.bins(sizes, k=5)
        assert sum(b.classes for b in bars) == sum(n for _, n in sizes)
        assert sum(b.rows for b in bars) == sum(s * n for s, n in sizes)
        assert len(bars) <= number_format.MAX_BARS + 9
        assert [b for b in bars if b.low < 5] == [b for b in bars if b.high and b.high < 5]

    def test_no_classes(self) -> None:
        assert number_format.bins([], k=5) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 %"), (0.0001, "< 0.1 %"), (0.5, "50.0 %"), (0.99999, "> 99.9 %"), (1, "100.0 %")],
)
def test_percent(value: float, shown: str) -> None:
    assert number_format.percent(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(950, "950"), (12_345, "12.3 k"), (999_999, "1 M"), (1.8e6, "1.8 M")]
)
def test_size(value: float, shown: str) -> None:
    assert number_format.size(value) == shown
