"""The text of a CSV file: its encoding and separator, its lines and its header.

What is certain is found: the encoding by a byte order mark, or because the text is UTF-8; the
separator because one alone divides the first lines into the same number of columns. All else is
refused, and the job names it.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

import pyarrow as pa

from mondrian_ops.errors import InputError
from mondrian_ops.job import limits
from mondrian_ops.job.source_options import Csv
from mondrian_ops.late_methods import dataclass
from mondrian_ops.stores.files import input_errors
from mondrian_ops.stores.locations import shown
from mondrian_ops.stores.store import store_of

LINE = "csv_line"
SEPARATORS = (",", ";", "|", "\t")
_HEAD_BYTES = 4096
_FIRST_CHARACTERS = 1 << 16  # in which the separator is looked for
_FIRST_LINES = 100
_BUFFER_BYTES = 1 << 18
_UNREADABLE = "\udc80"
_ERRORS = "mondrian_ops_unreadable"

_MARKS = (
    (codecs.BOM_UTF8, "utf-8", "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32", "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16-be"),
)
"""Byte order marks, and the two names of the encoding that each is of."""

_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""What Excel writes above the header."""

_OTHER_FORMATS = tuple(
    (re.compile(start, re.DOTALL), what)
    for start, what in (
        (rb"PAR1\x15", "a Parquet file; let its name end in .parquet"),
        (rb"PK\x03\x04", "a zip archive or an Excel workbook; unpack it, or save it as CSV"),
        (rb"\xd0\xcf\x11\xe0", "an Excel workbook; save it as CSV"),
        (rb"\x1f\x8b", "compressed by gzip; let its name end in .csv.gz"),
        (
            rb"BZh[1-9](1AY&SY|\x17rE8P)",
            "compressed by bzip2; unpack it, or compress it by gzip as .csv.gz",
        ),
        (rb"\xfd7zXZ\0", "compressed by xz; unpack it, or compress it by gzip as .csv.gz"),
        (rb"\x28\xb5\x2f\xfd", "compressed by zstd; unpack it, or compress it by gzip as .csv.gz"),
        (rb"7z\xbc\xaf", "a 7z archive; unpack it"),
        (rb"ARROW1\0", "an Arrow file; write it as Parquet"),
        (rb"Obj\x01", "an Avro file; write it as Parquet"),
        (rb"ORC.*?[\0-\x08\x0e-\x1f]", "an ORC file; write it as Parquet"),
        (rb"SQLite format 3\0", "an SQLite database; export the table as CSV"),
        (rb"%PDF-\d", "a PDF document; give the data as CSV"),
    )
)
"""How files of other formats begin, which no line with the names of columns does."""
_TAR = (257, b"ustar")
_JSON = re.compile(rb'\s*(\{\s*("|\})|\[\s*[\[{"\]])')
_MARKUP = re.compile(rb"\s*<(\?xml|!doctype|html)", re.IGNORECASE)


def _marked(error: UnicodeError) -> tuple[str, int]:
    """A lone surrogate, which no text encodes, in place of what cannot be decoded."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _UNREADABLE, error.end


codecs.register_error(_ERRORS, _marked)


@dataclass(frozen=True)
class Dialect:
    """How the text of one file is read."""

    separator: str
    encoding: str


def head_of(path: str, asked: Csv) -> tuple[Dialect, list[str]]:
    """The dialect of a file, as the job asks or as it is found, and the names of its columns.

    Raises:
        InputError: the file is of another format, its encoding or separator is not certain, or its
            first line names no columns.
    """
    try:
        with gzip_errors(path), input_errors(path), _binary(path) as content:
            head = content.peek(_HEAD_BYTES)[:_HEAD_BYTES]
            encoding = _encoding(path, head, asked)
            with _text(content, encoding) as file:
                return _head(path, file, encoding, asked)
    except csv.Error:
        raise InputError(
            f"{shown(path)}: the name of a column is longer than {csv.field_size_limit()} "
            "characters; check that the file is CSV and that every quote in its first line is "
            "closed"
        ) from None


@contextmanager
def opened(path: str, encoding: str) -> Iterator[IO[str]]:
    """The file as text, in which bytes that are not of the encoding are surrogates."""
    with _binary(path) as content, _text(content, encoding) as file:
        yield file


def stream_of(path: str, buffer_bytes: int) -> pa.NativeFile:
    """The bytes of a file, decompressed if its name ends in ``.gz``."""
    compression = "gzip" if _is_gzip(path) else None
    return store_of(path).stream_data(path, compression, buffer_bytes)


@contextmanager
def gzip_errors(path: str) -> Iterator[None]:
    """Raise InputError for Arrow's error about compressed data, which has no error number."""
    try:
        yield
    except OSError as error:
        if error.errno is not None or not _is_gzip(path):  # a retry may cure it
            raise
        raise InputError(f"{shown(path)}: damaged gzip file; write it again") from None


