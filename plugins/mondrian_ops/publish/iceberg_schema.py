"""The columns of a table that holds releases: their names, types and numbers.

Iceberg knows a column by its number. The parts have only names, so the table's name mapping gives
each name a number. A name keeps its number, so earlier releases stay readable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from mondrian_ops.errors import StorageError
from mondrian_ops.publish.publication import Candidate
from mondrian_ops.stores.locations import shown
from mondrian_ops.tables.parquet_files import parquet_file

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.types import IcebergType, NestedField


def first_schema(target: str, candidate: Candidate) -> Schema:
    """The schema of a table that is made for a release."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    fields = _types(target, written_schema(candidate)).items()
    return Schema(
        *(
            NestedField(field_id=number, name=name, field_type=kind, required=False)
            for number, (name, kind) in enumerate(fields, 1)
        )
    )


def next_schema(target: str, metadata: TableMetadata, candidate: Candidate) -> Schema:
    """The schema that a table needs for a release: one that it has, or a new one.

    Raises StorageError where a column has another type than the table had it with.
    """
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    current = metadata.schema()
    written = written_schema(candidate)
    types = _types(target, written)
    known = _known(metadata)
    here = [field.name for field in current.fields if field.name in types]
    last, fields = metadata.last_column_id, list[NestedField]()
    for name in [*here, *(name for name in types if name not in here)]:
        before = known.get(name)
        if before is None:
            last += 1
            field = NestedField(field_id=last, name=name, field_type=types[name], required=False)
        else:
            kind = _common(before.field_type, types[name])
            if kind is None or _is_renamed(before, current):
                raise StorageError(
                    f"output: the column {name!r} of the release is of type {types[name]}, and "
                    f"{shown(target)} has, or had, a column of that name of type "
                    f"{before.field_type}, which is another one; choose another table, "
                    "or drop this one if nobody needs it"
                )
            required = before.required and not written.field(name).nullable
            field = before.model_copy(update={"field_type": kind, "required": required})
        fields.append(field)
    for schema in (current, *metadata.schemas):
        is_found = metadata.schema_by_id(schema.schema_id) is schema  # by readers, by its number
        if is_found and fields == list(schema.fields):
            return schema
    number = 1 + max(each.schema_id for each in metadata.schemas)
    return Schema(*fields, schema_id=number)


def mapping_of(metadata: TableMetadata, schema: Schema) -> str:
    """The table's name mapping, with the names of a schema, as the text of a property."""
    from pyiceberg.table.name_mapping import MappedField, NameMapping

    names = {each.name: each.field_id for each in (*_known(metadata).values(), *schema.fields)}
    theirs = metadata.name_mapping()
    mapped = [] if theirs is None else list(theirs)
    there = {name for each in mapped for name in each.names}
    mapped += [
        MappedField.model_validate({"field-id": number, "names": [name]})
        for name, number in names.items()
        if name not in there
    ]
    return NameMapping(mapped).model_dump_json()


def written_schema(candidate: Candidate) -> pa.Schema:
    """The columns of the parts, which all have the same."""
    with parquet_file(next(iter(candidate.rows))) as file:
        return file.schema_arrow


def _known(metadata: TableMetadata) -> dict[str, NestedField]:
    """By name, each column that the table has or had, as it was last."""
    schemas = sorted(metadata.schemas, key=lambda each: each.schema_id)
    return {each.name: each for schema in (*schemas, metadata.schema()) for each in schema.fields}


def _is_renamed(field: NestedField, current: Schema) -> bool:
    now = current.find_column_name(field.field_id)
    return now not in (None, field.name)


def _types(target: str, schema: pa.Schema) -> dict[str, IcebergType]:
    return {field.name: _type(target, field) for field in schema}


def _type(target: str, field: pa.Field) -> IcebergType:
    from pyiceberg.io.pyarrow import (
        UnsupportedPyArrowTypeException,
        _pyarrow_to_schema_without_ids,
    )

    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    try:
        converted = _pyarrow_to_schema_without_ids(pa.schema([field.with_type(kind)]))
    except (ValueError, UnsupportedPyArrowTypeException):
        raise StorageError(
            f"output: {shown(target)} cannot have the column {field.name!r}, for Iceberg has no "
            f"type {field.type}; convert it in the input, or leave it out"
        ) from None
    return converted.fields[0].field_type


def _common(before: IcebergType, now: IcebergType) -> IcebergType | None:
    """The type that has the values of both, as Iceberg promotes types; None without one."""
    from pyiceberg.exceptions import ResolveError
    from pyiceberg.schema import promote

    if before == now:
        return before
    for narrow, wide in ((now, before), (before, now)):
        try:
            return promote(narrow, wide)
        except ResolveError:
            continue
    return None
