"""The values of a release as a reader sees them: which are equal, and which are missing.

Verification compares published values by this module only and shares no code with the encoding.
Texts of sensitive columns are equal if a reader sees the same text or number, and missing if a
reader sees none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.errors import PrivacyError
from mondrian_ops.verify.native.equal_rows import distances

Ints = NDArray[np.int64]

_MISSING = 0
_BLANKS = ("Cc", "Zl", "Zp", "Zs")  # control characters; between lines, paragraphs and words
_SHOWS_NOTHING = frozenset(
    map(
        chr,
        [
            *(0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, 0x17B4, 0x17B5, 0x2065, 0x2800),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xFFF0, 0xFFF9),
            *range(0xE0000, 0xE1000),
        ],
    )
)
_DIGITS = 12  # by which numbers with a fraction are compared
_LONGEST = 100  # characters of a number in a text
_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,3}))?", re.ASCII)


class ColumnValues:
    """The distinct values of a column so far; value ``i`` has the code ``i + 1``.

    With ``read``, texts are compared, and listed, as `as_read` gives them, and floating-point
    numbers by 12 digits; with ``numbers`` also texts that are numbers, as `as_number` gives them.
    """

    def __init__(
        self, name: str, nan_is_missing: bool = False, read: bool = False, numbers: bool = False
    ) -> None:
        self.name = name
        self.values: pa.Array[Any] = pa.nulls(0)
        self._nan_is_missing = nan_is_missing
        self._read = read
        self._numbers = numbers

    def empty(self) -> ColumnValues:
        """Values of the same column, none yet."""
        return ColumnValues(self.name, self._nan_is_missing, self._read, self._numbers)

    @property
    def size(self) -> int:
        """Codes in use: those of the values, and 0 for the missing one."""
        return len(self.values) + 1

    def encoded(self, column: pa.Array[Any]) -> pa.DictionaryArray[Any, Any]:
        """The column as indices into a dictionary, which may have equal values."""
        with self._comparable(column):
            return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()

    def codes_of(self, values: pa.Array[Any]) -> NDArray[Any]:
        """(values + 1,) unsigned codes of some values; the last is that of the missing value.

        Equal values have equal codes; new values are added to `values`.
        """
        with self._comparable(values):
            is_double = pa.types.is_float64(values.type)
            values = _canonical(values, self._nan_is_missing)
            if self._read and is_double:
                values = _by_digits(values)
            if self._read and pa.types.is_large_string(values.type):
                values = _all_read(values)
                values = _all_numbers(values) if self._numbers else values
            codes = self._codes_of(values)
        return np.append(codes, _MISSING).astype(np.min_scalar_type(self.size))

    def add_all(self, others: Sequence[ColumnValues]) -> list[NDArray[Any]]:
        """Add the values of others; of each the codes here, (its `size`,), by its own codes.

        All are looked up at once, because each look-up begins with a table of all values so far;
        one that is there several times, once.
        """
        distinct = {id(other): other for other in others}
        arrays = [of.values for of in distinct.values() if not pa.types.is_null(of.values.type)]
        for array in arrays[1:]:
            self._check_type(array.type, arrays[0].type)
        codes = np.zeros(0, np.int64)
        if arrays:
            with self._comparable(arrays[0]):
                codes = self._codes_of(pa.concat_arrays(arrays))
        codes = codes.astype(np.min_scalar_type(self.size))
        ends = np.cumsum([len(other.values) for other in distinct.values()])
        missing = np.zeros(1, codes.dtype)
        of_each = {
            number: np.concatenate([missing, codes[end - len(other.values) : end]])
            for (number, other), end in zip(distinct.items(), ends.tolist(), strict=True)
        }
        return [of_each[id(other)] for other in others]

    def keep(self, most: int) -> None:
        """Forget all values but the first ``most``, whose codes stay."""
        self.values = self.values.take(pa.array(np.arange(min(most, len(self.values)))))

    @contextmanager
    def _comparable(self, column: pa.Array[Any]) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise PrivacyError(
                f"column {self.name!r}: values of type {column.type} cannot be compared; "
                "the release cannot be checked"
            ) from None

    def _codes_of(self, values: pa.Array[Any]) -> Ints:
        """(values,) the code of each of some values in their canonical form."""
        if pa.types.is_null(values.type):
            return np.zeros(len(values), np.int64)
        known = len(self.values)
        if not known:
            self.values = pa.array([], values.type)
        self._check_type(values.type, self.values.type)
        # Known values come first, so they keep their places in the dictionary.
        encoded = pa.concat_arrays([self.values, values]).dictionary_encode()
        self.values = encoded.dictionary
        codes: Ints = encoded.indices.slice(known).cast(pa.int64()).fill_null(-1).to_numpy() + 1
        return codes

    def _check_type(self, one: pa.DataType, other: pa.DataType) -> None:
        if one != other:
            raise PrivacyError(
                f"column {self.name!r} is {one} in one part and {other} in another; the release "
                "cannot be checked"
            )


class IdentifierValues(ColumnValues):
    """The values of a published identifier: two suffice to show that it is not redacted."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.is_published = False
        self._distinct: set[int] = set()

    @property
    def is_blank(self) -> bool:
        """Whether no two rows differ."""
        return len(self._distinct) < 2

    @property
    def distinct(self) -> pa.Array[Any]:
        """What :meth:`add` needs to know as much: at most two values."""
        codes = np.array(sorted(self._distinct), np.int64)
        return self.values.take(pa.array(codes - 1, mask=codes == _MISSING))

    def add(self, column: pa.Array[Any]) -> None:
        """Add some rows."""
        self.is_published = True
        if self.is_blank and len(column):
            encoded = self.encoded(column)
            codes = self.codes_of(encoded.dictionary).take(places(encoded))
            self._distinct.update((int(codes.min()), int(codes.max())))

    def merge(self, other: IdentifierValues) -> None:
        """Add the rows of another part."""
        self.is_published |= other.is_published
        if not other.is_blank:
            self._distinct |= other._distinct
        elif other._distinct:
            (code,) = other._distinct
            self.add(other.values.slice(code - 1, 1) if code else pa.nulls(1, other.values.type))


