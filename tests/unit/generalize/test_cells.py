"""The cells between given boundaries: of every type, of values that no night before had."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data.values import read_value
from mondrian_ops.generalize.cells import Boundaries
from published_text import KINDS, is_missing
from series_cells import ORDERED, attribute_of, column_of, ends_of, published


@examples(400)
@given(st.data())
def test_every_published_interval_is_the_least_union_of_cells_around_its_values(data):
    name = data.draw(st.sampled_from(sorted(ORDERED)))
    kind = ORDERED[name]
    edges = data.draw(st.lists(kind.values, max_size=6))
    boundaries = sorted({edge for edge in edges if not is_missing(edge)})
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    values = data.draw(st.lists(st.none() | kind.values, min_size=sum(sizes), max_size=sum(sizes)))
    attribute = attribute_of(kind, boundaries, values)
    found = published(attribute, column_of(kind, values), sizes)
    start = 0
    for at, size in enumerate(sizes):
        originals = values[start : start + size]
        start += size
        present = [value for value in originals if not is_missing(value)]
        if len(present) < size:
            assert found.columns["q"][at].as_py() == ("*" if present else None)
            continue
        low, _ = ends_of(kind, name, boundaries, min(present))
        _, high = ends_of(kind, name, boundaries, max(present))
        one_value = low[1:] == high[:-1] and high[-1] == "]"
        assert found.columns["q"][at].as_py() == (low[1:] if one_value else f"{low}, {high}")
        assert found.exact[at] == one_value
        assert 0 <= found.ncp[at] <= 1 + 1e-9
        assert not (one_value and found.ncp[at])


def test_bounds_lack_the_end_that_a_cell_lacks():
    kind = KINDS["int"]
    values = [1, 4, 5, 9, 30, 40]
    attribute = attribute_of(kind, [3, 5, 10], values, interval_style="bounds")
    found = published(attribute, pa.array(values), [2, 2, 2])
    assert found.columns["q_min"].to_pylist() == [None, 5, 10]
    assert found.columns["q_max"].to_pylist() == [4, 9, None]
    assert found.ncp.tolist() == pytest.approx([3 / 39, 4 / 39, 30 / 39])


@pytest.mark.parametrize(
    ("type_", "edges", "below"),
    [
        (pa.int16(), [5, 30], 29),
        (pa.float64(), [5.0, 30.5], float(np.nextafter(30.5, 0))),
        (pa.float32(), [5.0, 30.5], float(np.nextafter(np.float32(30.5), np.float32(0)))),
        (pa.decimal128(8, 2), [Decimal(5), Decimal(30)], "29.99"),
        (pa.date32(), [dt.date(2020, 1, 1), dt.date(2020, 3, 1)], "2020-02-29"),
        (pa.date64(), [dt.date(2020, 1, 1), dt.date(2020, 3, 1)], "2020-02-29"),
        (pa.time32("s"), [dt.time(1), dt.time(5)], "04:59:59"),
    ],
)  # fmt: skip
def test_a_cut_between_cells_sends_the_values_of_either_to_its_side(type_, edges, below):
    cells = Boundaries(pa.array(edges, type_))
    assert cells.greatest(1, type_) == below
    assert cells.greatest(2, type_) is None
    last = read_value(below, type_)
    assert cells.of(pa.array([last, pa.array(edges, type_)[1]], type_), "q").tolist() == [1, 2]


def test_a_round_value_between_cells_may_be_shown():
    attribute = attribute_of(KINDS["int"], [0, 25, 30], [1, 26, 31])
    encoded = attribute.encode(pa.array([1, 26, 31]))
    assert attribute.cut_value(encoded, 1) == 24
    assert attribute.cut_round(encoded, 1) is not None
    assert attribute.cut_round(encoded, 2) is None  # the last cell has no end


def test_large_numbers_are_put_into_cells_without_rounding():
    edge = 2**60
    cells = Boundaries(pa.array([edge], pa.int64()))
    assert cells.of(pa.array([edge - 1, edge, edge + 1]), "q").tolist() == [0, 1, 1]
