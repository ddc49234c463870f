from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.data.encoding import as_array, encode_ranks
from mondrian_ops.data.persons import digests
from mondrian_ops.verify.arrays import decoded, in_one, persons_of, ranks_of

DAY = datetime.date(2024, 5, 1)
COLUMNS = {
    "whole numbers": pa.array([7, None, -3, 7, 2**62]),
    "numbers": pa.array([0.0, -0.0, float("nan"), 1.5, None]),
    "half numbers": pa.array(np.array([1.5, -0.0, np.nan], np.float16)),
    "texts": pa.array(["b", "", None, "a", "b"]),
    "bytes": pa.array([b"b", None, b"\xff", b"b"]),
    "truths": pa.array([True, None, False]),
    "days": pa.array([DAY, None, DAY - datetime.timedelta(1)]),
    "a dictionary": pa.array(["b", "a", None, "b"]).dictionary_encode(),
    "nothing": pa.array([None, None], pa.string()),
    "no rows": pa.array([], pa.int32()),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_values_are_ranked_as_cutting_ranks_them(name):
    for column in (COLUMNS[name], pa.chunked_array([COLUMNS[name]] * 2)):
        values, expected = decoded(column), as_array(column)
        assert values.equals(expected)
        ranks, distinct = ranks_of(values)
        other_ranks, other_distinct = encode_ranks(expected)
        assert ranks.tolist() == other_ranks.tolist()
        assert distinct.equals(other_distinct)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_person_has_one_number_in_all_parts(name):
    column = decoded(COLUMNS[name])
    assert persons_of(column).tolist() == digests(column).tolist()
    assert persons_of(column.slice(1)).tolist() == persons_of(column).tolist()[1:]


def test_missing_persons_are_0_and_others_differ():
    assert persons_of(pa.array([None, "a", "b", "a"])).tolist()[0] == 0
    assert len({*persons_of(pa.array([None, "a", "b", "a"])).tolist()}) == 3


def test_a_column_without_chunks_is_an_empty_array():
    assert in_one(pa.chunked_array([], pa.string())).equals(pa.array([], pa.string()))
