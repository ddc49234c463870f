"""The geometry of charts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.report.charts import stacked, ticks, treemap


@given(st.floats(1e-6, 1.0))
def test_levels_of_an_axis_are_few_and_reach_the_largest_figure(most: float) -> None:
    levels = ticks(most)
    assert levels[0] == 0
    assert 4 <= len(levels) <= 7
    assert levels[-2] < most <= levels[-1] * (1 + 1e-9)


@given(st.lists(st.floats(-0.5, 1.5), max_size=9))
def test_the_pieces_of_a_bar_follow_one_another_and_end_with_it(shares: list[float]) -> None:
    end = 0.0
    for start, share, _ in stacked((share, "s0") for share in shares):
        assert start >= end - 1e-9
        end = start + share
    assert end <= 1 + 1e-9


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60), st.floats(0.2, 5))
def test_the_tiles_of_a_map_fill_it_by_their_areas_without_overlap(
    areas: list[int], ratio: float
) -> None:
    areas = sorted(areas, reverse=True)
    tiles = treemap(areas, ratio)
    whole = sum(areas) or 1
    for area, (x, y, width, height) in zip(areas, tiles, strict=True):
        assert width * height == pytest.approx(area / whole, abs=1e-9)
        assert min(x, y) >= 0 and max(x + width, y + height) <= 1 + 1e-6
    for at, (x, y, width, height) in enumerate(tiles):
        for other_x, other_y, other_width, other_height in tiles[:at]:
            across = min(x + width, other_x + other_width) - max(x, other_x)
            down = min(y + height, other_y + other_height) - max(y, other_y)
            assert min(across, down) <= 1e-6
