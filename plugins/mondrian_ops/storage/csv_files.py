"""CSV files of a source: a header, UTF-8, separated by comma, semicolon or tab; '' is missing.

A column has one type in all rows of all files: :func:`inspect` reads every file once and keeps the
types that fit every value. So a value in the last row cannot fail a later read, and text that only
looks like a number (a leading zero, more digits than fit) stays text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa

from mondrian_ops.core import resource_limits
from mondrian_ops.core.errors import InputError
from mondrian_ops.storage.files import input_errors, store_errors
from mondrian_ops.storage.locations import filesystem, is_local, local_path, name_of, shown
from mondrian_ops.storage.regular_files import refuse_special

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = ["batches", "inspect"]

DELIMITERS = (",", ";", "\t")
_READ_BYTES = 8 << 20
_HEADER_BYTES = 1 << 20
_LINE = "csv_line"
_MAX_BLOCK_BYTES = 2**31 - 1  # of Arrow


@dataclass(frozen=True)
class _Kind:
    """A type that a column may have, if each of its texts matches a pattern and can be cast."""

    pattern: str
    type: pa.DataType
    trimmed: bool = False  # the CSV reader strips blanks before it converts


_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
# At most 15 whole digits, so that a float holds them exactly and a card number stays text.
_FLOAT = r"[-+]?((0|[1-9]\d{0,14})(\.\d*)?|\.\d+)([eE][-+]?\d{1,3})?|nan|NaN|[-+]?inf"
_ZONE = r"(Z|[-+]\d\d:?\d\d)"
_KINDS = (
    _Kind(r"-?(0|[1-9]\d*)", pa.int64(), trimmed=True),
    _Kind(_FLOAT, pa.float64(), trimmed=True),
    _Kind("true|false|True|False|TRUE|FALSE", pa.bool_()),
    _Kind(_DATE, pa.date32()),
    _Kind(f"{_DATE}({_TIME})?", pa.timestamp("us")),
    _Kind(f"{_DATE}{_TIME}{_ZONE}", pa.timestamp("us", tz="UTC")),
)
# The only type that fits a column in which some times have a zone and others have none.
_MIXED_TIMES = _Kind(f"{_DATE}({_TIME}{_ZONE}?)?", pa.timestamp("us"))


def inspect(
    files: Sequence[str], needed: Collection[str] | None = None
) -> tuple[pa.Schema, list[tuple[int, ...]]]:
    """The columns and types that all files share, and the rows of each; reads every file once.

    ``needed``: the columns whose type matters, by default all; others are listed as text.

    Raises:
        InputError: a header differs or has a duplicate name, a row is ragged, or text is not
            UTF-8; file and line are named.
    """
    names = _header(files[0])
    read = [name for name in names if needed is None or name in needed] or names
    kinds: dict[str, list[_Kind]] = {name: [*_KINDS, _MIXED_TIMES] for name in read}
    filled: set[str] = set()
    mixed: dict[str, str] = {}  # by column with mixed times, the first file that shows it
    rows_of_files: list[tuple[int, ...]] = []
    for path in files:
        rows = 0
        _refuse_other_header(path, files[0], names)
        texts = pa.schema([(name, pa.string()) for name in names])
        for batch in _read(path, texts, read):
            rows += batch.num_rows
            for name, column in zip(read, batch.columns, strict=True):
                if column.null_count < len(column):
                    filled.add(name)
                if kinds[name]:
                    kinds[name] = _fitting(column, kinds[name])
        rows_of_files.append((rows,))
        for name in read:
            if name in filled and kinds[name] == [_MIXED_TIMES]:
                mixed.setdefault(name, path)
    for name, path in mixed.items():
        if kinds[name]:  # no later value has made the column text
            raise InputError(
                f"{shown(path)}: column {name!r} holds times with a zone and times without one, "
                "which cannot be compared; write all with a zone, such as a Z at the end, or all "
                "without one"
            )
    fields = [
        pa.field(name, kinds[name][0].type if name in filled and kinds[name] else pa.string())
        for name in names
    ]
    return pa.schema(fields), rows_of_files


def batches(
    path: str,
    schema: pa.Schema,
    columns: Sequence[str],
    keep: pc.Expression | None,
    batch_rows: int,
) -> Iterator[pa.RecordBatch]:
    """The file's rows as batches of ``columns`` with the types of ``schema``."""
    needed = list(columns)
    if keep is not None:  # its text names the columns of the filter
        needed += [name for name in schema.names if name in str(keep) and name not in needed]
    for block in _read(path, schema, needed):
        table = pa.Table.from_batches([block])
        if keep is not None:
            table = table.filter(keep).select(columns)
        yield from table.to_batches(max_chunksize=batch_rows)


