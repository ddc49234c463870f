"""Files for the tests of sources, and what is read of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

__all__ = ["PEOPLE", "csv_file", "read"]

PEOPLE = pa.table({"age": [31, 42, None, 19], "town": ["Rome", "Oslo", None, "Oslo"]})


def read(source, **options):
    """All batches of a source as a table; None where there is none."""
    batches = list(source.batches(**options))
    return pa.Table.from_batches(batches) if batches else None


def csv_file(path: Path, text: str | bytes) -> str:
    """Write a file; returns its path as text."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)
