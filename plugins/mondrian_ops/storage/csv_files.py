"""CSV files of a source: a header, UTF-8, separated by comma, semicolon or tab; '' is missing.

A column has one type over all rows of all files: the survey reads everything once and keeps the
types that every value has. So a value far down cannot break the reading, and text that only looks
like a number (a leading zero, more digits than fit) stays text.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa

from mondrian_ops.core.errors import InputError
from mondrian_ops.storage.locations import filesystem, is_local, local_path, name_of, shown
from mondrian_ops.storage.remote import open_stream, store_errors

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = ["batches", "survey"]

DELIMITERS = (",", ";", "\t")
BLOCK_BYTES = 8 << 20


@dataclass(frozen=True)
class _Kind:
    """A type that a column of texts may have: what each value must match, and be castable to."""

    pattern: str
    type: pa.DataType
    trimmed: bool = False  # the CSV reader takes blanks off before it converts


_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
# At most 15 whole digits, so that a float holds them exactly and a card number stays text.
_FLOAT = r"[-+]?((0|[1-9]\d{0,14})(\.\d*)?|\.\d+)([eE][-+]?\d{1,3})?|nan|NaN|[-+]?inf"
_KINDS = (
    _Kind(r"-?(0|[1-9]\d*)", pa.int64(), trimmed=True),
    _Kind(_FLOAT, pa.float64(), trimmed=True),
    _Kind("true|false|True|False|TRUE|FALSE", pa.bool_()),
    _Kind(_DATE, pa.date32()),
    _Kind(f"{_DATE}({_TIME})?", pa.timestamp("us")),
    _Kind(f"{_DATE}{_TIME}(Z|[-+]\\d\\d:?\\d\\d)", pa.timestamp("us", tz="UTC")),
)


def survey(files: Sequence[str]) -> tuple[pa.Schema, list[tuple[int, ...]]]:
    """The columns and types all files share, and each one's rows; reads every file once.

    Raises:
        InputError: a header differs or names a column twice, a row is ragged, or text is not
            UTF-8; file and line are named.
    """
    names = _header(files[0])
    kinds: dict[str, list[_Kind]] = {name: list(_KINDS) for name in names}
    filled: set[str] = set()
    found: list[tuple[int, ...]] = []
    for path in files:
        rows = 0
        _refuse_other_header(path, files[0], names)
        texts = pa.schema([(name, pa.string()) for name in names])
        for batch in _read(path, texts, names):
            rows += batch.num_rows
            for name, column in zip(names, batch.columns, strict=True):
                if column.null_count < len(column):
                    filled.add(name)
                if kinds[name]:
                    kinds[name] = _fitting(column, kinds[name])
        found.append((rows,))
    fields = [
        pa.field(name, kinds[name][0].type if kinds[name] and name in filled else pa.string())
        for name in names
    ]
    return pa.schema(fields), found


def batches(
    path: str,
    schema: pa.Schema,
    columns: Sequence[str],
    keep: pc.Expression | None,
    batch_rows: int,
    row_groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The file's rows as batches of ``columns`` with the types of ``schema``.

    ``row_groups`` is there for Parquet: a CSV file is one.
    """
    needed = list(columns) if keep is None else schema.names
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
    read = pa_csv.ReadOptions(block_size=BLOCK_BYTES)
    try:
        with store_errors(path), _stream(path) as stream:
            yield from pa_csv.open_csv(cast(IO[bytes], stream), read, parse, convert)
    except pa.ArrowInvalid:
        # Arrow's message quotes the row: it must not reach a log.
        raise InputError(_complaint(path, delimiter)) from None
    except OSError as error:
        if error.errno is not None:  # the machine's own error: a retry may cure it
            raise
        raise InputError(f"{shown(path)}: damaged gzip file; write it again") from None


def _stream(path: str) -> pa.NativeFile:
    """The file's text, unpacked where it is packed."""
    if is_local(path):
        return pa.input_stream(local_path(path), compression="detect")
    store, there = filesystem(path)
    return store.open_input_stream(there, compression="detect", buffer_size=BLOCK_BYTES)


