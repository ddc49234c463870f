"""The checks before a kernel runs, against the loops that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from examples import examples
from mondrian_ops.native import bounds

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
    entries = arrays.from_dtype(np.dtype(type_)) | st.integers(0, 9)
    array = np.array(data.draw(st.lists(entries, max_size=5)), type_)
    inside = all(0 <= entry < limit for entry in array.tolist())
    assert refused(bounds.check_below, array, limit, "index") == (not inside)


@examples(300)
@given(st.lists(NEAR_0 | FAR, max_size=5), st.integers(0, 9), st.integers(0, 2), st.booleans())
def test_runs_ascend_up_to_the_stop_and_have_the_least_length(starts, stop, least, in_order):
    starts = sorted(starts) if in_order else starts
    ends = [*starts[1:], stop]
    runs = all(0 <= a <= b - least for a, b in zip(starts, ends, strict=False))
    array = np.array(starts, np.int64)
    assert refused(bounds.check_starts, array, stop, "starts", least=least) == (not runs)


def test_an_error_names_what_is_wrong_and_what_it_must_be():
    with pytest.raises(ValueError, match=r"^first: must ascend, by 2 at least$"):
        bounds.check_starts(np.array([0, 1, 4]), 9, "first", least=2)
    with pytest.raises(ValueError, match=r"^first: all must be from 0 to less than 8$"):
        bounds.check_starts(np.array([0, 8]), 9, "first", least=2)
    message = r"^rows: each combination must have 1 at least, all less than 2\^62$"
    with pytest.raises(ValueError, match=message):
        bounds.check_rows(np.array([1, 0]), least=1)
    with pytest.raises(ValueError, match=r"^rows: at most 2147483647 are supported"):
        bounds.check_count(2**31, "rows")
    with pytest.raises(ValueError, match=r"^rows: must be writable"):
        bounds.check_writable(np.frombuffer(b"abcd", np.uint8), "rows")


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
    assert refused(bounds.check_rows, np.array(rows, np.int64), least) == wrong


@pytest.mark.parametrize(("count", "wrong"), [(0, False), (2**31 - 1, False), (2**31, True)])
def test_rows_are_numbered_in_32_bits(count, wrong):
    assert refused(bounds.check_count, count, "rows") == wrong


def test_a_view_of_what_is_read_only_is_refused_and_a_copy_is_not():
    array = np.frombuffer(b"abcd", np.uint8)
    assert refused(bounds.check_writable, array[1:], "index")
    assert not refused(bounds.check_writable, array[1:].copy(), "index")