class ColumnCodes:
    """Codes of a column of a part, whose pieces come one after another.

    Equal values of a piece have equal codes, of `values`; pieces share these where the dictionary
    is that of the piece before.

    Attributes:
        values: those of the piece that came last.
        codes: (places,) the unsigned code of each of its places.
    """

    def __init__(self, values: ColumnValues) -> None:
        self.values = values.empty()
        self.codes: NDArray[Any] = np.zeros(1, np.uint8)
        self._dictionary: pa.Array[Any] | None = None
        self._known = self.codes  # of the dictionary

    def places(self, column: pa.Array[Any]) -> NDArray[np.int32]:
        """(rows,) the place of each row's code in :attr:`codes`, for the next piece."""
        ends = _ends_of(column) if pa.types.is_integer(column.type) else None
        if ends is not None and ends[1] - ends[0] < len(column):
            return self._distances(column, *ends)
        encoded = self.values.encoded(column)
        self.codes = self._codes_of(encoded.dictionary)
        return places(encoded)

    def _distances(self, column: pa.Array[Any], least: int, most: int) -> NDArray[np.int32]:
        """The places of whole numbers: how far each is from the least one."""
        plain = column.fill_null(least) if column.null_count else column
        from_least, met = distances(plain.to_numpy(), least, most - least + 1)
        present = np.flatnonzero(met)
        codes = self._codes_of(_numbers_from(least, present, column.type))
        self.codes = np.zeros(len(met) + 1, codes.dtype)  # the last is that of a missing one
        self.codes[present] = codes[:-1]
        if column.null_count:
            from_least[column.is_null().to_numpy(zero_copy_only=False)] = len(met)
        return from_least

    def _codes_of(self, dictionary: pa.Array[Any]) -> NDArray[Any]:
        """(values + 1,) the codes of a dictionary, the last that of the missing value."""
        if self._dictionary is None or not dictionary.equals(self._dictionary):
            self.values, self._dictionary = self.values.empty(), dictionary
            self._known = self.values.codes_of(dictionary)
        return self._known


def places(column: pa.DictionaryArray[Any, Any]) -> NDArray[np.int32]:
    """(rows,) places in the column's dictionary; a missing value has the place after the last."""
    indices = column.indices
    if indices.type != pa.int32():
        indices = indices.cast(pa.int32())
    if indices.null_count:
        indices = indices.fill_null(len(column.dictionary))
    numbers: NDArray[np.int32] = indices.to_numpy()
    return numbers


def _ends_of(numbers: pa.Array[Any]) -> tuple[int, int] | None:
    """The least and the greatest of some whole numbers; None where all are missing."""
    ends = pc.min_max(numbers).as_py()
    return None if ends["min"] is None else (ends["min"], ends["max"])


