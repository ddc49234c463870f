"""Types of columns: the one that fits each text of a column, and exact casts to a named one.

A column of texts is a number, a boolean or a date only if each text is *that value's own text*: it
is what is written for the value. So ``007``, ``+49``, ``1E5`` or ``250.10`` beside ``250.1`` are
text, and no two texts become one value. Texts that are moments may be written in several ways, with
or without seconds, and are read as the moment.

A job that names a type takes every text that means a value of it. What is published is the value's
own text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops.data.encoding import value_type
from mondrian_ops.data.values import text_of

_MOST_DIGITS = 37  # of a decimal128 to which one more can be added
_USUAL_DIGITS = 18
_SURE = 10**10
"""Whole numbers below it are written by Arrow as floats as they are as integers."""

_BLANK = " \t"
_NUMBERS = ("integer", "number", "float", "decimal")
_INTEGER = r"^(0|-?[1-9]\d*)$"
_PLAIN = r"^-?(0|[1-9]\d*)(\.\d+)?$"
_WHOLE = r"^[^.]*$"
_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
_ZONE = r"(Z|[-+]\d\d:?\d\d)"
_LOOSE = r"^\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*$"
"""What a person may take for a number."""

_ZONED = pa.timestamp("us", tz="UTC")
_MOMENTS: Mapping[str, tuple[str, pa.DataType]] = {
    "boolean": ("true|false", pa.bool_()),
    "date": (_DATE, pa.date32()),
    "timestamp": (f"{_DATE}({_TIME})?", pa.timestamp("us")),
    "zoned": (f"{_DATE}{_TIME}{_ZONE}", _ZONED),
    "mixed": (f"{_DATE}({_TIME}{_ZONE}?)?", pa.timestamp("us")),
}
"""By kind, its texts; that of ``mixed`` has times with a zone and others without."""


class CastError(Exception):
    """A value has no exact counterpart of a type; ``at`` is its place in the array."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at


class NoCastError(Exception):
    """No value of a column's type has an exact counterpart in another type."""


class MixedTimesError(Exception):
    """A column holds times with a zone and times without one, which cannot be compared."""


@dataclass
class Guess:
    """The types that fit all texts of a column so far; ``decimal`` is the decimal mark.

    ``known``: the type that the column had before, which it keeps as long as that fits.

    ``numberlike``: all of them look like numbers, whether they are written as numbers are or not.
    """

    decimal: str = "."
    known: str = ""
    filled: bool = False
    numberlike: bool = True
    _kinds: set[str] = field(default_factory=lambda: {*_NUMBERS, *_MOMENTS})
    _scale: int | None = None
    _whole: int = 1

    def add(self, column: pa.Array) -> None:
        """Take in some texts; null is missing."""
        if not self._kinds and not self.numberlike:
            self.filled = self.filled or column.null_count < len(column)
            return
        texts = pc.drop_null(pc.unique(column))
        if not len(texts):
            return
        self.filled = True
        if self._kinds.intersection(_NUMBERS):
            self._kinds -= {*_NUMBERS} - self._numbers(texts)
        for kind in self._kinds.difference(_NUMBERS):
            if not _is_moment(texts, kind):
                self._kinds.discard(kind)
        if self.numberlike and not self._kinds.intersection(_NUMBERS):
            self.numberlike = _all(texts, _LOOSE)

    @property
    def name(self) -> str:
        """The type that fits, as a job names it; raises MixedTimesError."""
        if self.known and (not self.filled or self.known == "text" or self.known in self._kinds):
            return self.known
        for kind in (*_NUMBERS, *_MOMENTS) if self.filled else ():
            if kind in self._kinds:
                if kind == "mixed":
                    raise MixedTimesError
                return "timestamp" if kind == "zoned" else kind
        return "text"

    @property
    def mixed(self) -> bool:
        """Whether only moments fit, some with a zone and some without."""
        return self.filled and self._kinds == {"mixed"}

    @property
    def type(self) -> pa.DataType:
        """The Arrow type that fits."""
        if self.name == "timestamp" and "timestamp" not in self._kinds:
            return _ZONED
        return _type_of(self.name, self._scale or 0, self._whole)

    def _numbers(self, texts: pa.Array) -> set[str]:
        """Which kinds of numbers the texts are, each written as the number is."""
        if self._kinds & {"integer", "number"} and _all(texts, _INTEGER):
            try:
                whole = pc.cast(texts, pa.int64())
            except pa.ArrowInvalid:
                return set()
            least, greatest = pc.min_max(whole).as_py().values()
            if max(-least, greatest) < _SURE:
                return {"integer", "number"}
            return {"integer"} if "integer" in self._kinds else self._floats(texts)
        plain = _with_point(texts, self.decimal)
        if plain is None or _has_minus_zero(plain):
            return set()
        if self._kinds & {"number", "float"}:
            if not _all(plain, _PLAIN):
                return set()
            fits = self._floats(plain)
            return fits | self._decimals(plain) if "decimal" in self._kinds else fits
        return self._decimals(plain)

    def _floats(self, texts: pa.Array) -> set[str]:
        """Whether the texts are what is written for numbers, with a point in whole ones or not."""
        numbers = pc.cast(texts, pa.float64())
        if len(kinds := self._kinds & {"number", "float"}) == 1:
            own = text_of(numbers, pointed="float" in kinds)
            return kinds if _all_equal(own, texts) else set()
        own = text_of(numbers)
        others = pc.invert(pc.equal(own, texts))
        if not pc.any(others).as_py():
            return {"number"} if _any(texts, _WHOLE) else {"number", "float"}
        if _any(texts, _WHOLE):
            return set()
        pointed = text_of(numbers.filter(others), pointed=True)
        return {"float"} if _all_equal(pointed, texts.filter(others)) else set()

    def _decimals(self, texts: pa.Array) -> set[str]:
        """Whether all numbers so far have as many decimals, and no more digits than fit."""
        if self._scale is None:
            self._scale = pc.min(_decimals(texts)).as_py()
        pattern = rf"^-?(0|[1-9]\d*)\.\d{{{self._scale}}}$"
        if not 0 < self._scale < _MOST_DIGITS or not _all(texts, pattern):
            return set()
        longest = pc.max(pc.binary_length(texts)).as_py()
        self._whole = max(self._whole, longest - self._scale - 1)
        return {"decimal"} if self._scale + self._whole <= _MOST_DIGITS else set()