def _fitting(column: pa.Array[Any], kinds: list[_Kind]) -> list[_Kind]:
    import pyarrow.compute as pc

    texts = pc.drop_null(pc.unique(column))
    trimmed = pc.utf8_trim_whitespace(texts)
    return [kind for kind in kinds if _fits(trimmed if kind.trimmed else texts, kind)]


def _fits(texts: pa.Array[Any], kind: _Kind) -> bool:
    import pyarrow.compute as pc

    matches = pc.match_substring_regex(texts, f"^({kind.pattern})$")
    if not pc.all(matches, min_count=0).as_py():
        return False
    try:
        if kind is _MIXED_TIMES:  # Arrow casts times with a zone or times without, not both
            texts = pc.replace_substring_regex(texts, f"{_ZONE}$", "")
        pc.cast(texts, kind.type)
    except pa.ArrowInvalid:
        return False
    return True


def _read(path: str, schema: pa.Schema, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow.csv as pa_csv

    delimiter = _delimiter(path)
    convert = pa_csv.ConvertOptions(
        column_types={name: schema.field(name).type for name in columns},
        include_columns=list(columns),
        null_values=[""],
        strings_can_be_null=True,
        true_values=["true", "True", "TRUE"],
        false_values=["false", "False", "FALSE"],
    )
    parse = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    # Arrow reads every row of at most one block, and no row of more than two.
    read = pa_csv.ReadOptions(block_size=min(resource_limits.limit(_LINE), _MAX_BLOCK_BYTES))
    try:
        with _gzip_errors(path), store_errors(path), _stream(path, _READ_BYTES) as stream:
            yield from pa_csv.open_csv(cast(IO[bytes], stream), read, parse, convert)
    except pa.ArrowInvalid:
        # Arrow's message quotes the row: it must not reach a log.
        raise _first_error(path, delimiter) from None


def _stream(path: str, buffer_bytes: int) -> pa.NativeFile:
    """The file's text, decompressed if its name ends in ``.gz``."""
    compression = "gzip" if _is_gzip(path) else None
    if is_local(path):
        refuse_special(local_path(path), error=InputError)
        return pa.input_stream(local_path(path), compression=compression)
    store, there = filesystem(path)
    return store.open_input_stream(there, compression=compression, buffer_size=buffer_bytes)


def _is_gzip(path: str) -> bool:
    return path.lower().endswith(".gz")


@contextmanager
def _gzip_errors(path: str) -> Iterator[None]:
    """Raise InputError for Arrow's error about compressed data, which has no error number."""
    try:
        yield
    except OSError as error:
        if error.errno is not None or not _is_gzip(path):  # a retry may cure it
            raise
        raise InputError(f"{shown(path)}: damaged gzip file; write it again") from None


def _first_error(path: str, delimiter: str) -> InputError:
    """The first error in a file that Arrow cannot parse, located by reading it once more."""
    try:
        with suppress(csv.Error):  # a value is longer than Python's reader takes
            _refuse_ragged_row(path, delimiter)
    except InputError as error:
        return error
    return InputError(
        resource_limits.exceeded(
            _LINE,
            f"{shown(path)}: cannot be read as CSV with the separator {delimiter!r}: a quote is "
            "not closed, a row has more or fewer values than the header, or it is longer",
            "correct or shorten it",
        )
    )


def _refuse_ragged_row(path: str, delimiter: str) -> None:
    with _open_text(path) as file:
        lines = _Lines(path, file)
        rows = csv.reader(lines, delimiter=delimiter)
        width = len(next(rows))
        lines.end_row()
        for row in rows:
            lines.end_row()
            if row and len(row) != width:
                raise InputError(
                    f"{shown(path)}, line {rows.line_num}: {len(row)} values, but the header names "
                    f"{width} columns; complete the row, or quote values that hold {delimiter!r}"
                )


class _Lines:
    """The lines of a CSV file.

    Raises InputError for a line, or a row of several lines, that is longer than the limit, and for
    bytes that are not UTF-8, which were read as surrogates.
    """

    def __init__(self, path: str, file: IO[str]) -> None:
        self._path = path
        self._file = file
        self._most = resource_limits.limit(_LINE)
        self._read = 0
        self._of_row = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """The next line."""
        # Counts characters; a line has at least as many bytes.
        line = self._file.readline(self._most + len("\r\n"))
        if not line:
            raise StopIteration
        self._read += 1
        self._of_row += len(line)
        if self._of_row > self._most + len(line) - len(line.rstrip("\r\n")):
            raise InputError(
                resource_limits.exceeded(
                    _LINE,
                    f"{shown(self._path)}, line {self._read}: a line, or a row of several lines, "
                    "is longer",
                    "check that rows end and quotes are closed, or shorten the values",
                )
            )
        try:
            line.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"{shown(self._path)}, line {self._read}: not UTF-8 text; convert the file to UTF-8"
            ) from None
        return line

    def end_row(self) -> None:
        """A row is complete."""
        self._of_row = 0


