"""Files for the tests of sources, and what is read of them."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PEOPLE = pa.table({"age": [31, 42, None, 19], "town": ["Rome", "Oslo", None, "Oslo"]})


def read(source, **options):
    """All batches of a source as a table; None where there is none."""
    batches = list(source.batches(**options))
    return pa.Table.from_batches(batches) if batches else None


def csv_file(path: Path, text: str | bytes) -> str:
    """Write a file; returns its path as text."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def write_declared(
    path: Path,
    table: pa.Table,
    declared: dict[str, pa.DataType],
    written: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Write a file that declares other types of some columns, such as views of text.

    Other writers do, and pyarrow cannot write views of some rows of a table. ``written``: options
    of the writer; ``options``: of its table.
    """
    schema = table.schema
    for name, kind in declared.items():
        schema = schema.set(schema.get_field_index(name), pa.field(name, kind))
    with pq.ParquetWriter(path, table.schema, store_schema=False, **written or {}) as file:
        file.write_table(table, **options)
        file.add_key_value_metadata({"ARROW:schema": b64encode(schema.serialize())})
    assert [pq.read_schema(path).field(name).type for name in declared] == [*declared.values()]
