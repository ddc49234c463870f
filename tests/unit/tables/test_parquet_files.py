"""Parquet: files of one schema, text as dictionaries, damage, and the index of a pandas frame."""

from __future__ import annotations

import datetime as dt
import json
from base64 import b64encode
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as encryption
import pytest

from mondrian_ops.cut.plan import Branch, Leaf, Order, Plan
from mondrian_ops.errors import InputError
from mondrian_ops.job import limits
from mondrian_ops.publish import release_files
from mondrian_ops.tables import (
    FileTable,
    index_columns,
    open_table,
    parquet_files,
    without_index,
)
from source_samples import PEOPLE, read, write_declared


def test_filter_works_on_dictionary_columns(tmp_path):
    table = pa.table({"town": PEOPLE["town"].dictionary_encode(), "age": PEOPLE["age"]})
    pq.write_table(table, tmp_path / "p.parquet")
    source = open_table(str(tmp_path))
    kept = read(source, filter=pc.field("town").isin(["Oslo", "Bonn"]))
    assert kept["age"].to_pylist() == [42, 19]


def test_dictionary_encoding_of_one_file_is_no_difference_of_schema(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "a.parquet")
    coded = PEOPLE.set_column(1, "town", PEOPLE["town"].dictionary_encode())
    wide = coded.select(["town", "age"])
    pq.write_table(wide, tmp_path / "b.parquet")
    source = open_table(str(tmp_path))
    assert source.schema == PEOPLE.schema
    assert read(source).equals(pa.concat_tables([PEOPLE, PEOPLE]))
    assert read(source, filter=pc.field("town") == "Oslo").num_rows == 4


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (pa.table({"age": ["x"], "town": ["Rome"]}), r"b\.parquet: column 'age' is string, in a"),
        (pa.table({"age": [1]}), r"b\.parquet: column 'town' of a\.parquet is missing"),
        (PEOPLE.append_column("sex", PEOPLE["town"]), r"b\.parquet: column 'sex' is not in a"),
    ],
)
def test_mixed_schema_names_the_file(tmp_path, other, message):
    pq.write_table(PEOPLE, tmp_path / "a.parquet")
    pq.write_table(other, tmp_path / "b.parquet")
    with pytest.raises(InputError, match=message):
        open_table(str(tmp_path))


DAY, TIME, ZONED = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("one", "other", "remedy"),
    [
        (DAY, TIME, ": dates in all of them, or dates with a time (timestamps) in all"),
        (ZONED, DAY, ": dates in all of them, or dates with a time (timestamps) in all"),
        (TIME, ZONED, ": times with a zone in all of them, or times without one in all"),
        (TIME, pa.timestamp("s"), ""),
        (DAY, pa.string(), ""),
    ],
)
def test_dates_and_times_of_several_types_are_told_apart(tmp_path, one, other, remedy):
    for name, kind in (("a", one), ("b", other)):
        pq.write_table(pa.table({"born": pa.nulls(1, kind)}), tmp_path / f"{name}.parquet")
    with pytest.raises(InputError) as caught:
        open_table(str(tmp_path))
    kinds = [pq.read_schema(tmp_path / f"{name}.parquet").field(0).type for name in "ba"]
    assert str(caught.value).endswith(
        f"column 'born' is {kinds[0]}, in a.parquet {kinds[1]}; give files of one schema{remedy}"
    )


def test_damage_inside_a_file_is_named_when_it_is_met(tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"n": list(range(1000))}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[4:400] = b"\xff" * 396
    path.write_bytes(content)
    source = open_table(str(path))
    with pytest.raises(InputError, match=r"p\.parquet: cannot be read"):
        read(source)


