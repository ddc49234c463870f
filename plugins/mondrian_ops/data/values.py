"""Values of any type a column may have: as text, in one spelling, as JSON, and back."""

from __future__ import annotations

import math
import unicodedata
from datetime import datetime, time
from decimal import ROUND_CEILING, Decimal, localcontext

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.encoding import as_array, ticks_per_day, value_type
from mondrian_ops.data.same_numbers import digits_kept, numbers_in

# Invisible characters: format characters (zero-width spaces, joiners, direction marks), the
# grapheme joiner, Hangul fillers, inherent vowels of Khmer, variation selectors, the Braille blank,
# and what Unicode reserves as ignorable.
_UNSEEN = (
    r"[\p{Cf}\x{034F}\x{115F}\x{1160}\x{3164}\x{FFA0}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{2800}"
    r"\x{2065}\x{FE00}-\x{FE0F}\x{FFF0}-\x{FFF8}\x{E0000}-\x{E0FFF}]+"
)
_BLANKS = r"[\p{Z}\p{Cc}]+"
_PLAIN = "^[!-~]+( [!-~]+)*$"  # ASCII words, one space apart: needs no change


def text_of(values: pa.Array, pointed: bool = False) -> pa.Array:
    """The values as text, as they are published where a class has one value.

    ``pointed``: whole floating-point numbers as Python writes them, ``70.0``.
    """
    if pa.types.is_string(values.type):
        return values
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    texts = values.cast(pa.string())
    if pointed and pa.types.is_floating(values.type):
        return pc.replace_substring_regex(texts, r"^(-?\d+)$", r"\1.0")
    return texts


def example_text(type_: pa.DataType, pointed: bool = False) -> str:
    """How `text_of` writes values of a type, by made-up ones; empty for text."""
    type_ = value_type(type_)
    if pa.types.is_boolean(type_):
        return "true or false"
    if pa.types.is_integer(type_):
        return "70"
    if pa.types.is_floating(type_):
        return "1.5, and 70.0 for 70" if pointed else "1.5, and 70 for 70.0"
    value: Decimal | datetime | time
    if pa.types.is_decimal(type_):
        value = Decimal(1).scaleb(max(0, -type_.scale))
        if type_.scale > 0:
            value = Decimal("1.5") if type_.precision > type_.scale else Decimal("0.5")
    elif pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        value = datetime(2024, 5, 1, 13, 30)
    elif pa.types.is_time(type_):
        value = time(13, 30)
    else:
        return ""
    return str(text_of(pa.array([value], type_))[0].as_py())


def one_spelling(values: pa.Array) -> pa.Array:
    """The values, with one spelling for all texts that a reader cannot tell apart.

    Sensitive values are compared in it, so that several spellings of one value do not pass for
    diverse values; they are published as they are in the source, except where a series follows its
    persons through the nights (:func:`in_one_spelling`). Empty and blank texts become missing, and
    floating-point numbers have 12 digits (:func:`same_numbers.digits_kept`).

    Invisible characters are left out, the rest is brought into Unicode's form NFKC
    (characters composed, compatibility forms replaced by what they stand for), and blanks of any
    kind become one space between words. Upper and lower case remain different.
    """
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.string())
    if pa.types.is_float64(values.type):
        return digits_kept(values)
    if not _is_text(values.type):
        return values
    if pc.all(pc.match_substring_regex(values, _PLAIN)).as_py() in (True, None):
        return values
    seen = pc.replace_substring_regex(values, _UNSEEN, "")
    # Arrow's own function composes no characters before version 26.
    texts = seen.to_pylist()
    composed = pa.array([text and unicodedata.normalize("NFKC", text) for text in texts], seen.type)
    spaced = pc.utf8_trim(pc.replace_substring_regex(composed, _BLANKS, " "), " ")
    return pc.if_else(pc.equal(spaced, ""), pa.scalar(None, spaced.type), spaced)


