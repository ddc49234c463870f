"""The types of columns: as a file or table declares them, and plain, as this package computes.

Arrow has few functions for views of text, narrow decimals and extension types, such as UUIDs: a
column of these is handled in a plain type with the same values, and published in its own. A type
says nothing of a writer's metadata, which may hold anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

_NAME, _METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"
_EXTENSIONS: Mapping[str, tuple[str, ...]] = {
    "arrow.bool8": (),
    "arrow.json": (),
    "arrow.uuid": (),
    "pandas.interval": ("subtype", "closed"),
    "pandas.period": ("freq",),
}
"""Extension types that columns keep, and the words that describe such a type, in JSON."""
_WORD = re.compile(r"[\w\[\]:/, +-]{1,60}", re.ASCII)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type in which columns of a type are handled, lists and structs in depth.

    It holds the same values, so that Arrow casts between the two without loss. A dictionary stays a
    dictionary, and text with 64-bit offsets keeps them.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, plain_type(kind.value_type), kind.ordered)
    return nested(kind, lambda field: pa.field(field.name, plain_type(field.type), field.nullable))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The columns in plain types, without metadata and without a promise of no missing values."""
    return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])


def declared_fields(schema: pa.Schema) -> list[pa.Field]:
    """The columns that a schema declares in another type than a plain one, for `as_declared`.

    An extension type is a plain type with metadata of its field, which any process can read,
    whether or not it has imported the package that knows the type. Other metadata is left out.
    """
    fields = [_declared(field).with_nullable(True) for field in schema]
    return [
        field
        for field in fields
        if not field.equals(pa.field(field.name, plain_type(field.type)), check_metadata=True)
    ]


def extension_name(field: pa.Field) -> str | None:
    """The extension type of a field of `declared_fields`; None for other types."""
    name = (field.metadata or {}).get(_NAME)
    return None if name is None else str(name.decode())


def as_declared(table: pa.Table, declared: Iterable[pa.Field]) -> tuple[pa.Table, pa.Schema]:
    """A table as a writer takes it, and the schema that its file declares.

    ``declared``: fields of `declared_fields`, by which columns of their names are published; others
    are declared in the types that they have, with the values of dictionaries.
    """
    by_name = {field.name: field for field in declared}
    fields = [
        by_name.get(field.name, pa.field(field.name, _without_dictionary(field.type)))
        for field in table.schema
    ]
    schema = pa.schema(fields)
    # What comes back has the extension types that this process knows.
    known = pa.ipc.read_schema(pa.py_buffer(schema.serialize()))
    columns = [
        column.cast(field.type) if field.name in by_name else column
        for column, field in zip(table.columns, known, strict=True)
    ]
    return pa.table(columns, names=table.column_names), schema


def without_dictionaries(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with plain values, in lists and structs too.

    A dictionary may hold values that are in no row, and disclose the order of the source's rows.
    """
    plain = _without_dictionary(column.type)
    return column if plain == column.type else column.cast(plain)


def _without_dictionary(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return nested(kind, lambda field: field.with_type(_without_dictionary(field.type)))


def nested(kind: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """The type with each field that is directly in it changed."""
    if pa.types.is_struct(kind):
        return pa.struct([change(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(change(kind.key_field), change(kind.item_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(change(kind.value_field), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(change(kind.value_field))
    if pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind):
        return pa.large_list(change(kind.value_field))
    return kind


def same_values(one: pa.Array, other: pa.Array) -> bool:
    """Whether two columns of one type have the same values; NaN is NaN, in any depth."""
    import pyarrow.compute as pc

    if one.equals(other):
        return True
    kind = one.type
    if isinstance(kind, pa.BaseExtensionType):
        return same_values(one.storage, other.storage)
    if pa.types.is_dictionary(kind):
        return same_values(one.dictionary_decode(), other.dictionary_decode())
    if len(one) != len(other) or not one.is_null().equals(other.is_null()):
        return False
    if pa.types.is_floating(kind):
        nan, others = pc.is_nan(one), pc.is_nan(other)
        zero = pa.scalar(0.0, kind)
        numbers = pc.if_else(nan, zero, one), pc.if_else(others, zero, other)
        return bool(nan.equals(others) and numbers[0].equals(numbers[1]))
    if pa.types.is_struct(kind):
        return all(map(same_values, one.flatten(), other.flatten()))
    if pa.types.is_map(kind):
        entry = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        one, other = one.cast(pa.list_(entry)), other.cast(pa.list_(entry))
    elif not pa.types.is_nested(kind) or pa.types.is_union(kind):
        return False
    lengths = pc.list_value_length(one), pc.list_value_length(other)
    return bool(lengths[0].equals(lengths[1]) and same_values(one.flatten(), other.flatten()))


def _declared(field: pa.Field) -> pa.Field:
    """A field with no metadata but that of an extension type which columns keep."""
    kind, metadata = _without_dictionary(field.type), field.metadata or {}
    if isinstance(kind, pa.BaseExtensionType):
        described = getattr(kind, "__arrow_ext_serialize__", bytes)()
        metadata = {_NAME: kind.extension_name.encode(), _METADATA: described}
        kind = plain_type(kind)
    elif pa.types.is_nested(kind):
        kind = nested(kind, _declared)
    elif not pa.types.is_decimal(kind):
        kind = plain_type(kind)
    return pa.field(field.name, kind, field.nullable, _of_extension(metadata))


def _of_extension(metadata: Mapping[bytes, bytes]) -> dict[bytes, bytes] | None:
    """The metadata of an extension type that columns keep; None for other types."""
    keys = _EXTENSIONS.get(metadata.get(_NAME, b"").decode("utf-8", "replace"))
    if keys is None:
        return None
    try:
        written = json.loads(metadata.get(_METADATA, b"")) if keys else {}
        described = {key: written[key] for key in keys}
        is_known = all(map(_WORD.fullmatch, described.values()))
    except (ValueError, LookupError, TypeError):
        return None
    if not is_known:
        return None
    return {_NAME: metadata[_NAME], _METADATA: json.dumps(described).encode() if keys else b""}
