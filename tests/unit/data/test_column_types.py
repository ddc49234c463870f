"""Plain types hold the values of every other; what a file declares comes back, and nothing else."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mondrian_ops.data.column_types import (
    as_declared,
    declared_fields,
    plain_schema,
    plain_type,
    same_values,
    without_dictionaries,
)

TEXT = pa.string_view()
UUIDS = pa.array([b"0" * 16, None], pa.binary(16)).cast(pa.uuid())


def array_of(kind: pa.DataType) -> pa.Array:
    values = {
        "text": ["a", None],
        "bytes": [b"a", None],
        "list": [["a", None], None],
        "struct": [{"x": "a"}, None],
        "map": [[("a", "b")], None],
        "number": [1, None],
    }
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, array_of(kind.storage_type))
    if pa.types.is_map(kind):
        return pa.array(values["map"], kind)
    if pa.types.is_struct(kind):
        return pa.array(values["struct"], kind)
    if pa.types.is_fixed_size_list(kind):
        return pa.array([["a", None], None], kind)
    if pa.types.is_nested(kind):
        return pa.array(values["list"], kind)
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return pa.array([b"0" * kind.byte_width, None], kind)
    if pa.types.is_decimal(kind) or pa.types.is_integer(kind):
        return pa.array(values["number"], kind)
    is_bytes = pa.types.is_binary_view(kind) or pa.types.is_binary(kind)
    return pa.array(values["bytes" if is_bytes else "text"], kind)


PLAIN = [
    (TEXT, pa.string()),
    (pa.binary_view(), pa.binary()),
    (pa.large_string(), pa.large_string()),
    (pa.uuid(), pa.binary(16)),
    (pa.json_(TEXT), pa.string()),
    (pa.bool8(), pa.int8()),
    (pa.opaque(pa.int64(), "t", "v"), pa.int64()),
    (pa.decimal32(5, 1), pa.decimal128(5, 1)),
    (pa.decimal64(15, 1), pa.decimal128(15, 1)),
    (pa.decimal128(15, 1), pa.decimal128(15, 1)),
    (pa.list_(TEXT), pa.list_(pa.string())),
    (pa.large_list(TEXT), pa.large_list(pa.string())),
    (pa.list_view(TEXT), pa.list_(pa.string())),
    (pa.list_(TEXT, 2), pa.list_(pa.string(), 2)),
    (pa.map_(TEXT, TEXT), pa.map_(pa.string(), pa.string())),
    (pa.struct([("x", TEXT)]), pa.struct([("x", pa.string())])),
    (
        pa.list_(pa.struct([("x", TEXT)])),
        pa.list_(pa.struct([("x", pa.string())])),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "plain"), PLAIN, ids=str)
def test_a_plain_type_has_the_values(kind, plain):
    assert plain_type(kind) == plain
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        return
    values = array_of(kind)
    assert values.cast(plain).null_count == values.null_count
    taken = values.cast(plain).take(pa.array([1, 0]))  # Arrow cannot take from some of the others
    assert taken.to_pylist() == values.cast(plain).to_pylist()[::-1]


@pytest.mark.parametrize(("_", "plain"), PLAIN, ids=str)
def test_a_plain_type_stays_as_it_is(_, plain):
    assert plain_type(plain) == plain
    assert declared_fields(pa.schema([("x", plain)])) == []


def test_a_dictionary_stays_one():
    viewed = pa.dictionary(pa.int8(), TEXT, ordered=True)
    assert plain_type(viewed) == pa.dictionary(pa.int8(), pa.string(), ordered=True)


def test_no_metadata_is_left_in_any_depth():
    told = {"secret": "x", "PARQUET:field_id": "7"}
    inner = pa.field("x", pa.int64(), metadata=told)
    nested = pa.list_(pa.field("element", pa.struct([inner]), metadata=told))
    schema = pa.schema([pa.field("a", nested, nullable=False, metadata=told)], told)
    plain = plain_schema(schema)
    expected = pa.schema([("a", pa.list_(pa.field("element", pa.struct([("x", pa.int64())]))))])
    assert plain.equals(expected, check_metadata=True)
    assert declared_fields(schema) == []


def of_pandas(name: str, described: object) -> pa.Field:
    metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": json.dumps(described)}
    return pa.field("x", pa.int64(), metadata=metadata)


def test_a_type_is_declared_whether_or_not_its_package_is_imported():
    import pandas.core.arrays.arrow.extension_types as of_frames

    (by_type,) = declared_fields(pa.schema([("x", of_frames.ArrowPeriodType("M"))]))
    (by_name,) = declared_fields(pa.schema([of_pandas("pandas.period", {"freq": "M"})]))
    assert by_type.equals(by_name, check_metadata=True)
    assert by_type.type == pa.int64()


@pytest.mark.parametrize(
    "field",
    [
        of_pandas("pandas.period", {}),
        of_pandas("pandas.period", [1]),
        of_pandas("pandas.period", {"freq": {"secret": 1}}),
        of_pandas("pandas.period", {"freq": "x" * 100}),
        of_pandas("team.secret", {"freq": "M"}),
        pa.field("x", pa.int64(), metadata={b"ARROW:extension:name": b"\xff"}),
    ],
)
def test_what_describes_no_known_type_is_left_out(field):
    assert declared_fields(pa.schema([field])) == []


def test_columns_are_published_in_the_types_that_are_declared():
    ids = pa.ListArray.from_arrays([0, 1, 2], UUIDS)
    source = pa.table({"id": UUIDS, "ids": ids, "flag": array_of(pa.bool8()), "n": [1, 2]})
    plain = source.cast(plain_schema(source.schema))
    published, schema = as_declared(plain, declared_fields(source.schema))
    assert published.equals(source)
    again = pa.ipc.read_schema(pa.py_buffer(schema.serialize()))
    assert again.equals(source.schema)


def test_other_columns_are_declared_with_the_values_of_dictionaries():
    table = pa.table({"age": pa.array(["[1, 2]"]).dictionary_encode(), "n": [1]})
    published, schema = as_declared(table, declared_fields(pa.schema([("id", pa.uuid())])))
    assert published.equals(table)  # dictionaries are written without being unpacked
    assert schema == pa.schema([("age", pa.string()), ("n", pa.int64())])


def test_dictionaries_are_unpacked_in_any_depth():
    coded = pa.array(["a", "b"]).dictionary_encode()
    nested = pa.StructArray.from_arrays([pa.ListArray.from_arrays([0, 1, 2], coded)], ["x"])
    plain = without_dictionaries(pa.chunked_array([nested]))
    assert plain.type == pa.struct([("x", pa.list_(pa.string()))])
    assert pc.struct_field(plain, 0).to_pylist() == [["a"], ["b"]]


NAN = float("nan")
FAR = pa.array([2**60, None, 5]).cast(pa.timestamp("us"))  # beyond the dates of Python
OTHER = FAR.take([0, 1, 0])


@pytest.mark.parametrize(
    ("values", "others"),
    [
        (pa.array([NAN, None, 1.0]), pa.array([NAN, None, 2.0])),
        (pa.array([NAN, None, 1.0]), pa.array([None, NAN, 1.0])),
        (pa.array([NAN], pa.float32()).cast(pa.float16()), pa.array([1.0]).cast(pa.float16())),
        (pa.array([[NAN], None, []]), pa.array([[NAN], [], None], pa.list_(pa.float64()))),
        (pa.array([[NAN], [1.0, NAN]]), pa.array([[NAN, 1.0], [NAN]])),
        (
            pa.array([[NAN, 1.0], None], pa.list_(pa.float64(), 2)),
            pa.array([[NAN, 2.0], None], pa.list_(pa.float64(), 2)),
        ),
        (
            pa.array([[("a", NAN)], None], pa.map_(pa.string(), pa.float64())),
            pa.array([[("b", NAN)], None], pa.map_(pa.string(), pa.float64())),
        ),
        (
            pa.StructArray.from_arrays([pa.array([NAN, 1, None]), FAR], ["x", "at"]),
            pa.StructArray.from_arrays([pa.array([NAN, 1, None]), OTHER], ["x", "at"]),
        ),
        (FAR.dictionary_encode(), OTHER.dictionary_encode()),
        (UUIDS, UUIDS.take([1, 0])),
        (pa.array(["a"]), pa.array(["a", "b"])),
    ],
)  # fmt: skip
def test_columns_have_the_same_values_where_nan_is_nan(values, others):
    copied = pa.concat_arrays([others, values]).slice(len(others))
    assert same_values(values, copied)
    assert not same_values(values, others)