def _complaint(path: str, delimiter: str) -> str:
    line = _undecodable_line(path)
    if line is not None:
        return f"{shown(path)}, line {line}: not UTF-8 text; convert the file to UTF-8"
    with suppress(csv.Error):  # a longer value than Python's reader takes
        ragged = _ragged_row(path, delimiter)
        if ragged is not None:
            return ragged
    return (
        f"{shown(path)}: cannot be read as CSV with the separator {delimiter!r}; look for an "
        "unclosed quote, a row with more or fewer values than the header, or one of more than 8 MiB"
    )


def _undecodable_line(path: str) -> int | None:
    with _open_binary(path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return None


def _ragged_row(path: str, delimiter: str) -> str | None:
    with _open_text(path) as file:
        rows = csv.reader(file, delimiter=delimiter)
        width = len(next(rows))
        for row in rows:
            if row and len(row) != width:
                return (
                    f"{shown(path)}, line {rows.line_num}: {len(row)} values, but the header names "
                    f"{width} columns; complete the row, or quote values that hold {delimiter!r}"
                )
    return None


def _delimiter(path: str) -> str:
    with _text(path) as file:
        header = file.readline()
        counts = {mark: len(next(csv.reader([header], delimiter=mark), [])) for mark in DELIMITERS}
    return max(counts, key=lambda mark: counts[mark])


def _header(path: str) -> list[str]:
    delimiter = _delimiter(path)
    with _text(path) as file:
        names = next(csv.reader(file, delimiter=delimiter), [])
    if not names:
        raise InputError(f"{shown(path)}: the first line is empty; it must name the columns")
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if first.setdefault(name, number) != number:
            # No name is told: where a file has no header, the names are a person's values.
            raise InputError(
                f"{shown(path)}, line 1: columns {first[name]} and {number} have one name; rename "
                "one of the two, or write the header if the file has none"
            )
    return names


def _refuse_other_header(path: str, like: str, names: list[str]) -> None:
    other = _header(path)
    if set(other) == set(names):
        return
    differing = [number for number, name in enumerate(other, 1) if name not in set(names)]
    what = (
        f"the name of column {differing[0]} is none of" if differing else "columns are missing of"
    )
    raise InputError(
        f"{shown(path)}, line 1: {what} those of {name_of(like)}; give files of one schema, each "
        "with its header"
    )


@contextmanager
def _text(path: str) -> Iterator[IO[str]]:
    """The file opened as text, its errors named."""
    try:
        with store_errors(path), _open_text(path) as file:
            yield file
    except UnicodeDecodeError:
        line = _undecodable_line(path) or 1
        raise InputError(f"{shown(path)}, line {line}: not UTF-8 text; convert the file") from None
    except csv.Error:
        raise InputError(
            f"{shown(path)}: the name of a column is longer than {csv.field_size_limit()} "
            "characters; is it CSV, and is every quote of its first line closed?"
        ) from None
    except FileNotFoundError:
        raise InputError(f"{shown(path)}: no such file; is the source still written to?") from None
    except PermissionError:
        raise InputError(f"{shown(path)}: permission denied; let this process read it") from None
    except (gzip.BadGzipFile, EOFError):
        raise InputError(f"{shown(path)}: damaged gzip file; write it again") from None


def _open_text(path: str) -> IO[str]:
    return io.TextIOWrapper(_open_binary(path), encoding="utf-8-sig", newline="")


def _open_binary(path: str) -> IO[bytes]:
    packed = path.lower().endswith(".gz")
    if is_local(path):
        name = local_path(path)
        return cast(IO[bytes], gzip.open(name)) if packed else Path(name).open("rb")
    stream = io.BufferedReader(open_stream(path))
    return cast(IO[bytes], gzip.GzipFile(fileobj=stream)) if packed else stream