def _type_of(name: str, scale: int = 0, whole: int = 1) -> pa.DataType:
    """The Arrow type of a type's name.

    ``scale`` and ``whole``: the digits of a ``decimal`` behind the point and before it.
    """
    match name:
        case "integer":
            return pa.int64()
        case "number" | "float":
            return pa.float64()
        case "decimal":
            few = scale + whole <= _USUAL_DIGITS  # one type for most inputs, night after night
            return pa.decimal128(_USUAL_DIGITS if few else _MOST_DIGITS, scale)
        case "boolean":
            return pa.bool_()
        case "date":
            return pa.date32()
        case "timestamp":
            return pa.timestamp("us")
    return pa.string()


def name_of(type_: pa.DataType) -> str:
    """The name that a job has for a type, or for that of a dictionary; empty where it has none."""
    type_ = value_type(type_)
    if is_text(type_):
        return "text"
    if pa.types.is_integer(type_):
        return "integer"
    if pa.types.is_floating(type_):
        return "number"
    if pa.types.is_decimal(type_):
        return "decimal"
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_date(type_):
        return "date"
    return "timestamp" if pa.types.is_timestamp(type_) else ""


def is_text(type_: pa.DataType) -> bool:
    """Whether values of a type are texts."""
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    )


# Texts


def _all(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py())


def _any(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern), min_count=0).as_py())


def _all_equal(one: pa.Array, other: pa.Array) -> bool:
    return bool(pc.all(pc.equal(one, other), min_count=0).as_py())


def _with_point(texts: pa.Array, decimal: str) -> pa.Array | None:
    """The texts with a point as the decimal mark; None where a point means something else."""
    if decimal == ".":
        return texts
    if _any(texts, r"\."):
        return None
    return pc.replace_substring(texts, decimal, ".")


def _has_minus_zero(texts: pa.Array) -> bool:
    """Whether a number is written as -0, which is the number 0."""
    negative = pc.starts_with(texts, "-")
    return bool(pc.any(negative).as_py()) and _any(texts.filter(negative), r"^-0(\.0*)?$")


def _decimals(texts: pa.Array) -> pa.Array:
    """How many decimals each plain number has."""
    point = pc.find_substring(texts, ".")
    behind = pc.subtract(pc.subtract(pc.binary_length(texts), point), 1)
    return pc.if_else(pc.less(point, 0), 0, behind)


