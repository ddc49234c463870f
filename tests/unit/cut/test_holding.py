"""Each row of a night is published with its whole class, waits, or is suppressed: never two."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.cut.holding import Holding
from mondrian_ops.generalize.attributes import Classes, Losses, Published


@st.composite
def nights(draw: st.DrawFn) -> tuple[Classes, Published, pa.ChunkedArray]:
    """Classes of some rows, what they lose, and the nights in which the rows first came."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    rows = sum(sizes)
    index = np.array(draw(st.permutations(range(rows))), np.int32)
    losses = np.array(
        draw(st.lists(st.sampled_from([0, 0.1, 0.5, 1]), min_size=len(sizes), max_size=len(sizes)))
    )
    came = draw(st.lists(st.integers(1, 9), min_size=rows, max_size=rows))
    flags = np.zeros(len(sizes), bool)
    values = pa.array([str(at) for at in range(len(sizes))])
    published = Published.each({"age": values}, Losses(losses, losses, flags, flags))
    classes = Classes(index, np.cumsum(sizes) - np.array(sizes))
    return classes, published, pa.chunked_array([pa.array(came, pa.int32())])


@given(nights(), st.none() | st.sampled_from([0, 0.1, 0.4, 1]), st.integers(0, 9), st.booleans())
def test_what_becomes_of_each_row(night, above, overdue_since, suppress):
    classes, published, came = night
    divided = Holding(above, overdue_since, suppress).divide(classes, [published, published], came)
    members = np.split(classes.index, classes.starts[1:])
    for rows, out, loss in zip(members, divided.published, published.ncp, strict=True):
        overdue = came.to_numpy()[rows] <= overdue_since
        waits = divided.waiting[rows]
        good = above is None or loss <= above
        assert out == (good or (bool(overdue.any()) and not suppress))
        assert not (waits & overdue).any()
        assert not (out and waits.any())
        assert out or (waits == ~overdue).all()


def test_rows_of_the_night_that_is_named_are_overdue_too():
    came = pa.chunked_array([pa.array([4, 5, 6], pa.int32())])
    assert Holding(0.1, 5, suppress=True).overdue(came).tolist() == [True, True, False]


@given(nights(), st.booleans(), st.none() | st.just(0.4), st.booleans(), st.data())
def test_rows_that_no_class_may_take_wait_or_not_and_are_never_published(
    night, suppress, above, unmatched_wait, data
):
    classes, published, came = night
    matched = len(classes.index)
    others = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    came = pa.chunked_array([*came.chunks, pa.array(others, pa.int32())])
    unmatched = np.arange(len(came)) >= matched
    holding = Holding(above, 4, suppress, unmatched_wait)
    without = holding.divide(classes, [published], came[:matched])
    divided = holding.divide(classes, [published], came, unmatched)
    assert divided.waiting[matched:].tolist() == [unmatched_wait and night > 4 for night in others]
    assert divided.waiting[:matched].tolist() == without.waiting.tolist()
    assert divided.published.tolist() == without.published.tolist()


def test_rows_that_no_class_may_take_wait_unless_it_is_said():
    assert Holding(None, 0, suppress=False).unmatched_wait


@given(nights(), st.data())
def test_the_classes_that_are_kept_are_whole(night, data):
    classes, published, _ = night
    chosen = np.array(
        data.draw(
            st.lists(st.booleans(), min_size=len(classes.starts), max_size=len(classes.starts))
        )
    )
    kept, values = classes.where(chosen), published.where(chosen)
    before = np.split(classes.index, classes.starts[1:])
    after = np.split(kept.index, kept.starts[1:]) if len(kept.starts) else []
    expected = [rows.tolist() for rows, is_kept in zip(before, chosen, strict=True) if is_kept]
    assert [rows.tolist() for rows in after] == expected
    assert kept.sizes.tolist() == [len(rows) for rows in expected]
    assert values.columns["age"].to_pylist() == [str(at) for at in np.flatnonzero(chosen)]
    assert values.ncp.tolist() == published.ncp[chosen].tolist()
