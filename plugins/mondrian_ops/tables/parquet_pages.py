"""The memory that rows of a Parquet file take, computed before a page is decompressed.

A page of a few kilobytes may decompress to a gigabyte, and any number of rows may repeat a value of
a dictionary. A decoder allocates the size in a page's header, so this module reads the headers of
local files. The footer gives the sum of each column chunk's pages, and may lie: it is trusted if
the chunk's codec rules out larger pages, and on a remote store, where each header would cost a
request.

The format is that of parquet.thrift in apache/parquet-format, in Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops.errors import InputError
from mondrian_ops.job import limits
from mondrian_ops.late_methods import dataclass
from mondrian_ops.stores.locations import shown
from mondrian_ops.stores.store import store_of

BATCH_BYTES = 128 << 20
"""The most that the rows of one batch take, unless a single row takes more."""

SMALL_BYTES = 1 << 20
"""A local file of this size, or less, is read as a whole: to open it takes longer than to read."""

File: TypeAlias = "pq.ParquetFile | pq.ParquetReader"
"""An opened file."""

_MOST_KNOWN = 64
_KNOWN: dict[tuple[Any, ...], int] = {}  # what the latest calls of rows_at_once have found
_KNOWN_LOCK = Lock()

# The most bytes to which a codec decompresses one; other codecs have no known bound.
_MAX_RATIO = {"UNCOMPRESSED": 1, "SNAPPY": 22, "LZ4": 255, "GZIP": 1032}
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 0, 2, 3
_DELTA_BYTE_ARRAY = 7  # an encoding in which a value omits the prefix it shares with the one before
_UNBOUNDED_TYPES = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_NUMBER_BYTES = 16  # of a value of any other type
_HEADER_BYTES = 128  # most are shorter
_SAMPLE_ROWS = 1024
_READ_BYTES = 1 << 18  # at a time: a column chunk may be large and remote
_MAX_HEADER_BYTES = 16 << 20  # Arrow's own limit
_MAX_NESTING = 8
_ENCRYPTION_ALGORITHM = 8  # a field of the footer
# Types of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _INT16, _INT32, _INT64, _DOUBLE, _BINARY, _LIST, _SET = range(1, 11)
_STRUCT = 12


class DamagedPageError(Exception):
    """There is no valid page header, or no column, where one should be."""


class _Page(NamedTuple):
    """A page header: the page's type, bytes unpacked and packed, number of values, and encoding."""

    kind: int
    unpacked: int
    packed: int
    values: int
    encoding: int


@dataclass(frozen=True)
class _Chunk:
    """The memory that a column chunk may take.

    Attributes:
        column: the Arrow column that it belongs to.
        path: its name in the file's schema.
        row: the most bytes of a row, not counting the dictionary's values.
        dictionary: bytes of the dictionary's values, which rows may repeat.
        times: values per row; of a nested column on average.
        values: the number of values of a nested column, all of which one row may have; else 0.
    """

    column: str
    path: str
    row: int
    dictionary: int
    times: int
    values: int

    def bytes_of_row(self, longest: Mapping[str, int]) -> int:
        """The most bytes of a row, given the longest dictionary value of some columns."""
        return self.times * self.bytes_of_value(longest)

    def bytes_of_value(self, longest: Mapping[str, int]) -> int:
        """The most bytes of a value."""
        return self.row + min(self.dictionary, longest.get(self.column, self.dictionary))


@contextmanager
def opened(path: str) -> Iterator[pa.NativeFile]:
    """A Parquet file, opened once; a small local one is in memory.

    Raises InputError if it is no regular file, OSError if it is missing or unreadable.
    """
    with store_of(path).open_data(path, SMALL_BYTES) as stream:
        yield stream


class Leaves(NamedTuple):
    """The Parquet columns that hold some Arrow columns of a file.

    Attributes:
        places: of each, which of the file's it is.
        numbers: of each, whether its values have a fixed size.
        longest: the most bytes that a page, and a value, may have.
        may_nest: whether a column of the file, these or others, may have several values in a row.
    """

    places: list[int]
    numbers: list[bool]
    longest: int
    may_nest: bool