def _whole_digits(texts: pa.Array) -> int:
    point = pc.find_substring(texts, ".")
    length = pc.if_else(pc.less(point, 0), pc.binary_length(texts), point)
    return int(pc.max(length).as_py() or 0)


def _is_moment(texts: pa.Array, kind: str) -> bool:
    pattern, type_ = _MOMENTS[kind]
    if not _all(texts, f"^({pattern})$"):
        return False
    if kind == "mixed":  # Arrow casts times with a zone or times without, not both
        texts = pc.replace_substring_regex(texts, f"{_ZONE}$", "")
    try:
        pc.cast(texts, type_)
    except pa.ArrowInvalid:
        return False
    return True


# Casts


class Declared:
    """A type that a job names for a column, tried on all its values.

    ``is_own``: all are texts that Arrow reads as values of the type without further ado.
    """

    def __init__(self, name: str, decimal: str = ".") -> None:
        self.name = name
        self.is_own = True
        self._decimal = decimal
        self._zones: set[bool] = set()
        self._scale, self._whole = 0, 1

    def add(self, column: pa.Array) -> None:
        """Try some values.

        Raises:
            CastError: a value has no exact counterpart of the type.
            NoCastError: no value of the column's type has one.
            MixedTimesError: some times have a zone, others have none.
        """
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if self.name == "text" and is_text(column.type):
            return
        if self.name == "decimal":
            self._see_digits(column)
        elif self.name == "timestamp":
            self._see_zones(column)
        if self.is_own and not self._fits(column):
            self.is_own = False
        if not self.is_own:
            cast(column, self.name, self.type, self._decimal)

    @property
    def type(self) -> pa.DataType:
        """The Arrow type that has room for all values."""
        if self.name == "timestamp" and self._zones == {True}:
            return _ZONED
        return _type_of(self.name, self._scale, self._whole)

    def _fits(self, column: pa.Array) -> bool:
        if not is_text(column.type):
            return False
        guess = Guess(self._decimal)
        guess.add(column.cast(pa.string()))
        if not guess.filled:
            return True
        if self.name in ("number", "float", "decimal"):
            return guess.name in _NUMBERS
        return guess.name == self.name

    def _see_zones(self, column: pa.Array) -> None:
        if is_text(column.type):
            texts = pc.utf8_trim(pc.drop_null(pc.unique(column)), _BLANK)
            zoned = pc.match_substring_regex(texts, f"{_TIME}{_ZONE}$")
            self._zones |= set(pc.unique(zoned).to_pylist())
            if len(self._zones) > 1:
                raise MixedTimesError

    def _see_digits(self, column: pa.Array) -> None:
        if pa.types.is_integer(column.type):
            self._whole = 20
        elif is_text(column.type):
            texts = _numbers_in(pc.drop_null(pc.unique(column)), self._decimal, exponent=False)
            texts = pc.drop_null(texts)
            if len(texts):
                self._scale = max(self._scale, pc.max(_decimals(texts)).as_py())
                self._whole = max(self._whole, _whole_digits(texts))


def cast(column: pa.Array, name: str, type_: pa.DataType, decimal: str = ".") -> pa.Array:
    """A column in the type that a job names ``name``, whose Arrow type is ``type_``.

    ``decimal``: the decimal mark of numbers in texts.

    Raises:
        CastError: a value has no exact counterpart of the type.
        NoCastError: no value of the column's type has one.
    """
    if column.type.equals(type_):
        return column
    if pa.types.is_dictionary(column.type):
        plain = column.dictionary_decode()
        return cast(plain, name, type_, decimal)
    if is_text(column.type):
        return _of_texts(column.cast(pa.string()), name, type_, decimal)
    if pa.types.is_null(column.type):
        return column.cast(type_)
    return _of_values(column, name, type_)


def _of_texts(column: pa.Array, name: str, type_: pa.DataType, decimal: str) -> pa.Array:
    """The values that texts mean; blanks around them do not count."""
    if name == "text":
        return column.cast(type_)
    encoded = column.dictionary_encode()
    texts = encoded.dictionary
    read = _read(pc.utf8_trim(texts, _BLANK), name, type_, decimal)
    values = read.take(encoded.indices)
    if values.null_count > column.null_count:
        bad = pc.and_(pc.is_null(values), pc.is_valid(column))
        raise CastError(pc.index(bad, True).as_py())
    return values


