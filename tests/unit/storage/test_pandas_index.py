"""Which columns are a pandas index, by what pandas writes and by what others leave of it."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops.storage import index_columns, open_source, without_index

FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
INDEXES: dict[str, tuple[Any, set[str]]] = {
    "of row numbers": (FRAME.index, set()),
    "without a name": (pd.Index(["p", "q"]), {"__index_level_0__"}),
    "with a name": (pd.Index(["p", "q"], name="ssn"), {"ssn"}),
    "with the name of a column": (pd.Index(["p", "q"], name="a"), {"__index_level_0__"}),
    "of two levels": (
        pd.MultiIndex.from_arrays([["p", "q"], [7, 8]], names=["ssn", None]),
        {"ssn", "__index_level_1__"},
    ),
}


@pytest.mark.parametrize("which", INDEXES)
def test_an_index_is_known_by_what_pandas_writes(tmp_path, which):
    index, expected = INDEXES[which]
    table = pa.Table.from_pandas(FRAME.set_index(index))
    assert index_columns(table.schema) == expected
    pq.write_table(table, tmp_path / "in.parquet")
    source = open_source(str(tmp_path / "in.parquet"))
    assert set(source.index) == expected
    assert source.schema.names == ["a", "b"]
    for name in expected:
        named = open_source(str(tmp_path / "in.parquet"), [name])
        assert set(named.index) == expected - {name}
        assert named.schema.names == ["a", "b", name]


def schema(names: list[str], metadata: bytes | None = None) -> pa.Schema:
    return pa.schema(
        [(name, pa.int64()) for name in names], None if metadata is None else {"pandas": metadata}
    )


def test_an_unnamed_one_is_known_by_its_name_alone(tmp_path):
    names = ["a", "__index_level_0__", "__index_level_12__", "__index_level_x__", "index_level_0"]
    names += ["x__index_level_0__", "__index_level_0__x"]
    expected = {"__index_level_0__", "__index_level_12__"}
    assert index_columns(schema(names)) == expected
    assert index_columns(schema(names, b"{}")) == expected
    (tmp_path / "in.csv").write_text("a,__index_level_0__\n1,2\n", encoding="utf-8")
    source = open_source(str(tmp_path / "in.csv"))
    assert (source.schema.names, source.index) == (["a"], ("__index_level_0__",))


@pytest.mark.parametrize(
    "listed",
    [["ssn", "gone", 7, None, {"kind": "range", "name": "a"}, ["a"]], ["ssn", "ssn"]],
)
def test_of_what_is_listed_the_columns_count(listed):
    metadata = json.dumps({"index_columns": listed}).encode()
    assert index_columns(schema(["a", "ssn"], metadata)) == {"ssn"}


@pytest.mark.parametrize(
    "metadata",
    [b"", b"{", b"[]", b"7", b"null", b'{"index_columns": "a"}', b'{"index_columns": {"a": 1}}',
     b'{"index_columns": null}', b'{"columns": ["a"]}', b"\xff\xfe", b"[" * 100_000],
)  # fmt: skip
def test_metadata_that_makes_no_sense_lists_nothing(metadata):
    assert index_columns(schema(["a", "i"], metadata)) == set()


def test_what_a_job_names_is_no_index():
    names = ["b", "i", "a", "j"]
    assert without_index(names, {"j", "i"}, []) == (["b", "a"], ["i", "j"])
    assert without_index(names, {"j", "i"}, ["i", "a"]) == (["b", "i", "a"], ["j"])
    assert without_index(names, [], ["i"]) == (names, [])


@pytest.mark.parametrize("which", [0, 1, 2])
def test_the_index_of_any_file_counts_for_all(tmp_path, which):
    with_index = pa.Table.from_pandas(FRAME.set_index(INDEXES["with a name"][0]))
    for at in range(3):
        table = with_index if at == which else with_index.replace_schema_metadata()
        pq.write_table(table, tmp_path / f"{at}.parquet")
    source = open_source(str(tmp_path))
    assert (source.schema.names, source.index) == (["a", "b"], ("ssn",))
    assert source.rows == 6