def one_value(values: pa.Array) -> pa.Array:
    """The values as `l` and `t` count them: in `one_spelling`, and each number written in one way.

    ``1``, ``1.0`` and ``01`` are one value. Columns that :func:`job_checks.with_codes` names, whose
    texts are codes, are counted in `one_spelling`.
    """
    values = one_spelling(values)
    return numbers_in(values) if _is_text(values.type) else values


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def in_one_spelling(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values, those that `l` of a series counts as the same with the same bytes.

    Who spells a value in a way of its own can be followed from release to release by that.
    """
    return one_spelling(as_array(column)).cast(value_type(column.type))


def json_value(value: pa.Scalar) -> int | float | str | bool:
    """A value as JSON: itself, or its text, which casts back to the value's type."""
    if not pa.types.is_temporal(value.type):  # Python cannot hold every one
        plain = value.as_py()
        if isinstance(plain, int | str) or (isinstance(plain, float) and math.isfinite(plain)):
            return plain
    if pa.types.is_timestamp(value.type) and value.type.tz and not _offset_shows(value):
        value = value.cast(pa.timestamp(value.type.unit, "UTC"))
    return str(value.cast(pa.string()).as_py())


def _offset_shows(moment: pa.TimestampScalar) -> bool:
    """Whether the zone's offset from UTC was whole minutes then, which is all that text shows.

    Before 1900 it often was not.
    """
    offset = pc.local_timestamp(moment).cast(pa.int64()).as_py() - moment.value
    return bool(offset % (ticks_per_day(moment.type) // 1440) == 0)


def read_value(value: int | float | str | bool, type_: pa.DataType) -> pa.Scalar:
    """The value of a type from what `json_value` gave; raises ArrowInvalid on an invalid text."""
    if pa.types.is_time(type_):  # Arrow casts text to timestamps, but not to times of day
        return pa.scalar(f"1970-01-01 {value}").cast(pa.timestamp(type_.unit)).cast(type_)
    if isinstance(value, str) and not pa.types.is_string(type_):
        return pa.scalar(value).cast(type_)
    return pa.scalar(value, type_)


def writable(value: pa.Scalar) -> bool:
    """Whether Arrow can read the text of a moment back, which needs a year of four digits."""
    try:
        read_value(json_value(value), value.type)
    except pa.ArrowInvalid:
        return False
    return True


def greatest_below(edge: float, type_: pa.DataType) -> int | float | str:
    """The greatest value of a type below ``edge``, as JSON."""
    type_ = value_type(type_)
    if pa.types.is_date(type_):
        return json_value(pa.scalar(int(edge) - 1, pa.int32()).cast(pa.date32()))
    if pa.types.is_timestamp(type_):
        return json_value(pa.scalar(int(edge) * ticks_per_day(type_) - 1, pa.int64()).cast(type_))
    if pa.types.is_integer(type_):
        return int(np.ceil(edge)) - 1
    if pa.types.is_decimal(type_):
        with localcontext(prec=type_.precision + 5):
            last = Decimal(1).scaleb(-type_.scale)
            return str(Decimal(edge).quantize(last, ROUND_CEILING) - last)
    if pa.types.is_float64(type_):
        return float(np.nextafter(edge, -np.inf))
    with np.errstate(over="ignore"):  # the type may not hold the edge
        narrow = np.float32(edge)
    below = float(narrow) < edge  # compare as float64: NumPy would round the edge to float32
    return float(narrow if below else np.nextafter(narrow, np.float32(-np.inf)))


def before(values: pa.Array) -> pa.Array:
    """The greatest value of the type below each of some numbers, dates or times.

    Null below the least whole number. Raises ArrowInvalid where another type ends.
    """
    return _stepped(values, -1)


def after(values: pa.Array) -> pa.Array:
    """The least value of the type above each, as `before`."""
    return _stepped(values, 1)


def _stepped(values: pa.Array, by: int) -> pa.Array:
    type_ = values.type
    if pa.types.is_floating(type_):
        numbers = values.to_numpy()
        return pa.array(np.nextafter(numbers, numbers.dtype.type(by * np.inf)), type_)
    if pa.types.is_decimal(type_):
        last = pa.scalar(by * Decimal(1).scaleb(-type_.scale), type_)
        return pc.add_checked(values, last).cast(type_)
    if pa.types.is_integer(type_):
        limits = np.iinfo(type_.to_pandas_dtype())
        last = pa.scalar(limits.max if by > 0 else limits.min, type_)
        change = pc.add if by > 0 else pc.subtract
        return pc.if_else(pc.equal(values, last), None, change(values, pa.scalar(1, type_)))
    ticks = pa.int32() if type_.bit_width == 32 else pa.int64()
    step = ticks_per_day(type_) if pa.types.is_date64(type_) else 1
    return pc.add_checked(values.cast(ticks), pa.scalar(by * step, ticks)).cast(type_)


def date_or_number(edges: NDArray[np.float64], type_: pa.DataType) -> pa.Array:
    """The ends of cells as they are published: numbers, or dates of dates and timestamps."""
    if pa.types.is_temporal(value_type(type_)):
        return pa.array(edges.astype(np.int32)).cast(pa.date32())
    return pa.array(edges)