def test_text_comes_in_small_dictionaries_of_the_files_to_whom_that_is_as_good(tmp_path):
    rows = 20_000
    table = pa.table(
        {
            "age": pa.array(range(rows)),
            "town": pa.array(["Rome", None, "Oslo", "Rome"]).take(pa.array(np.arange(rows) % 4)),
            "name": [f"{number * 2654435761 % 2**32:08x}" for number in range(rows)],
            "wide": pa.array(["a", "b"], pa.large_string()).take(pa.array(np.arange(rows) % 2)),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3_000)
    pq.write_table(table, tmp_path / "b.parquet")
    pq.write_table(table, tmp_path / "c.parquet", use_dictionary=False)
    source = open_table(str(tmp_path))
    batches = list(source.batches(["name", "town", "wide"], batch_rows=7_000, dictionaries=True))
    towns = [batch.column("town").type for batch in batches]
    listed = pa.dictionary(pa.int32(), pa.string())
    assert towns == sorted(towns, key=lambda kind: kind != listed)
    assert set(towns) == {listed, pa.string()}
    wide = {batch.column("wide").type for batch in batches}
    assert wide == {pa.large_string()}
    assert batches[-4].column("name").type == pa.string()  # of b: more than a small one
    whole = pa.Table.from_batches([batch.cast(batches[-1].schema) for batch in batches])
    assert whole.equals(read(source, columns=["name", "town", "wide"]))
    assert all(batch.schema == source.schema for batch in source.batches())


def test_metadata_of_the_writer_is_no_part_of_the_schema(tmp_path):
    table = PEOPLE.replace_schema_metadata({"pandas": "{}"})
    pq.write_table(table, tmp_path / "p.parquet")
    source = open_table(str(tmp_path))
    assert source.schema.metadata is None
    assert all(field.metadata is None for field in source.schema)
    assert next(source.batches()).schema.metadata is None


def test_columns_of_parquet_have_a_limit(tmp_path):
    pq.write_table(pa.table({name: [1] for name in "abc"}), tmp_path / "p.parquet")
    with limits.changed(columns=3):
        assert open_table(str(tmp_path / "p.parquet")).rows == 1
    with (
        limits.changed(columns=2),
        pytest.raises(InputError, match="has 3 columns; the limit"),
    ):
        open_table(str(tmp_path / "p.parquet"))


# The index of a pandas frame

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
    source = open_table(str(tmp_path / "in.parquet"))
    assert set(source.index) == expected
    assert source.schema.names == ["a", "b"]
    for name in expected:
        named = open_table(str(tmp_path / "in.parquet"), [name])
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
    source = open_table(str(tmp_path / "in.csv"))
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
    source = open_table(str(tmp_path))
    assert (source.schema.names, source.index) == (["a", "b"], ("ssn",))
    assert source.rows == 6


# Timestamps as Spark writes them, in 96 bits

YEARS = pa.array([dt.datetime(y, 12, 31, 1, 2, 3, 4) for y in (1, 1500, 2024, 9999)])


@pytest.fixture
def of_spark(tmp_path):
    """The path of a file that has each of ``YEARS`` in a row group of its own."""
    path = tmp_path / "p.parquet"
    pq.write_table(
        pa.table({"when": YEARS}), path, row_group_size=1, use_deprecated_int96_timestamps=True
    )
    assert pq.read_metadata(path).schema.column(0).physical_type == "INT96"
    return str(path)


def test_timestamps_in_96_bits_keep_their_year(of_spark):
    source = open_table(of_spark)
    assert source.schema.field("when").type == pa.timestamp("us")
    assert read(source)["when"].to_pylist() == YEARS.to_pylist()
    for year in YEARS:
        kept = read(source, filter=pc.field("when") <= year)["when"]
        assert kept.to_pylist() == [each for each in YEARS.to_pylist() if each <= year.as_py()]
    (file,) = release_files(of_spark)
    (batch,) = file.batches()
    assert batch.column("when").to_pylist() == YEARS.to_pylist()


def test_no_leaf_loses_a_row_group_with_timestamps_in_96_bits(of_spark):
    """They have no statistics, so each row group may have rows of each leaf."""
    nodes = (Branch("when", "1900-01-01 00:00:00", 1, 2), Leaf(0), Leaf(1))
    source = open_table(of_spark)
    reached = source.rows_read(Plan(nodes, ((0,), (1,))), {"when": Order(pa.timestamp("us"))})
    assert list(reached) == [{0: 4, 1: 4}]


@pytest.mark.parametrize(
    ("ages", "expected"),
    [
        ([1, 9, 5, 1, 7, 9], {0: 6, 1: 6}),  # each row group has ages from 1 to 9
        ([1, 5, 9, 9, 7, 1], {0: 6, 1: 6}),
        ([1, None, 9, 1, 9, 9], {0: 6, 1: 6}),
        ([1, 5, 4, 6, 7, 9], {0: 3, 1: 3}),
    ],
)
def test_row_groups_that_look_alike_are_not_compared_with_each_leaf(
    tmp_path, monkeypatch, ages, expected
):
    pq.write_table(pa.table({"age": ages}), tmp_path / "p.parquet", row_group_size=3)
    plan = Plan((Branch("age", 5, 1, 2), Leaf(0), Leaf(1)), ((0,), (1,)))
    source = open_table(str(tmp_path))
    orders = {"age": Order(pa.int64())}
    assert list(source.rows_read(plan, orders)) == [expected]
    monkeypatch.setattr(parquet_files, "_look_alike", lambda file, columns: False)
    assert list(source.rows_read(plan, orders)) == [expected]


# Views of text and bytes, as Polars, delta-rs and others declare them

VIEWED = pa.table(
    {
        "town": ["a", "a", "b", "b", None, None, "c", None],
        "key": [b"a", b"a", b"b", b"b", None, None, b"c", None],
        "names": pa.array([["x"], [], None, ["y", None]] * 2),
        "place": pa.array([{"street": "x"}, {"street": None}] * 4),
        "age": range(8),
    }
)
VIEWS = {
    "town": pa.string_view(),
    "key": pa.binary_view(),
    "names": pa.list_(pa.field("element", pa.string_view())),
    "place": pa.struct([("street", pa.string_view())]),
}


@pytest.fixture
def of_views(tmp_path):
    path = tmp_path / "p.parquet"
    write_declared(path, VIEWED, VIEWS, row_group_size=2)
    return str(path)


def test_views_are_the_texts_and_bytes_that_they_show(of_views):
    source = open_table(of_views)
    plain = [pa.string(), pa.binary(), pa.list_(pa.field("element", pa.string()))]
    assert [*source.schema.types] == [*plain, VIEWED.schema.field("place").type, pa.int64()]
    assert read(source).to_pydict() == VIEWED.to_pydict()
    assert read(source, dictionaries=True).to_pydict() == VIEWED.to_pydict()
    (file,) = release_files(of_views)
    assert pa.Table.from_batches(file.batches()).to_pydict() == VIEWED.to_pydict()


TOWN = pc.field("town")


@pytest.mark.parametrize(
    "keep",
    [
        TOWN == "a",
        TOWN <= "b",
        (TOWN <= "a") | TOWN.is_null(),
        (TOWN > "a") & ~TOWN.is_null(),
        TOWN.isin(["a", "c"]) | TOWN.is_null(),
        (pc.field("age") > 2) & (TOWN > "a"),
        pc.field("age") > 2,
    ],
    ids=str,
)
@pytest.mark.parametrize("columns", [["town", "age"], ["names", "age"]])
def test_a_filter_finds_views(of_views, keep, columns):
    kept = read(open_table(of_views), columns=columns, filter=keep)
    assert kept.equals(VIEWED.filter(keep).select(columns).cast(kept.schema))


def test_no_leaf_loses_a_row_group_with_views(of_views):
    nodes = (Branch("town", "a", 1, 2), Leaf(0), Leaf(1))
    orders = {"town": Order(pa.string())}
    (reached,) = open_table(of_views).rows_read(Plan(nodes, ((0,), (1,))), orders)
    assert reached[0] >= 6  # groups of a, of missing ones, and of c beside a missing one
    assert reached[1] >= 4  # of b and of c


def test_views_in_one_file_and_text_in_another_are_one_column(tmp_path):
    write_declared(tmp_path / "a.parquet", VIEWED, VIEWS)
    wide = pa.schema([("town", pa.large_string()), ("key", pa.large_binary())])
    pq.write_table(
        VIEWED.set_column(0, "town", VIEWED["town"].cast(wide.field("town").type)).set_column(
            1, "key", VIEWED["key"].cast(wide.field("key").type)
        ),
        tmp_path / "b.parquet",
    )
    source = open_table(str(tmp_path))
    assert [*source.schema.types][:2] == [pa.string(), pa.binary()]
    assert read(source).num_rows == 16


# Types that Arrow computes with only in part


def test_types_that_are_not_plain_are_read_as_plain_ones_and_declared(tmp_path):
    uuids = pa.array([b"0" * 16, None], pa.binary(16)).cast(pa.uuid())
    table = pa.table({"id": uuids, "age": [1, 2]})
    for name in "ab":
        pq.write_table(table, tmp_path / f"{name}.parquet")
    source = open_table(str(tmp_path))
    assert source.schema.field("id").type == pa.binary(16)
    assert [field.name for field in source.declared] == ["id"]
    again = FileTable.from_json(json.loads(json.dumps(source.to_json())))
    assert again.declared.equals(source.declared, check_metadata=True)
    assert read(again)["id"].to_pylist() == [b"0" * 16, None] * 2
    plain = table.set_column(0, "id", uuids.cast(pa.binary(16)))
    pq.write_table(plain, tmp_path / "c.parquet")
    assert open_table(str(tmp_path)).declared.names == []  # not each file says so


# What is whole, and yet cannot be read


@pytest.mark.parametrize("footer_is_plain", [True, False])
def test_an_encrypted_file_is_called_so(tmp_path, footer_is_plain):
    path = tmp_path / "p.parquet"
    properties = encryption.create_encryption_properties(
        b"0" * 16, plaintext_footer=footer_is_plain
    )
    with pq.ParquetWriter(path, PEOPLE.schema, encryption_properties=properties) as file:
        file.write_table(PEOPLE)
    with pytest.raises(InputError, match=r"p\.parquet: is encrypted.*decrypted copy"):
        read(open_table(str(path)))


def test_a_type_that_arrow_does_not_know_is_called_so(tmp_path):
    """Polars declares whole numbers of 128 bits; Arrow has none."""
    path = tmp_path / "p.parquet"
    declared = pa.schema([("n", pa.int64())]).serialize().to_pybytes()
    wide = declared.replace(b"\x40\x00\x00\x00", b"\x80\x00\x00\x00")  # 64 bits, and 128
    assert wide.count(b"\x80\x00\x00\x00") == declared.count(b"\x40\x00\x00\x00") == 1
    table = pa.table({"n": pa.array([b"0" * 16], pa.binary(16))})
    with pq.ParquetWriter(path, table.schema, store_schema=False) as file:
        file.write_table(table)
        file.add_key_value_metadata({"ARROW:schema": b64encode(wide)})
    with pytest.raises(InputError, match=r"p\.parquet: has a type.*128 bits; write"):
        open_table(str(path))
