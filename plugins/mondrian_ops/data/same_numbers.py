"""Numbers that are the same to a reader: ``1`` and ``1.0``, 0.3 and 0.1 + 0.2.

For the cutting. The check of a release has code of its own for them, in `release_values`.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

DIGITS = 12
"""Digits from the first that is not 0, by which numbers with a fraction are compared."""

_WHOLE = 2.0**53  # below it, float64 holds each whole number exactly
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_TIDY = r"^(0|-?[1-9][0-9]*)$"
_LONGEST = 100  # characters of a text that is read as a number
_ROUNDING = Context(prec=DIGITS, rounding=ROUND_HALF_EVEN)


def digits_kept(values: pa.Array) -> pa.Array:
    """float64 numbers, rounded to 12 digits; whole numbers below 2**53 remain as they are."""
    numbers = values.to_numpy(zero_copy_only=False)
    size = np.abs(numbers)
    fraction = np.isfinite(numbers) & ((numbers != np.rint(numbers)) | (size >= _WHOLE))
    if not fraction.any():
        return values
    rounded = numbers.copy()
    rounded[fraction] = _rounded(numbers[fraction])
    if np.array_equal(rounded, numbers, equal_nan=True):
        return values
    missing = values.is_null().to_numpy(zero_copy_only=False)
    return pa.array(rounded, values.type, mask=missing)


def _rounded(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each number to the nearest of 12 digits, as decimal arithmetic has it."""
    places = DIGITS - 1 - np.floor(np.log10(np.abs(numbers)))
    # Powers of ten up to the 22nd, and whole numbers below 2**53, are exact, so the quotient is
    # the number that the digits stand for; unless the product is so close to a half that its own
    # rounding decides.
    ordinary = (places >= 0) & (places <= 22)
    power = 10.0 ** np.where(ordinary, places, 0)
    scaled = np.abs(numbers) * power
    digits = np.rint(scaled)
    ordinary &= (digits > 10 ** (DIGITS - 1)) & (digits <= 10**DIGITS)
    ordinary &= np.abs(np.abs(scaled - digits) - 0.5) > 1e-3
    result = np.copysign(digits / power, numbers)
    for at in np.flatnonzero(~ordinary).tolist():
        result[at] = float(f"{numbers[at]:.{DIGITS - 1}e}")
    return result


def numbers_in(texts: pa.Array) -> pa.Array:
    """Texts, of which those that are numbers are written in one way: ``1`` for ``01`` and ``1.0``.

    A number with a fraction has 12 digits; a whole one has all of its own.
    """
    number = pc.match_substring_regex(texts, _NUMBER)
    if not pc.any(number).as_py():
        return texts
    other = pc.and_not(number, pc.match_substring_regex(texts, _TIDY))
    other = pc.and_(other, pc.less_equal(pc.utf8_length(texts), _LONGEST))
    tidy = pa.array(map(_tidy, texts.filter(other).to_pylist()), texts.type)
    return pc.replace_with_mask(texts, pc.fill_null(other, False), tidy) if len(tidy) else texts


def _tidy(text: str) -> str:
    number = Decimal(text)
    if number == number.to_integral_value():
        return format(abs(number) if not number else number.to_integral_value(), ".0f")
    return format(number.normalize(_ROUNDING), "f")
