"""CSV files of a source: a header, text of one encoding, one separator; '' is missing.

A column has one type in all rows of all files: :func:`inspect` reads every file once. It keeps the
types of which each text is a value's own text, or tries the one that the job names on every text.
So a value in the last row cannot fail a later read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import chain
from typing import IO, cast

import pyarrow as pa

from mondrian_ops.data.named_types import CastError, Declared, Guess, MixedTimesError
from mondrian_ops.errors import InputError
from mondrian_ops.job import limits
from mondrian_ops.job.source_options import Csv
from mondrian_ops.late_methods import dataclass
from mondrian_ops.stores.files import store_errors
from mondrian_ops.stores.locations import name_of, shown
from mondrian_ops.tables.batch_sizes import BATCH_ROWS
from mondrian_ops.tables.csv_text import (
    LINE,
    Dialect,
    Lines,
    gzip_errors,
    head_of,
    opened,
    stream_of,
)

_READ_BYTES = 8 << 20
_MAX_BLOCK_BYTES = 2**31 - 1  # of Arrow
_LINE_END = re.compile(r"[\r\n]")
_END = "\ue000 end of file"  # a line behind the last one


@dataclass(frozen=True)
class Inspected:
    """What :func:`inspect` finds.

    ``schema`` has the types of all files' columns; ``read`` those that Arrow's reader gives, which
    are to be cast where they differ. ``rows`` and ``dialects`` are of each file, ``types`` are the
    names of the types of the columns that matter. ``numberlike``: columns of text that look like
    numbers; ``empty``: columns without any value.
    """

    schema: pa.Schema
    read: pa.Schema
    rows: list[tuple[int, ...]]
    dialects: list[Dialect]
    types: dict[str, str] = field(default_factory=dict)
    numberlike: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()


def inspect(
    files: Sequence[str],
    needed: Collection[str] | None = None,
    asked: Csv | None = None,
    types: Mapping[str, str] | None = None,
    known: Mapping[str, str] | None = None,
) -> Inspected:
    """Read every file once, for the columns and types that all files share.

    ``needed``: the columns whose type matters, by default all; others are listed as text.
    ``asked`` and ``types`` are those of the job; ``known``: types that columns had before, which
    they keep where each text is a value's own.

    Raises:
        InputError: a header differs or has a duplicate name, a row is ragged, a quote is never
            closed, text is not of the encoding, or a value is none of the type that the job names;
            file and line are named.
    """
    asked = asked or Csv()
    dialect, names = head_of(files[0], asked)
    columns = [name for name in names if needed is None or name in needed] or names
    types_of = _Types(columns, types or {}, asked.decimal, known or {})
    rows_of_files: list[tuple[int, ...]] = []
    dialects: list[Dialect] = []
    texts = pa.schema([(name, pa.string()) for name in names])
    for path in files:
        here = names
        if path != files[0]:
            dialect, here = head_of(path, asked)
            _refuse_other_header(path, files[0], names, here)
        dialects.append(dialect)
        rows, last_value = 0, ""
        for batch in batches(
            path, dialect, asked, texts, list(dict.fromkeys([*columns, here[-1]]))
        ):
            types_of.add(path, dialect, batch.select(columns), rows)
            rows += batch.num_rows
            if batch.num_rows:
                last_value = batch.column(here[-1])[-1].as_py() or ""
        if _LINE_END.search(last_value):  # or it holds no row
            _refuse_bad_row(path, dialect, ragged=False)
        rows_of_files.append((rows,))
    types_of.finish()
    return Inspected(
        schema=pa.schema([(name, types_of.of(name)) for name in names]),
        read=pa.schema([(name, types_of.as_read(name)) for name in names]),
        rows=rows_of_files,
        dialects=dialects,
        types=types_of.names(),
        numberlike=types_of.numberlike(),
        empty=types_of.empty(),
    )


class _Types:
    """The types of the columns of CSV files: those that the job names, and those that are found."""

    def __init__(
        self,
        columns: Sequence[str],
        named: Mapping[str, str],
        decimal: str,
        known: Mapping[str, str],
    ) -> None:
        self._columns = columns
        self._tried = {name: Declared(named[name], decimal) for name in columns if name in named}
        self._guesses = {
            name: Guess(decimal, known.get(name, "")) for name in columns if name not in named
        }
        self._mixed: dict[str, str] = {}  # by column with mixed times, the first file showing it
        self._waiting: list[tuple[str, pa.RecordBatch]] = []  # with the file of each
        self._rows = self._bytes = 0

    def add(self, path: str, dialect: Dialect, batch: pa.RecordBatch, first_row: int) -> None:
        """Take in some rows; ``first_row`` is the number of the first one in its file."""
        for name in self._tried:
            try:
                self._tried[name].add(batch.column(name))
            except CastError as error:
                where = shown(path) + _line_of(path, dialect, first_row + error.at)
                raise no_value(where, name, self._tried[name].name) from None
            except MixedTimesError:
                raise mixed_times(shown(path), name) from None

        self._waiting.append((path, batch))
        self._rows += batch.num_rows
        self._bytes += batch.get_total_buffer_size()
        if self._rows >= BATCH_ROWS or self._bytes >= _READ_BYTES:
            self._guess()

    def _guess(self) -> None:
        """Look at the rows that wait: those of many small files at once, which takes less."""
        for name, guess in self._guesses.items():
            before = replace(guess, _kinds={*guess._kinds})
            columns = [batch.column(name) for _, batch in self._waiting]
            for column in columns[:1] if len(columns) < 2 else [pa.concat_arrays(columns)]:
                guess.add(column)
            for (path, _), column in zip(self._waiting, columns, strict=True):
                if not guess.mixed or name in self._mixed:
                    break
                before.add(column)
                if before.mixed:
                    self._mixed[name] = path
        self._waiting, self._rows, self._bytes = [], 0, 0

    def finish(self) -> None:
        """All rows are taken in; raises InputError for times of which only some have a zone."""
        self._guess()
        for name, path in self._mixed.items():
            if self._guesses[name].mixed:  # no later value has made the column text
                raise mixed_times(shown(path), name)

    def of(self, name: str) -> pa.DataType:
        """The type of a column; of one that does not matter, text."""
        found = self._guesses.get(name) or self._tried.get(name)
        return pa.string() if found is None else found.type

    def as_read(self, name: str) -> pa.DataType:
        """The type that Arrow's reader is to give; text where a cast follows."""
        is_text = name in self._tried and not self._tried[name].is_own
        return pa.string() if is_text else self.of(name)

    def names(self) -> dict[str, str]:
        """The types of the columns as a job names them."""
        return {name: (self._guesses.get(name) or self._tried[name]).name for name in self._columns}

    def empty(self) -> tuple[str, ...]:
        """The columns of which no job names the type, and no value tells it."""
        return tuple(name for name, guess in self._guesses.items() if not guess.filled)

    def numberlike(self) -> tuple[str, ...]:
        """The columns that look like numbers but are text."""
        return tuple(
            name
            for name, guess in self._guesses.items()
            if guess.filled and guess.numberlike and "text" == guess.name != guess.known
        )


