"""The checks before a kernel runs, against the loops that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as from_numpy

from hypothesis_profiles import examples
from mondrian_ops.native import arrays

WHOLE = st.sampled_from([np.uint8, np.int32, np.uint32, np.int64, np.uint64])
NEAR_0 = st.integers(-2, 9)
FAR = st.sampled_from([-(2**63), 2**63 - 1])


def refused(check, *arguments, **named) -> bool:
    try:
        check(*arguments, **named)
    except ValueError:
        return True
    return False


@examples(200)
@given(st.data(), WHOLE, st.integers(0, 9) | st.just(2**31))
def test_all_entries_lie_below_the_limit(data, type_, limit):
    entries = from_numpy.from_dtype(np.dtype(type_)) | st.integers(0, 9)
    array = np.array(data.draw(st.lists(entries, max_size=5)), type_)
    inside = all(0 <= entry < limit for entry in array.tolist())
    assert refused(arrays.check_below, array, limit, "index") == (not inside)


@examples(300)
@given(st.lists(NEAR_0 | FAR, max_size=5), st.integers(0, 9), st.integers(0, 2), st.booleans())
def test_runs_ascend_up_to_the_stop_and_have_the_least_length(starts, stop, least, in_order):
    starts = sorted(starts) if in_order else starts
    ends = [*starts[1:], stop]
    runs = all(0 <= a <= b - least for a, b in zip(starts, ends, strict=False))
    array = np.array(starts, np.int64)
    assert refused(arrays.check_starts, array, stop, "starts", least=least) == (not runs)


def test_an_error_names_what_is_wrong_and_what_it_must_be():
    with pytest.raises(ValueError, match=r"^first: must ascend, by 2 at least$"):
        arrays.check_starts(np.array([0, 1, 4]), 9, "first", least=2)
    with pytest.raises(ValueError, match=r"^first: all must be from 0 to less than 8$"):
        arrays.check_starts(np.array([0, 8]), 9, "first", least=2)
    message = r"^rows: each combination must have 1 at least, all less than 2\^62$"
    with pytest.raises(ValueError, match=message):
        arrays.check_rows(np.array([1, 0]), least=1)
    with pytest.raises(ValueError, match=r"^rows: at most 2147483647 are supported"):
        arrays.check_count(2**31, "rows")
    with pytest.raises(ValueError, match=r"^rows: must be writable"):
        arrays.check_writable(np.frombuffer(b"abcd", np.uint8), "rows")


@pytest.mark.parametrize(
    ("rows", "least", "wrong"),
    [
        ([], 0, False),
        ([], 1, False),
        ([0], 0, False),
        ([3, 0], 1, True),
        ([-1], 0, True),
        ([-(2**63), 2**63 - 1], 0, True),
        ([2**61, 2**61 - 2**10], 0, False),
        ([2**61, 2**61], 0, True),
        ([2**63 - 1, 2**63 - 1, 2], 0, True),  # the sum in 64 bits is 0
    ],
)
def test_rows_are_enough_and_can_be_added(rows, least, wrong):
    assert refused(arrays.check_rows, np.array(rows, np.int64), least) == wrong


@pytest.mark.parametrize(("count", "wrong"), [(0, False), (2**31 - 1, False), (2**31, True)])
def test_rows_are_numbered_in_32_bits(count, wrong):
    assert refused(arrays.check_count, count, "rows") == wrong


def test_a_view_of_what_is_read_only_is_refused_and_a_copy_is_not():
    array = np.frombuffer(b"abcd", np.uint8)
    assert refused(arrays.check_writable, array[1:], "index")
    assert not refused(arrays.check_writable, array[1:].copy(), "index")


def test_address_of_an_array():
    array = np.zeros((2, 3), np.int32)
    assert arrays.address(array, np.int32, 2, None) == array.ctypes.data
    assert arrays.address(array[1], np.int32, 3) == array.ctypes.data + 12


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        (np.zeros((2, 3)), TypeError, "codes: int32 expected, got float64"),
        (np.zeros((2, 3), np.int64), TypeError, "codes: int32 expected, got int64"),
        (np.zeros((2, 3), ">i4"), TypeError, "codes: int32 expected, got >i4"),
        (np.zeros((3, 2), np.int32).T, ValueError, "codes: must be C-contiguous"),
        (np.zeros((2, 6), np.int32)[:, ::2], ValueError, "codes: must be C-contiguous"),
        (np.zeros(25, np.uint8)[1:].view(np.int32).reshape(2, 3), ValueError, "aligned"),
        (
            np.zeros((2, 4), np.int32),
            ValueError,
            r"codes: shape \(None, 3\) expected, got \(2, 4\)",
        ),
        (np.zeros(3, np.int32), ValueError, "codes: shape"),
        (np.zeros((2, 3, 1), np.int32), ValueError, "codes: shape"),
    ],
)
def test_arrays_of_other_types_and_shapes_are_refused(array, error, text):
    with pytest.raises(error, match=text):
        arrays.address(array, np.int32, None, 3, what="codes")
