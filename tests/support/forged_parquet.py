"""Parquet files as no honest writer makes them: pages, headers and footer as a test wants them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "ZSTD": 6}
PLAIN, RLE, DELTA_BYTE_ARRAY, RLE_DICTIONARY = 0, 3, 7, 8
_MAGIC = b"PAR1"
_INT32, _INT64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12


@dataclass(frozen=True)
class Page:
    """A page: ``packed`` is what the file holds, ``unpacked`` what its header says it becomes."""

    packed: bytes
    unpacked: int
    values: int
    encoding: int = PLAIN
    dictionary: bool = False

    def header(self) -> bytes:
        """The page header, in Thrift's compact protocol."""
        own = [(1, _INT32, self.values), (2, _INT32, self.encoding)]
        if not self.dictionary:
            own += [(3, _INT32, RLE), (4, _INT32, RLE)]
        at = 7 if self.dictionary else 5
        return struct(
            (1, _INT32, 2 if self.dictionary else 0),
            (2, _INT32, self.unpacked),
            (3, _INT32, len(self.packed)),
            (at, _STRUCT, struct(*own)),
        )


@dataclass(frozen=True)
class Column:
    """A required column of text, of one row group; ``unpacked`` is what the footer says."""

    name: str
    pages: list[Page] = field(default_factory=list)
    codec: str = "ZSTD"
    unpacked: int | None = None


def plain(*values: bytes) -> bytes:
    """Values as a page of the encoding PLAIN has them."""
    return b"".join(len(each).to_bytes(4, "little") + each for each in values)


def runs(*of: tuple[int, int]) -> bytes:
    """A page of a dictionary's indices, below 128 each: runs of (index, times)."""
    return bytes([7]) + b"".join(varint(times << 1) + bytes([index]) for index, times in of)


def write(path: Path, rows: int, *columns: Column, lacking: int = 0) -> None:
    """Write a file with one row group, which lacks so many of the columns, the last ones."""
    content = bytearray(_MAGIC)
    chunks = [_chunk(content, rows, each) for each in columns[: len(columns) - lacking]]
    schema = [struct((4, _BINARY, b"schema"), (5, _INT32, len(columns)))]
    schema += [
        struct((1, _INT32, 6), (3, _INT32, 0), (4, _BINARY, each.name.encode()), (6, _INT32, 0))
        for each in columns
    ]
    group = struct((1, _LIST, chunks), (2, _INT64, len(content)), (3, _INT64, rows))
    footer = struct((1, _INT32, 2), (2, _LIST, schema), (3, _INT64, rows), (4, _LIST, [group]))
    content += footer + len(footer).to_bytes(4, "little") + _MAGIC
    path.write_bytes(bytes(content))


def _chunk(content: bytearray, rows: int, column: Column) -> bytes:
    start, first_data = len(content), 0
    for page in column.pages:
        if not page.dictionary:
            first_data = first_data or len(content)
        content += page.header() + page.packed
    fields = [
        (1, _INT32, 6),
        (2, _LIST, [varint(each.encoding << 1) for each in column.pages], _INT32),
        (3, _LIST, [varint(len(column.name)) + column.name.encode()], _BINARY),
        (4, _INT32, CODECS[column.codec]),
        (5, _INT64, rows),
        (6, _INT64, len(content) - start if column.unpacked is None else column.unpacked),
        (7, _INT64, len(content) - start),
        (9, _INT64, first_data),
    ]
    if any(page.dictionary for page in column.pages):
        fields.append((11, _INT64, start))
    return struct((2, _INT64, start), (3, _STRUCT, struct(*fields)))


def struct(*fields: Any) -> bytes:
    """A struct of Thrift's compact protocol: (id, type, value), of a list also the items' type."""
    content, before = bytearray(), 0
    for number, kind, value, *of in fields:
        content.append((number - before) << 4 | kind)
        before = number
        if kind in (_INT32, _INT64):
            content += varint(value << 1)
        elif kind == _BINARY:
            content += varint(len(value)) + value
        elif kind == _LIST:
            content.append(0xF0 | (of[0] if of else _STRUCT))
            content += varint(len(value)) + b"".join(value)
        else:
            content += value
    return bytes(content) + b"\0"


def varint(value: int) -> bytes:
    """A number, seven bits a byte."""
    content = bytearray()
    while value > 127:
        content.append(value & 127 | 128)
        value >>= 7
    return bytes([*content, value])
