"""What the values of a column are: known by their texts, by the column's name, or by both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from mondrian_ops.inspection.columns import Column

MOST = 0.9
"""The share of rows whose text has to have a kind's pattern."""


class Kind(NamedTuple):
    """A kind of values. ``named``: a word of the column's name that it needs, if any."""

    name: str
    pattern: str
    named: frozenset[str] = frozenset()
    holds: Callable[[str], bool] | None = None


def kind_of(column: Column) -> str | None:
    """The name of the first kind that nearly all rows of a column have; None if it has none."""
    if not column.distinct:
        return None
    if not (column.is_text or column.is_integer):
        return None
    for kind in KINDS:
        if kind.named and kind.named.isdisjoint(column.words):
            continue
        if column.matching(kind.pattern) >= MOST and _holds(kind, column):
            return kind.name
    return None


def _holds(kind: Kind, column: Column) -> bool:
    """Whether check digits are right, where a kind has some."""
    if kind.holds is None:
        return True
    texts = column.texts.to_pylist()
    return column.share(pa.array([kind.holds(text) for text in texts])) >= MOST


def _remainder_is_one(iban: str) -> bool:
    """ISO 13616: the number is 1 modulo 97, with its first four signs behind, A as 10."""
    text = iban.replace(" ", "")
    digits = "".join(str(int(sign, 36)) for sign in text[4:] + text[:4])
    return int(digits) % 97 == 1


def _luhn(number: str) -> bool:
    """ISO/IEC 7812, annex B: the sum of the digits, of every second twice, ends with 0."""
    digits = [int(sign) for sign in number if sign.isdigit()][::-1]
    return (sum(digits[::2]) + sum(sum(divmod(2 * each, 10)) for each in digits[1::2])) % 10 == 0


def _letter_of_dni(number: str) -> bool:
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number[:8]) % 23] == number[8]


def _tax_number(number: str) -> bool:
    """The check digit of German tax numbers (ISO 7064, MOD 11,10)."""
    product = 10
    for sign in number[:10]:
        total = (int(sign) + product) % 10 or 10
        product = 2 * total % 11
    return (11 - product) % 10 == int(number[10])


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PHONE = _words("phone tel telephone mobile cell fax contact telefon telefono handy")
_POSTAL = _words("zip zipcode postal postcode postalcode plz cap cp post")
_ADDRESS = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_MONTH = "(?:0?[1-9]|1[0-2])"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"

EMAIL, PHONE, URL, UUID = "e-mail addresses", "telephone numbers", "web addresses", "UUIDs"
HASH, IBAN, CARD = "hashes or keys", "account numbers (IBAN)", "card numbers"
NATIONAL = "national numbers of persons"
IP, MAC, ICD10, POSTAL = "IP addresses", "device addresses (MAC)", "ICD-10 codes", "postal codes"
DATE_TEXT = "dates as text"

ONE_PERSONS = {EMAIL, URL, UUID, HASH, MAC, IBAN, CARD, NATIONAL, PHONE}
"""The kinds of which each value is one person's."""

KINDS: Sequence[Kind] = (
    Kind(EMAIL, r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}"),
    Kind(URL, r"(?:https?|ftp)://\S+|www\.\S+"),
    Kind(UUID, r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"),
    Kind(HASH, r"[0-9a-fA-F]{32}|[0-9a-fA-F]{40}|[0-9a-fA-F]{64}"),
    Kind(MAC, r"(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}"),
    Kind(
        IP, rf"{_ADDRESS}(?:\.{_ADDRESS}){{3}}|(?:[0-9a-fA-F]{{0,4}}:){{3,7}}[0-9a-fA-F.]{{0,15}}"
    ),
    Kind(IBAN, r"[A-Z]{2}\d{2}[A-Z0-9 ]{11,30}", holds=_remainder_is_one),
    Kind(NATIONAL, r"\d{3}-\d{2}-\d{4}"),  # United States
    Kind(NATIONAL, r"[A-CEGHJ-PR-TW-Z]{2} ?\d\d ?\d\d ?\d\d ?[A-D]"),  # United Kingdom
    Kind(NATIONAL, r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]"),  # Italy
    Kind(NATIONAL, r"\d{8}[A-Z]", holds=_letter_of_dni),  # Spain
    Kind(NATIONAL, r"[1-9]\d{10}", holds=_tax_number),  # Germany
    Kind(CARD, r"\d{4}(?:[ -]?\d{4}){2}[ -]?\d{1,7}", holds=_luhn),
    Kind(
        DATE_TEXT, rf"{_DAY}[./-]{_MONTH}[./-](?:\d\d)?\d\d|{_MONTH}[./-]{_DAY}[./-](?:\d\d)?\d\d"
    ),
    Kind(DATE_TEXT, rf"\d{{4}}[./]{_MONTH}[./]{_DAY}(?:[T ].*)?"),
    Kind(PHONE, r"\+[0-9][0-9 ()./-]{6,18}[0-9]|\(?0?[0-9]{2,4}\)?[ /-][0-9]{3,4}[ -][0-9]{3,5}"),
    Kind(PHONE, r"[0-9 ()./+-]{6,20}", named=_PHONE),
    Kind(ICD10, r"[A-Z][0-9][0-9A-Z](?:\.[0-9A-Z]{1,4})?"),
    Kind(POSTAL, r"[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}|[A-Z][0-9][A-Z] ?[0-9][A-Z][0-9]"),
    Kind(POSTAL, r"[A-Z]{0,2}-?[0-9]{3,6}(?:-[0-9]{3,4})?", named=_POSTAL),
)