def _delimiter(path: str) -> str:
    with _text(path) as file:
        header = next(_Lines(path, file), "")
    counts = {mark: _names(header, mark) for mark in DELIMITERS}
    return max(counts, key=lambda mark: counts[mark])


def _names(header: str, delimiter: str) -> int:
    try:
        return len(next(csv.reader([header], delimiter=delimiter), []))
    except csv.Error:  # a value is too long for Python's reader: a wrong separator leaves one
        return 0


def _header(path: str) -> list[str]:
    delimiter = _delimiter(path)
    with _text(path) as file:
        names = next(csv.reader(_Lines(path, file), delimiter=delimiter), [])
    if not names:
        raise InputError(f"{shown(path)}: the first line is empty; it must name the columns")
    if len(names) > resource_limits.limit("columns"):
        met = f"{shown(path)}, line 1: names {len(names):,} columns"
        raise InputError(
            resource_limits.exceeded("columns", met, "leave out those that nobody needs")
        )
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if first.setdefault(name, number) != number:
            # No name is quoted: in a file without a header, the names are a person's values.
            raise InputError(
                f"{shown(path)}, line 1: columns {first[name]} and {number} have the same name; "
                "rename one of the two, or write the header if the file has none"
            )
    return names


def _refuse_other_header(path: str, like: str, names: list[str]) -> None:
    other = _header(path)
    if set(other) == set(names):
        return
    differing = [number for number, name in enumerate(other, 1) if name not in set(names)]
    what = (
        f"column {differing[0]} has a name that {name_of(like)} lacks"
        if differing
        else f"columns of {name_of(like)} are missing"
    )
    raise InputError(
        f"{shown(path)}, line 1: {what}; give files of one schema, each with its header"
    )


@contextmanager
def _text(path: str) -> Iterator[IO[str]]:
    """The file opened as text; its errors are raised as InputError."""
    try:
        with _gzip_errors(path), input_errors(path), _open_text(path) as file:
            yield file
    except csv.Error:
        raise InputError(
            f"{shown(path)}: the name of a column is longer than {csv.field_size_limit()} "
            "characters; check that the file is CSV and that every quote in its first line is "
            "closed"
        ) from None


def _open_text(path: str) -> IO[str]:
    """The file as text, in which bytes that are not UTF-8 are surrogates."""
    content = cast(IO[bytes], _stream(path, _HEADER_BYTES))
    return io.TextIOWrapper(content, encoding="utf-8-sig", errors="surrogateescape", newline="")