def _read(texts: pa.Array, name: str, type_: pa.DataType, decimal: str) -> pa.Array:
    """The value of each text, null where it has none."""
    if name == "boolean":
        lower = pc.utf8_lower(texts)
        known = pc.is_in(lower, value_set=pa.array(["true", "false"]))
        return pc.if_else(known, lower, None).cast(type_)
    if name in _NUMBERS:
        exponent = pa.types.is_floating(type_)
        numbers = _numbers_in(texts, decimal, exponent)
        if name == "integer":  # 12.0 is the whole number 12
            numbers = pc.replace_substring_regex(numbers, r"\.0*$", "")
        return _each(numbers, type_)
    if name == "date":  # the midnight of a day is the day
        texts = pc.replace_substring_regex(texts, r"[ T]00:00(:00(\.0{1,9})?)?$", "")
        return _each(_matching(texts, _DATE), type_)
    time = f"{_TIME}{_ZONE}" if type_.tz else f"({_TIME})?"
    return _each(_matching(texts, f"{_DATE}{time}"), type_)


def _numbers_in(texts: pa.Array, decimal: str, exponent: bool) -> pa.Array:
    """Numbers in plain notation, null for what is none: blanks, a sign and leading zeros go."""
    texts = pc.utf8_trim(texts, _BLANK)
    mark = "," if decimal == "," else r"\."
    power = r"([eE][-+]?\d{1,3})?" if exponent else ""
    texts = _matching(texts, rf"[-+]?(\d+({mark}\d*)?|{mark}\d+){power}")
    if decimal != ".":
        texts = pc.replace_substring(texts, decimal, ".")
    texts = pc.replace_substring_regex(texts, r"^\+", "")
    texts = pc.replace_substring_regex(texts, r"^(-?)0+(\d)", r"\1\2")
    texts = pc.replace_substring_regex(texts, r"^(-?)\.", r"\10.")
    return pc.replace_substring_regex(texts, r"\.($|[eE])", r"\1")


def _matching(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.if_else(pc.match_substring_regex(texts, f"^({pattern})$"), texts, None)


def _each(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """The value of each text; null where it has none, or an infinite one."""
    try:
        values = pc.cast(texts, type_)
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return pa.nulls(1, type_)
        half = len(texts) // 2
        parts = texts.slice(0, half), texts.slice(half)
        return pa.concat_arrays([_each(part, type_) for part in parts])
    if pa.types.is_floating(type_):
        values = pc.if_else(pc.is_finite(values), values, None)
    return values


_EXACT: Mapping[str, tuple[str, ...]] = {
    "text": ("integer", "number", "decimal", "boolean", "date", "timestamp"),
    "integer": ("number", "decimal"),
    "number": ("integer", "decimal"),
    "float": ("integer", "decimal"),
    "decimal": ("integer",),
    "date": ("timestamp",),
    "timestamp": ("date",),
}
"""By type, those whose values may have an exact counterpart in it."""


def is_already(type_: pa.DataType, name: str) -> bool:
    """Whether a column of a type has the one that a job names ``name``."""
    kind = name_of(type_)
    return kind == name or (kind == "number" and name == "float")


def _of_values(column: pa.Array, name: str, type_: pa.DataType) -> pa.Array:
    """Values of other types than text in a type, if none changes."""
    if name_of(column.type) not in _EXACT.get(name, ()):
        raise NoCastError
    if name == "text":
        return text_of(column).cast(type_)
    if pa.types.is_float16(column.type):  # which Arrow cannot compare
        column = column.cast(pa.float32())
    if name == "date" and column.type.tz:  # midnight by the clock of the column's zone
        column = pc.local_timestamp(column)
    return _exactly(column, type_)


def _exactly(column: pa.Array, type_: pa.DataType, first: int = 0) -> pa.Array:
    """The same values in another type; raises CastError, whose place is counted from ``first``."""
    try:
        values = column.cast(type_)
        is_same = _all_equal(values.cast(column.type), column)
    except pa.ArrowInvalid:
        is_same = False
    if is_same:
        return values
    if len(column) == 1:
        raise CastError(first)
    half = len(column) // 2
    halves = ((column.slice(0, half), first), (column.slice(half), first + half))
    return pa.concat_arrays([_exactly(part, type_, at) for part, at in halves])