def no_value(where: str, column: str, name: str) -> InputError:
    """The error about a value that is none of the type ``name``; ``where`` is its file and row."""
    return InputError(
        f"{where}: column {column!r} holds a value that is no {name}, which "
        f"types.{column} asks for; correct it, list it under csv.missing if it stands for a "
        "missing value, or make the column text",
        where,
    )


def mixed_times(where: str, column: str) -> InputError:
    """The error about times with a zone beside times without one."""
    return InputError(
        f"{where}: column {column!r} holds times with a zone and times without one (a date "
        "alone has none), which cannot be compared; write all with a time and a zone, such as "
        "1999-12-31 13:30Z, or all without a zone"
    )


def batches(
    path: str, dialect: Dialect, asked: Csv, schema: pa.Schema, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The file's rows as ``columns`` in the types of ``schema``, a block of the file at a time."""
    import pyarrow.csv as pa_csv

    convert = pa_csv.ConvertOptions(
        column_types={name: schema.field(name).type for name in columns},
        include_columns=list(columns),
        null_values=["", *asked.missing],
        strings_can_be_null=True,
        true_values=["true"],
        false_values=["false"],
        decimal_point=asked.decimal,
    )
    parse = pa_csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True)
    # Arrow reads every row of at most one block, and no row of more than two.
    block = min(limits.limit(LINE), _MAX_BLOCK_BYTES)
    read = pa_csv.ReadOptions(block_size=block, encoding=dialect.encoding)
    try:
        with gzip_errors(path), store_errors(path), stream_of(path, _READ_BYTES) as stream:
            yield from pa_csv.open_csv(cast(IO[bytes], stream), read, parse, convert)
    except (pa.ArrowInvalid, UnicodeError):
        # Arrow's message quotes the row: it must not reach a log.
        raise _first_error(path, dialect) from None


def _first_error(path: str, dialect: Dialect) -> InputError:
    """The first error in a file that Arrow cannot parse, located by reading it once more."""
    try:
        _refuse_bad_row(path, dialect, ragged=True)
    except InputError as error:
        return error
    return InputError(
        limits.exceeded(
            LINE,
            f"{shown(path)}: cannot be read as CSV with the separator {dialect.separator!r}: a "
            "quote is not closed, a row has more or fewer values than the header, or it is longer",
            "correct or shorten it",
        )
    )


def _refuse_bad_row(path: str, dialect: Dialect, ragged: bool) -> None:
    """Raise InputError if the file ends within quotes, so that rows are a part of a value.

    ``ragged``: also for the first row that has more or fewer values than the header.
    """
    width, start = 0, 1
    longest = csv.field_size_limit(_MAX_BLOCK_BYTES)
    try:
        for line, row in _rows(path, dialect, [_END]):
            if row == [_END]:
                continue
            if row and row[-1].endswith(_END):
                raise InputError(
                    f"{shown(path)}, line {start}: the row has a quote that is not closed before "
                    "the end of the file; close it, or double each quote that is a part of a value"
                )
            width = width or len(row)
            if ragged and row and len(row) != width:
                mark = dialect.separator
                raise InputError(
                    f"{shown(path)}, line {line}: {len(row)} values, but the header names {width} "
                    f"columns; complete the row, or quote values that hold {mark!r}, or name "
                    "another csv.separator"
                )
            start = line + 1
    except csv.Error:  # it is no table to Python
        return
    finally:
        csv.field_size_limit(longest)


def _line_of(path: str, dialect: Dialect, row: int) -> str:
    """The line of a row, which are counted from 0 behind the header, as an error names it."""
    with suppress(csv.Error):
        rows = _rows(path, dialect)
        next(rows)
        before = -1
        for line, each in rows:
            before += bool(each)
            if before == row:
                return f", line {line}"
    return f", row {row + 1}"


def _rows(path: str, dialect: Dialect, more: Sequence[str] = ()) -> Iterator[tuple[int, list[str]]]:
    """The rows as Python reads them, which is slow, and the line in which each ends.

    ``more``: lines behind those of the file.
    """
    with opened(path, dialect.encoding) as file:
        lines = Lines(path, file, dialect.encoding, [])
        rows = csv.reader(chain(lines, more), delimiter=dialect.separator)
        for row in rows:
            lines.end_row()
            yield rows.line_num, row


def _refuse_other_header(path: str, like: str, names: list[str], other: list[str]) -> None:
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
