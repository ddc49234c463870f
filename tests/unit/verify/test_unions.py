"""Intervals as written against the boundaries of a series."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data.values import text_of
from mondrian_ops.generalize.series_boundaries import ColumnBoundaries
from mondrian_ops.verify.unions import no_bounds, no_unions
from published_text import is_missing
from series_cells import ORDERED, attribute_of, column_of, published


def checked(boundaries: pa.Array) -> ColumnBoundaries:
    return ColumnBoundaries.of(boundaries, pa.chunked_array([boundaries]))


@examples(200)
@given(st.data())
def test_intervals_between_boundaries_pass_and_those_between_fewer_fail(data):
    name = data.draw(st.sampled_from(sorted(ORDERED)))
    kind = ORDERED[name]
    plain = kind.type.value_type if pa.types.is_dictionary(kind.type) else kind.type
    edges = data.draw(st.lists(kind.values, min_size=1, max_size=6))
    boundaries = sorted({edge for edge in edges if not is_missing(edge)})
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    values = data.draw(st.lists(st.none() | kind.values, min_size=sum(sizes), max_size=sum(sizes)))
    column = column_of(kind, values)
    plan = checked(pa.array(boundaries, plain))
    texts = published(attribute_of(kind, boundaries, values), column, sizes).columns["q"]
    assert no_unions(texts.to_pylist(), plan.values, plan.closed) == 0
    bounds = attribute_of(kind, boundaries, values, interval_style="bounds")
    *ends, _hidden = published(bounds, column, sizes).columns.values()
    texts = (text_of(each).to_pylist() for each in ends)
    assert no_bounds(*texts, plan.values, plan.closed) == 0
    if not boundaries:
        return
    lacking = data.draw(st.integers(0, len(boundaries) - 1))
    fewer = checked(pa.array([*boundaries[:lacking], *boundaries[lacking + 1 :]], plain))
    uses = published(
        attribute_of(kind, boundaries, [boundaries[lacking]]),
        column_of(kind, [boundaries[lacking]]),
        [1],
    ).columns["q"]
    assert no_unions(uses.to_pylist(), fewer.values, fewer.closed) == 1


@pytest.mark.parametrize(
    "text", ["25", "[17, 24)", "[18, 24]", "[17, 25]", "[17, 29", "(17, 24]", "[-inf, 24]", "", "x"]
)
def test_what_is_no_union_of_cells_is_counted(text):
    boundaries = checked(pa.array([17, 25, 30, 31]))
    fine = ["[17, 24]", "[17, 30]", "30", "(-inf, 16]", "(-inf, inf)", "[31, inf)", "*", None]
    assert no_unions([*fine, text, text], boundaries.values, boundaries.closed) == 1
    assert no_unions(fine, boundaries.values, boundaries.closed) == 0


def test_a_number_is_the_same_in_every_spelling():
    boundaries = ["1.5", "2.5", "30"]
    for text in ("[1.50, 2.5)", "[1.5, 2.50)", "[01.5, 3E+1)", "(-inf, 2.50)", "[30.0, inf)"):
        assert no_unions([text], boundaries, closed=False) == 0
    assert no_bounds(["1.50"], ["30.0"], boundaries, closed=False) == 0


def test_bounds_that_are_no_boundaries_are_counted():
    boundaries = checked(pa.array([17, 25, 30]))
    args = boundaries.values, boundaries.closed
    assert no_bounds(["17", None, "25"], ["24", "29", None], *args) == 0
    assert no_bounds(["18", "17"], ["24", "28"], *args) == 2
