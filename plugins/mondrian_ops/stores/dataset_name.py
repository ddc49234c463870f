"""The name of a dataset of which releases are made night by night: a location without dates."""

from __future__ import annotations

import re

# 2025-06-01, 20250601, 2025/06/01 and their like, and a time of day after them. With other digits
# beside it, or an impossible month or day, it is a number.
_DATE = re.compile(
    r"""(?<!\d)
    (?:19|20)\d\d ([-/._]?) (?:0[1-9]|1[0-2]) \1 (?:0[1-9]|[12]\d|3[01])
    (?: [T_\ -]? (?:[01]\d|2[0-3]) [:-]? [0-5]\d (?: [:-]? [0-5]\d (?:\.\d{1,9})? )? )? Z?
    (?!\d)""",
    re.VERBOSE,
)


def dataset_name(location: str) -> str:
    """A location with ``*`` in place of dates, and of times after them."""
    return _DATE.sub("*", location)


def dates_in(location: str) -> str:
    """The dates that :func:`dataset_name` leaves out, with blanks between them."""
    return " ".join(found[0] for found in _DATE.finditer(location))


def day_digits(location: str) -> list[str]:
    """The digits of each date that :func:`dataset_name` leaves out, without a midnight."""
    digits = (re.sub(r"\D", "", found[0]) for found in _DATE.finditer(location))
    return [each[:8] + each[8:].rstrip("0") for each in digits]