def leaves_of(file: File, columns: Collection[str]) -> Leaves:
    """Where a file holds some columns."""
    schema = file.metadata.schema
    places = [at for at, owner in enumerate(_owners(file)) if owner in columns]
    numbers = [schema.column(at).physical_type not in _UNBOUNDED_TYPES for at in places]
    longest = min(map(limits.limit, ("parquet_page", "text")))
    may_nest = any("." in schema.column(at).path for at in range(len(schema)))
    return Leaves(places, numbers, longest, may_nest)


def rows_at_once(
    path: str,
    stamp: str | None,
    columns: tuple[str, ...],
    groups: tuple[int, ...] | None,
    wanted: int,
    stream: pa.NativeFile,
    file: File,
    leaves: Leaves | None = None,
) -> int:
    """How many rows of a file, up to ``wanted``, one batch may have.

    ``stamp``: of the file's version; results are cached by it, unless it is None. ``stream`` and
    ``file`` are the opened file. ``leaves``: those of ``columns``, if they are known.

    Raises:
        InputError: a page or a value is beyond the limits ``parquet_page`` or ``text``.
        DamagedPageError: a page has no valid header, or a row group lacks a column.
    """
    chosen = range(file.metadata.num_row_groups) if groups is None else groups
    bounded = _rows_by_footer(file.metadata, leaves or leaves_of(file, columns), chosen, wanted)
    if bounded is not None:
        return bounded
    if stamp is None:
        return _rows_by_pages(path, stream, file, columns, chosen, wanted)
    in_use = tuple(sorted(limits.in_use().items()))
    key = (path, stamp, columns, groups, wanted, in_use)
    with _KNOWN_LOCK:
        known = _KNOWN.get(key)
    if known is None:
        known = _rows_by_pages(path, stream, file, columns, chosen, wanted)
        with _KNOWN_LOCK:
            _KNOWN[key] = known
            if len(_KNOWN) > _MOST_KNOWN:
                del _KNOWN[next(iter(_KNOWN))]
    return known


def _rows_by_pages(
    path: str,
    stream: pa.NativeFile,
    file: File,
    columns: tuple[str, ...],
    groups: Iterable[int],
    wanted: int,
) -> int:
    owners = _owners(file)
    rows = wanted
    for group in groups:
        chunks = [
            _chunk(path, stream, file, group, at, owner)
            for at, owner in enumerate(owners)
            if owner in columns
        ]
        rows = min(rows, _rows(path, stream, group, chunks, wanted))
    return rows


def _rows_by_footer(
    footer: pq.FileMetaData, leaves: Leaves, groups: Iterable[int], wanted: int
) -> int | None:
    """All rows that the footer tells of, up to ``wanted``, if a batch of them is small for sure.

    That is so for small column chunks of a codec that rules out more, even if every value were as
    long as its whole chunk. None if the pages have to be looked at. The footer may lie about the
    rows, so a batch must not have more.
    """
    if leaves.may_nest:
        return None
    rows, widest = 0, 0
    for number in groups:
        group = footer.row_group(number)
        if leaves.places and leaves.places[-1] >= group.num_columns:
            raise DamagedPageError
        rows += group.num_rows
        width = 0
        for at, is_number in zip(leaves.places, leaves.numbers, strict=True):
            chunk = group.column(at)
            most = chunk.total_compressed_size * _MAX_RATIO.get(chunk.compression, BATCH_BYTES)
            if not 0 <= most <= leaves.longest:
                return None
            width += _NUMBER_BYTES if is_number else most
        widest = max(widest, width)
    rows = max(1, min(rows, wanted))
    return rows if rows * widest <= BATCH_BYTES else None


def _owners(file: File) -> list[str]:
    """For each Parquet column the Arrow column that it belongs to."""
    return [field.name for field in file.schema_arrow for _ in range(_leaves(field.type))]