class Lines:
    """The lines of a CSV file, without a byte order mark.

    Raises InputError for a line, or a row of several lines, that is longer than the limit, and for
    bytes that are not of the encoding.
    """

    def __init__(self, path: str, file: IO[str], encoding: str, first: list[str]) -> None:
        """``first``: lines that are read already."""
        self._path = path
        self._file = file
        self._encoding = encoding
        self._first = first[::-1]
        self._most = limits.limit(LINE)
        self._read = 0
        self._of_row = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """The next line."""
        line = self._first.pop() if self._first else _line(self._file, self._most)
        if not line:
            raise StopIteration
        self._read += 1
        self._of_row += len(line)
        if self._of_row > self._most + len(line) - len(line.rstrip("\r\n")):
            raise InputError(
                limits.exceeded(
                    LINE,
                    f"{shown(self._path)}, line {self._read}: a line, or a row of several lines, "
                    "is longer",
                    "check that rows end and quotes are closed, or shorten the values",
                )
            )
        try:
            line.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"{shown(self._path)}, line {self._read}: {_not_text(self._encoding)}"
            ) from None
        return line.removeprefix("\ufeff") if self._read == 1 else line

    def end_row(self) -> None:
        """A row is complete."""
        self._of_row = 0


def _not_text(encoding: str) -> str:
    if encoding == "utf-8":
        return "not UTF-8 text; name its encoding, such as csv.encoding: latin-1, or convert it"
    return f"not text of the encoding {encoding}; correct csv.encoding, or convert it to UTF-8"


def _line(file: IO[str], most: int) -> str:
    # Counts characters; a line has at least as many bytes.
    return file.readline(most + len("\r\n"))


@contextmanager
def _binary(path: str) -> Iterator[io.BufferedReader[Any]]:
    stream = cast(io.RawIOBase, stream_of(path, _BUFFER_BYTES))
    with io.BufferedReader(stream, _BUFFER_BYTES) as file:
        yield file


@contextmanager
def _text(content: io.BufferedReader[Any], encoding: str) -> Iterator[IO[str]]:
    with io.TextIOWrapper(content, encoding=encoding, errors=_ERRORS, newline="") as file:
        yield file


def _is_gzip(path: str) -> bool:
    return path.lower().endswith(".gz")


# What kind of text it is


def _encoding(path: str, head: bytes, asked: Csv) -> str:
    """The encoding that the job names, that of the byte order mark, or UTF-8."""
    _refuse_other_format(path, head)
    marked = next((names for mark, *names in _MARKS if head.startswith(mark)), None)
    if asked.encoding is not None:
        name = codecs.lookup(asked.encoding).name
        name = "utf-8" if name == "utf-8-sig" else name
        if marked is not None and name not in marked:
            raise InputError(
                f"{shown(path)}: begins with the byte order mark of {marked[0]}, but csv.encoding "
                f"is {asked.encoding}; remove csv.encoding, or name {marked[0]}"
            )
        return name
    if marked is not None:
        return marked[0]
    if b"\0" in head[:2] and b"\0" in head[2:4]:  # a NUL in a value is text
        raise InputError(
            f"{shown(path)}, line 1: not UTF-8 text, for it holds zero bytes; if it is UTF-16 text "
            "without a byte order mark, name it: csv.encoding: utf-16-le"
        )
    return "utf-8"