def _numbers_from(least: int, distances: Ints, type_: pa.DataType) -> pa.Array[Any]:
    """The whole numbers of a type that are so far from the least one."""
    kind = np.dtype(type_.to_pandas_dtype())
    # Addition of unsigned numbers wraps around, so that the sum is right.
    unsigned = np.dtype(f"u{kind.itemsize}")
    numbers = distances.astype(unsigned) + np.array(least, kind).view(unsigned)
    return pa.array(numbers.view(kind), type_)


def _canonical(values: pa.Array[Any], nan_is_missing: bool) -> pa.Array[Any]:
    """The values, equal ones in one form: texts of one type, one zero, one NaN."""
    if pa.types.is_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    if not pa.types.is_floating(values.type):
        return values
    missing = pc.is_null(values, nan_is_null=nan_is_missing).to_numpy(zero_copy_only=False)
    numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return pa.array(numbers, mask=missing)


def as_read(text: str) -> str | None:
    """The text that a reader sees, the same for texts that look alike; None if it shows nothing.

    Invisible characters are left out, the rest is in Unicode's form NFKC, and words are one space
    apart.
    """
    shown = "".join(c for c in text if unicodedata.category(c) != "Cf" and c not in _SHOWS_NOTHING)
    composed = unicodedata.normalize("NFKC", shown)
    words = "".join(" " if unicodedata.category(c) in _BLANKS else c for c in composed).split(" ")
    return " ".join(filter(None, words)) or None


def _all_read(values: pa.Array[Any]) -> pa.Array[Any]:
    """`as_read` of each text; texts of plain ASCII words only are returned as they are."""
    plain = pc.match_substring_regex(values, r"^[!-~]+( [!-~]+)*$")
    if pc.all(plain).as_py() is not False:
        return values
    texts = values.to_pylist()
    return pa.array([None if text is None else as_read(text) for text in texts], values.type)


def as_number(text: str) -> str:
    """The text; one that is a number, as ``1`` for ``01``, ``1.0`` and ``1E0``.

    A number with a fraction is rounded to 12 digits, a half to the even one.
    """
    parts = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
    if parts is None or not (parts[2] or parts[3]):
        return text
    digits = (parts[2] + (parts[3] or "")).lstrip("0")
    after_point = len(parts[3] or "") - int(parts[4] or 0)  # of the digits; below 0: zeros lack
    digits, after_point = _without_zeros(digits, after_point)
    if after_point > 0 and len(digits) > _DIGITS:
        cut = len(digits) - _DIGITS
        number, rest = divmod(int(digits), 10**cut)
        half = 5 * 10 ** (cut - 1)
        number += rest > half or (rest == half and number % 2 == 1)
        digits, after_point = _without_zeros(str(number), after_point - cut)
    if not digits:
        return "0"
    sign = "-" if parts[1] == "-" else ""
    if after_point <= 0:
        return f"{sign}{digits}{'0' * -after_point}"
    digits = digits.rjust(after_point + 1, "0")
    return f"{sign}{digits[:-after_point]}.{digits[-after_point:]}"


def _without_zeros(digits: str, after_point: int) -> tuple[str, int]:
    """Digits without those zeros at their end, and how many of the rest stand after the point."""
    kept = digits.rstrip("0")
    return kept, after_point - (len(digits) - len(kept))


def _all_numbers(values: pa.Array[Any]) -> pa.Array[Any]:
    """`as_number` of each text; only those that look like a number, and are not tidy, are read."""
    number = pc.match_substring_regex(values, r"^[+-]?[0-9.]+([eE][+-]?[0-9]+)?$")
    tidy = pc.match_substring_regex(values, r"^-?[1-9][0-9]*$")
    places = np.flatnonzero(pc.fill_null(pc.and_not(number, tidy), False))
    if not len(places):
        return values
    texts = values.to_pylist()
    for at in places.tolist():
        texts[at] = as_number(texts[at])
    return pa.array(texts, values.type)


def _by_digits(values: pa.Array[Any]) -> pa.Array[Any]:
    """Numbers by 12 digits; whole ones below 2**53, which are exact, as they are."""
    # The shortest text of a number has its digits and a point: most have too few to be rounded.
    long = pc.greater(pc.utf8_length(values.cast(pa.string())), _DIGITS + 1)
    if not pc.any(long).as_py():
        return values
    numbers = values.to_numpy(zero_copy_only=False).copy()
    places = pc.fill_null(long, False).to_numpy(zero_copy_only=False)
    numbers[places] = [
        each if abs(each) < 1 << 53 and each.is_integer() else float(f"{each:.{_DIGITS}g}")
        for each in numbers[places].tolist()
    ]
    return pa.array(numbers, mask=values.is_null().to_numpy(zero_copy_only=False))