def _leaves(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return _leaves(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _leaves(kind.value_type)
    if not pa.types.is_nested(kind):
        return 1
    return sum(_leaves(kind.field(at).type) for at in range(kind.num_fields))


def _chunk(
    path: str, stream: pa.NativeFile, file: File, group: int, at: int, column: str
) -> _Chunk:
    row_group = file.metadata.row_group(group)
    chunk, leaf = row_group.column(at), file.metadata.schema.column(at)
    is_text = leaf.physical_type == "BYTE_ARRAY"
    row, dictionary = max(8, leaf.length or 0), 0
    page = _largest_page(path, chunk)
    if page > limits.limit("parquet_page") or (is_text and not store_of(path).has_round_trips):
        page = 0
        for header in _pages(stream, chunk):
            page = max(page, header.unpacked)
            if header.kind == _DICTIONARY_PAGE:
                dictionary = header.unpacked
            elif is_text:
                several = header.values if header.encoding != _DELTA_BYTE_ARRAY else 1
                row = max(row, -(-header.unpacked // max(1, several)))
        if page > limits.limit("parquet_page"):
            raise InputError(
                limits.exceeded(
                    "parquet_page",
                    f"{shown(path)}: a page of column {column!r} unpacks to "
                    f"{limits.size_text(page)}",
                    "write the file with smaller pages, or leave out that column",
                )
            )
    elif is_text:
        row = max(row, -(-chunk.total_uncompressed_size // max(1, chunk.num_values)))
        dictionary = chunk.total_uncompressed_size if chunk.has_dictionary_page else 0
    is_nested = leaf.max_repetition_level > 0
    values = chunk.num_values if is_nested else 0
    times = max(1, -(-values // max(1, row_group.num_rows)))
    return _Chunk(column, leaf.path, row, dictionary if is_text else 0, times, values)


def _largest_page(path: str, chunk: pq.ColumnChunkMetaData) -> int:
    """An upper bound of a chunk's pages, from the footer alone."""
    if store_of(path).has_round_trips:
        return int(chunk.total_uncompressed_size)
    ratio = _MAX_RATIO.get(chunk.compression)
    beyond = limits.limit("parquet_page") + 1
    return beyond if ratio is None else int(chunk.total_compressed_size * ratio)


def _rows(path: str, stream: pa.NativeFile, group: int, chunks: list[_Chunk], wanted: int) -> int:
    """How many rows of a row group, up to ``wanted``, one batch may have."""
    longest: dict[str, int] = {}
    if sum(chunk.bytes_of_row(longest) for chunk in chunks) * wanted > BATCH_BYTES:
        longest = _longest(stream, group, [chunk for chunk in chunks if chunk.dictionary])
    for column, length in longest.items():
        limits.check_text(f"{shown(path)}: column {column!r}", length)
    for chunk in chunks:
        taken, most = (
            chunk.values * chunk.bytes_of_value(longest),
            limits.most_unpacked(stream.size()),
        )
        if taken > most:
            met = (
                f"{shown(path)}: the {chunk.values:,} values of column {chunk.column!r} may take "
                f"{limits.size_text(taken)}, more than {limits.size_text(most)}"
            )
            raise InputError(limits.exceeded("inflation", met, "leave out that column"))
    row = sum(chunk.bytes_of_row(longest) for chunk in chunks)
    return max(1, min(wanted, BATCH_BYTES // max(1, row)))


def _longest(stream: pa.NativeFile, group: int, chunks: list[_Chunk]) -> dict[str, int]:
    """By column, the bytes of the longest dictionary value, if reading a few rows shows it."""
    affordable = BATCH_BYTES // max(1, sum(chunk.times * chunk.row for chunk in chunks))
    names = {chunk.column: None for chunk in chunks}
    paths = [chunk.path for chunk in chunks]
    most = max(1, min(_SAMPLE_ROWS, affordable))
    with pq.ParquetFile(
        stream, read_dictionary=paths, pre_buffer=False, buffer_size=_READ_BYTES
    ) as file:
        rows = next(file.iter_batches(most, [group], [*names], use_threads=False), None)
    if rows is None:
        return {}
    longest = {}
    for name in names:
        values = list(_dictionaries(rows.column(name)))
        parts = sum(chunk.column == name for chunk in chunks)
        # A dictionary is read with the first of its values.
        if len(values) >= parts and all(len(dictionary) for dictionary in values):
            longest[name] = max(map(_longest_of, values))
    return longest


def _dictionaries(array: pa.Array) -> Iterator[pa.Array]:
    if isinstance(array, pa.DictionaryArray):
        yield array.dictionary
    elif isinstance(array, pa.MapArray):
        yield from _dictionaries(array.keys)
        yield from _dictionaries(array.items)
    elif isinstance(array, pa.StructArray):
        for part in array.flatten():
            yield from _dictionaries(part)
    elif pa.types.is_nested(array.type):
        yield from _dictionaries(array.values)


def _longest_of(values: pa.Array) -> int:
    import pyarrow.compute as pc

    return int(pc.max(pc.binary_length(values)).as_py() or 0)


def is_encrypted(path: str) -> bool:
    """Whether a file with a plain footer says that its pages are encrypted."""
    with opened(path) as stream:
        size = stream.size()
        length = int.from_bytes(stream.read_at(4, size - 8), "little")
        footer = stream.read_at(min(length, _MAX_HEADER_BYTES), max(0, size - 8 - length))
    try:
        fields, _ = _fields(footer, 0, 0)
    except (IndexError, DamagedPageError):
        return False
    return _ENCRYPTION_ALGORITHM in fields


# The headers of pages


def _pages(stream: pa.NativeFile, chunk: pq.ColumnChunkMetaData) -> Iterator[_Page]:
    """The page headers of a column chunk, in the order in which a reader of it meets them."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    end = at + chunk.total_compressed_size
    values = 0
    while at < end and values < chunk.num_values:
        page, length = _page(stream, at)
        yield page
        at += length + page.packed
        values += page.values if page.kind != _DICTIONARY_PAGE else 0


def _page(stream: pa.NativeFile, at: int) -> tuple[_Page, int]:
    """The page header at a position, and its length."""
    size = _HEADER_BYTES
    while True:
        content = stream.read_at(size, at)
        try:
            fields, length = _fields(content, 0, 0)
            break
        except IndexError:
            if len(content) < size or size >= _MAX_HEADER_BYTES:
                raise DamagedPageError from None
            size *= 8
    kind, unpacked, packed = (fields.get(number) for number in (1, 2, 3))
    if kind is None or unpacked is None or packed is None:
        raise DamagedPageError
    own = fields.get({_DATA_PAGE: 5, _DICTIONARY_PAGE: 7, _DATA_PAGE_2: 8}.get(kind, 0), {})
    values, encoding = own.get(1, 0), own.get(4 if kind == _DATA_PAGE_2 else 2, 0)
    if min(unpacked, packed, values) < 0:
        raise DamagedPageError
    return _Page(kind, unpacked, packed, values, encoding), length


def _fields(content: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """The fields of a struct that are 32-bit numbers or structs, by id, and where it ends.

    Raises IndexError where the content ends before it.
    """
    if depth > _MAX_NESTING:
        raise DamagedPageError
    fields: dict[int, Any] = {}
    number = 0
    while (head := content[at]) & 15:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _number(content, at)
        number = (number + 0x8000) % 0x10000 - 0x8000  # 16 bits, as for a decoder
        kind = head & 15
        if kind == _INT32:
            fields[number], at = _number(content, at)
        elif kind == _STRUCT:
            fields[number], at = _fields(content, at, depth + 1)
        elif kind not in (_TRUE, _FALSE):  # which have no more bytes in a struct
            at = _skipped(content, at, kind, depth + 1)
    return fields, at + 1


def _skipped(content: bytes, at: int, kind: int, depth: int) -> int:
    """Where a value ends."""
    if kind in (_TRUE, _FALSE, _BYTE):
        return at + 1
    if kind in (_INT16, _INT32, _INT64):
        return _varint(content, at)[1]
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        length, at = _varint(content, at)
        return at + length
    if kind == _STRUCT:
        return _fields(content, at, depth)[1]
    if kind not in (_LIST, _SET) or depth > _MAX_NESTING:  # a page header has no map
        raise DamagedPageError
    size, of = content[at] >> 4, content[at] & 15
    at += 1
    if size == 15:
        size, at = _varint(content, at)
    for _ in range(size):
        at = _skipped(content, at, of, depth + 1)
    return at


def _number(content: bytes, at: int) -> tuple[int, int]:
    """A signed number, and where it ends."""
    value, at = _varint(content, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise DamagedPageError
