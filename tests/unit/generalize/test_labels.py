"""The texts of classes: made once for each pair of ends, and each text once in a dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.generalize import labels

TEXTS = st.text(max_size=2) | st.sampled_from(["*", "a, b", "ä"])


def each_once(column: pa.DictionaryArray) -> list[str | None]:
    """The texts of the rows; the dictionary has none of them twice, and no null."""
    listed = column.dictionary.to_pylist()
    assert len(set(listed)) == len(listed)
    assert None not in listed
    return column.to_pylist()


@pytest.mark.parametrize("unused", [0, 3000], ids=["few codes", "many codes"])
@examples(100)
@given(st.data())
def test_an_interval_is_named_by_the_texts_of_its_ends(unused, data):
    value = TEXTS.map(lambda text: (text, text, True))
    cell = st.tuples(st.none() | TEXTS, st.none() | TEXTS, st.just(False))
    lower, upper, is_value = zip(
        *data.draw(st.lists(value | cell, min_size=1, max_size=5)), strict=True
    )
    close = data.draw(st.sampled_from("])"))
    codes = st.integers(0, len(lower))
    ends = data.draw(st.lists(st.tuples(codes, codes).map(sorted)))
    low, high = np.ascontiguousarray(np.array(ends, np.int64).reshape(-1, 2).T)
    expected = []
    for a, b in ends:
        if a == b and (b == 0 or is_value[a - 1]):
            expected.append(None if b == 0 else lower[a - 1])
        elif a == 0:
            expected.append("*")
        else:
            start = "(-inf" if lower[a - 1] is None else f"[{lower[a - 1]}"
            stop = "inf)" if upper[b - 1] is None else f"{upper[b - 1]}{close}"
            expected.append(f"{start}, {stop}")
    low, high, pair_of = labels.distinct_pairs(low, high, len(lower) + 1 + unused)
    assert len({*zip(low.tolist(), high.tolist(), strict=True)}) == len(low)
    single = (low == high) & np.array([True, *is_value])[low]
    texts = (pa.array(each, pa.string()) for each in (lower, upper))
    named = labels.labels_of_pairs(low, high, *texts, single, close)
    named = labels.dictionary_of_texts(pair_of, named)
    assert each_once(named) == expected


@examples(100)
@given(st.data())
def test_a_dictionary_holds_the_texts_in_use_and_each_of_them_once(data):
    texts = data.draw(st.lists(st.none() | TEXTS, min_size=1))
    ids = data.draw(st.lists(st.integers(-1, len(texts) - 1)))
    expected = [None if at < 0 else texts[at] for at in ids]
    named = labels.dictionary(np.array(ids, np.int64), pa.array(texts, pa.string()))
    assert each_once(named) == expected
    assert set(named.dictionary.to_pylist()) == set(expected) - {None}
    some = [at for at in ids if at >= 0]
    named = labels.dictionary_of_texts(np.array(some, np.int64), pa.array(texts, pa.string()))
    assert each_once(named) == [texts[at] for at in some]


@examples(100)
@given(st.lists(st.tuples(st.none() | TEXTS, st.booleans())))
def test_a_star_replaces_a_text_or_none_where_it_is_set(rows):
    texts = pa.array([text for text, _ in rows], pa.string()).dictionary_encode()
    found = labels.starred(texts, np.array([star for _, star in rows], bool))
    assert each_once(found) == ["*" if star else text for text, star in rows]


@pytest.mark.parametrize(
    ("edges", "texts"),
    [
        ([1.0, -2.0, -0.0], ["1", "-2", "0"]),
        ([1.0, 0.5, None], ["1", "0.5", None]),
        ([2.0**53 - 1], ["9007199254740991"]),
        ([-(2.0**53)], ["-9.007199254740992e+15"]),
        ([1e300, 1.0], ["1e+300", "1"]),
        ([], []),
    ],
)
def test_whole_edges_have_no_point(edges, texts):
    assert labels.edge_text(pa.array(edges, pa.float64())).to_pylist() == texts


def test_edges_that_are_dates_are_written_as_dates():
    assert labels.edge_text(pa.array([0, None], pa.date32())).to_pylist() == ["1970-01-01", None]
