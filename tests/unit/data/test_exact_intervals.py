"""Intervals of equal width against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data.exact_intervals import DecimalUnits

WIDTHS = st.sampled_from([1, 5, 0.1, 0.3, 0.25, 1e-6, 2.5, 1e4, 7])
ORIGINS = st.sampled_from([0, 0.05, -3, 1e-6, 0.7, 16])


def exact(number: float) -> Fraction:
    """The decimal fraction that a number is written as."""
    return Fraction(str(number))


@examples(300)
@given(
    width=WIDTHS,
    origin=ORIGINS,
    numbers=st.lists(st.floats(-1e9, 1e9), min_size=1),
    steps=st.lists(st.integers(-(10**8), 10**8), min_size=1),
)
def test_every_number_lies_in_the_interval_of_exact_arithmetic(width, origin, numbers, steps):
    edges = [float(exact(origin) + step * exact(width)) for step in steps]
    beside = [math.nextafter(edge, side) for edge in edges for side in (-math.inf, math.inf)]
    line = np.array([*numbers, *edges, *beside])
    scale = DecimalUnits([width, origin])
    line = line[[scale.holds(line[at : at + 1]) for at in range(len(line))]]
    result = scale.bins(line, scale.units(width), scale.units(origin))
    expected = [math.floor((exact(number) - exact(origin)) / exact(width)) for number in line]
    assert result.tolist() == expected


@examples(100)
@given(width=WIDTHS, origin=ORIGINS, steps=st.lists(st.integers(-(10**6), 10**6)))
def test_edges_are_the_floats_nearest_to_the_exact_ones(width, origin, steps):
    scale = DecimalUnits([width, origin])
    edges = scale.floats(scale.units(origin) + np.array(steps, np.int64) * scale.units(width))
    assert edges.tolist() == [float(exact(origin) + step * exact(width)) for step in steps]


@pytest.mark.parametrize(
    ("numbers", "digits", "units"),
    [
        ([10, 5], 0, [10, 5]),
        ([10.0, 200], 0, [10, 200]),
        ([1e20, 0.5], 1, [10**21, 5]),
        ([0.1, 2.25, -3], 2, [10, 225, -300]),
        ([1e-7], 7, [1]),
        ([np.float64(0.3), 0.30], 1, [3, 3]),
        ([0.1 + 0.2], 17, [30000000000000004]),
    ],
)
def test_units_are_whole_and_as_large_as_they_can_be(numbers, digits, units):
    scale = DecimalUnits(numbers)
    assert scale.digits == digits
    assert [scale.units(number) for number in numbers] == units


@pytest.mark.parametrize(
    ("numbers", "values", "held"),
    [
        ([1, 0], [2**53 - 2], True),
        ([1, 0], [2**53 - 1], False),
        ([1, -1], [-(2**53) + 3], True),
        ([1, -1], [-(2**53) + 2], False),
        ([0.01, 0], [1e13], True),
        ([0.01, 0], [1e14], False),
        ([0.1, 0], [], True),
        ([1e-15, 0], [1], True),
        ([1e-16, 0], [0], False),
        ([5e-324, 0], [0], False),
        ([1, 0], [np.inf], False),
        ([1, 0], [np.nan], False),
    ],
)
def test_edges_are_exact_up_to_the_whole_numbers_that_a_float_holds(numbers, values, held):
    assert DecimalUnits(numbers).holds(np.array(values, np.float64)) == held


def test_whole_numbers_of_any_type_are_held():
    for type_ in (np.int8, np.uint64, np.int64):
        assert DecimalUnits([1, 0]).holds(np.array([0, 127], type_))
    assert DecimalUnits([1, 0]).holds(np.array([-(2**63)])) is False
