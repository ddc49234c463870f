"""Who can be told apart before a release, counted as pandas would."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mondrian_ops.data.raw_risk import people_like, raw_risk, rows_by_people

DRAW = np.random.default_rng(3)
ROWS = 40_000
TABLE = pa.table(
    {
        "age": pa.array(DRAW.integers(18, 90, ROWS), mask=DRAW.random(ROWS) < 0.1),
        "wide": pa.array(DRAW.integers(0, 3, ROWS) - 1),
        "narrow": pa.array(DRAW.integers(0, 3, ROWS).astype(np.int8)),
        "town": pa.array(DRAW.choice(["Rome", "Bari", "Lyon"], ROWS)).dictionary_encode(),
        "born": pa.array(DRAW.integers(0, 30, ROWS).astype(np.int32)).cast(pa.date32()),
        "height": pa.array(DRAW.choice([1.5, 1.75, 2.0], ROWS)),
        "who": pa.array(DRAW.integers(0, 9000, ROWS)),
    }
)
NAMES = [name for name in TABLE.column_names if name != "who"]


@pytest.mark.parametrize("entity_id", [None, "who"])
@pytest.mark.parametrize("names", [NAMES[:1], NAMES[:3], NAMES])
def test_people_with_the_same_values_are_counted(names: list[str], entity_id: str | None) -> None:
    sampled = np.sort(DRAW.choice(ROWS, 3000, replace=False))
    found = people_like(TABLE, sampled, names, entity_id)
    groups = TABLE.to_pandas().astype({"town": str}).groupby(names, dropna=False)["who"]
    counted = groups.transform("size" if entity_id is None else "nunique").to_numpy()
    assert found.tolist() == counted[sampled].tolist()


def test_more_columns_of_bytes_than_a_word_has() -> None:
    columns = {f"c{at}": DRAW.integers(-1, 1, 500).astype(np.int8) for at in range(9)}
    table = pa.table({"first": np.zeros(500), **columns, "who": np.arange(500)})
    names, sampled = ["first", *columns], np.arange(0, 500, 3)
    sizes = table.to_pandas().groupby(names)["who"].transform("size").to_numpy()
    assert people_like(table, sampled, names, None).tolist() == sizes[sampled].tolist()
    assert people_like(table[7:], sampled[3:] - 7, names, None).sum() < sizes[sampled[3:]].sum()
    copied = pa.table(table[7:].to_pandas())
    of_slice, of_copy = (people_like(t, sampled[3:] - 7, names, None) for t in (table[7:], copied))
    assert of_slice.tolist() == of_copy.tolist()


def test_rows_in_several_pieces_and_none() -> None:
    pieces = pa.concat_tables([TABLE[:7], TABLE[7:100]])
    whole = people_like(TABLE[:100], np.arange(100), NAMES, None)
    assert people_like(pieces, np.arange(100), NAMES, None).tolist() == whole.tolist()
    assert not len(people_like(TABLE, np.zeros(0, np.int64), NAMES, None))


def test_the_risk_is_told_of_k_rows_at_least() -> None:
    people = np.repeat([1, 3, 12], [40, 30, 30])
    risk = raw_risk(people, 5)
    assert risk["unique"] == 0.4
    assert risk["average"] == pytest.approx((40 + 30 / 3 + 30 / 12) / 100)
    assert risk["rows_by_people"] == [[1, 0.4], [2, 0.3], [10, 0.3]]
    assert raw_risk(np.full(9, 7), 5)["unique"] == 0
    assert raw_risk(np.repeat([1, 12], [5, 3009]), 5)["average"] == 0.0849  # no more digits


@pytest.mark.parametrize("people", [np.repeat([1, 12], [3, 97]), np.repeat([1, 2], [97, 3])])
def test_unique_rows_are_not_counted_where_these_or_the_others_are_few(people: np.ndarray) -> None:
    hidden = {"unique": None, "average": None, "rows_by_people": [[1, 1.0]]}
    assert raw_risk(people, 5) == hidden
    assert raw_risk(people, 4) == hidden
    assert raw_risk(people, 3)["unique"] == np.mean(people == 1)


def test_rows_of_one_person_are_those_of_one() -> None:
    people, others = np.repeat([1, 12, 60], [12, 12, 76]), np.arange(100, 176)
    persons = np.concatenate([np.zeros(12), np.arange(12), others]).astype(np.int64)
    risk = raw_risk(people, 12, persons)
    assert risk == {"unique": None, "average": None, "rows_by_people": [[1, 0.24], [50, 0.76]]}
    alone = np.where(people == 12, 1, people)
    assert raw_risk(alone, 12, persons)["unique"] == 0.24
    assert raw_risk(alone, 13, persons)["rows_by_people"] == [[1, 1.0]]  # person 0 counts once
    assert raw_risk(people[:12], 5, persons[:12])["rows_by_people"] == []


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({1: 9, 2: 1, 3: 1, 70: 20}, [(1, 9), (2, 22)]),
        ({1: 9, 60: 2}, [(1, 11)]),
        ({1: 2, 60: 2}, []),
        ({5: 5, 9: 5, 10: 5}, [(5, 10), (10, 5)]),
    ],
)
def test_fewer_than_k_rows_join_others(
    rows: dict[int, int], expected: list[tuple[int, int]]
) -> None:
    sizes = np.array([*rows]), np.array([*rows.values()])
    assert rows_by_people(sizes, 5) == expected
    assert pd.Series(dict(expected)).sum() in (0, sum(rows.values()))