def _refuse_other_format(path: str, head: bytes) -> None:
    """Raise InputError for what is no CSV file, whatever its name ends in."""
    for start, what in _OTHER_FORMATS:
        if start.match(head):
            raise InputError(f"{shown(path)}: no CSV file but {what}")
    at, magic = _TAR
    if head[at : at + len(magic)] == magic:
        raise InputError(f"{shown(path)}: no CSV file but a tar archive; unpack it")
    if _JSON.match(head.removeprefix(codecs.BOM_UTF8)):
        raise InputError(f"{shown(path)}: no CSV file but JSON; write it as Parquet or CSV")
    if _MARKUP.match(head):
        raise InputError(f"{shown(path)}: no CSV file but XML or HTML; write it as Parquet or CSV")


def _head(path: str, file: IO[str], encoding: str, asked: Csv) -> tuple[Dialect, list[str]]:
    first, is_all = _first_lines(file)
    if first and (excel := _SEPARATOR_LINE.fullmatch(first[0].removeprefix("\ufeff"))):
        raise InputError(
            f"{shown(path)}, line 1: names no columns, but tells Excel the separator; remove the "
            f"line, and name the separator in the job: csv.separator: {excel[1]!r}"
        )
    separator = asked.separator or _separator(path, first, is_all)
    names = next(csv.reader(Lines(path, file, encoding, first), delimiter=separator), [])
    if not names:
        raise InputError(f"{shown(path)}: the first line is empty; it must name the columns")
    if len(names) > limits.limit("columns"):
        met = f"{shown(path)}, line 1: names {len(names):,} columns"
        raise InputError(limits.exceeded("columns", met, "leave out those that nobody needs"))
    position: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if position.setdefault(name, number) != number:
            # No name is quoted: in a file without a header, the names are a person's values.
            raise InputError(
                f"{shown(path)}, line 1: columns {position[name]} and {number} have the same name; "
                "rename one of the two, or write the header if the file has none"
            )
    return Dialect(separator, encoding), names


def _first_lines(file: IO[str]) -> tuple[list[str], bool]:
    """The first lines, and whether these are all."""
    lines: list[str] = []
    most, left = limits.limit(LINE), _FIRST_CHARACTERS
    while left > 0 and len(lines) < _FIRST_LINES:
        line = _line(file, most)
        if not line:
            return lines, True
        lines.append(line)
        left -= len(line)
    return lines, False


def _separator(path: str, lines: list[str], is_all: bool) -> str:
    """The separator that alone divides all of the first lines alike.

    Where none does, a row is ragged: then the one that divides the header, which the error about
    that row names. A file of one column has none.
    """
    present = [mark for mark in SEPARATORS if any(mark in line for line in lines)]
    widths = {mark: _widths(lines, mark, is_all) for mark in present}
    dividing = [mark for mark, (header, _) in widths.items() if header > 1]
    certain = [mark for mark in dividing if widths[mark][1]] or dividing
    if len(certain) > 1:
        marks = " and ".join("tab" if mark == "\t" else repr(mark) for mark in certain)
        raise InputError(
            f"{shown(path)}: the separator is not certain, for {marks} both divide the first lines "
            f"into columns; name it, such as csv.separator: {certain[-1]!r}"
        )
    return certain[0] if certain else SEPARATORS[0]


def _widths(lines: list[str], separator: str, is_all: bool) -> tuple[int, bool]:
    """The columns of the header, and whether all rows have as many."""
    try:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:  # a value is too long for Python's reader: a wrong separator leaves one
        return 0, False
    if not rows:
        return 0, False
    if not is_all and len(rows) > 1:  # the last one may go on behind these lines
        rows.pop()
    return len(rows[0]), all(len(row) == len(rows[0]) for row in rows)
