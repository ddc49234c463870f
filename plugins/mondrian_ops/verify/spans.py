"""Labels of ladders that stand for all days, or all codes, between two: ``2024-Q2``, ``E10-E14``.

Read as a reader of the release does, and apart from :mod:`mondrian_ops.data.ladders`, which writes
them. Another text raises ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta

_LAST = "~"  # sorts after all letters and digits of a code
_MONTHS = {"Q1": (1, 3), "Q2": (4, 6), "Q3": (7, 9), "Q4": (10, 12)}
_PERIOD = re.compile(
    r"(?P<decade>[0-9]{3})0s"
    r"|(?P<year>[0-9]{4})(-(?P<quarter>Q[1-4])|-W(?P<week>[0-9]{2})"
    r"|-(?P<month>[0-9]{2})(-(?P<day>[0-9]{2}))?)?",
    re.ASCII,
)
_CODES = re.compile(r"([A-Z][0-9A-Z]{2})-([A-Z][0-9A-Z]{2})", re.ASCII)


def days_of(label: str) -> tuple[str, str]:
    """The first and the last day of a unit of the calendar, as ``2024-05-01``."""
    found = _PERIOD.fullmatch(label)
    if found is None:
        raise ValueError
    if found["decade"]:
        return f"{found['decade']}0-01-01", f"{found['decade']}9-12-31"
    year = found["year"]
    if found["week"]:
        first = date.fromisocalendar(int(year), int(found["week"]), 1)
        return first.isoformat(), (first + timedelta(days=6)).isoformat()
    if found["day"]:
        return label, label
    first_month, last_month = 1, 12
    if found["quarter"]:
        first_month, last_month = _MONTHS[found["quarter"]]
    elif found["month"]:
        first_month = last_month = int(found["month"])
    return f"{year}-{first_month:02}-01", f"{year}-{last_month:02}-{_days(year, last_month)}"


def _days(year: str, month: int) -> int:
    if month == 12:
        return 31
    return (date(int(year), month + 1, 1) - timedelta(days=1)).day


def codes_of(label: str) -> tuple[str, str]:
    """The first and the last code of ICD-10, without points, that a label stands for."""
    found = _CODES.fullmatch(label)
    if found:
        return found[1], found[2] + _LAST
    code = label.replace(".", "")
    return code, code + _LAST if len(code) == 3 else code


KINDS: Mapping[str, Callable[[str], tuple[str, str]]] = {"calendar": days_of, "icd10": codes_of}
"""By kind of a ladder, what its labels stand for."""


def key_of(text: str, kind: str) -> str:
    """What a value is compared with the ends of such labels by: its day, or its code."""
    return text[:10] if kind == "calendar" else text.replace(".", "")


def ends_in_order(label: str) -> tuple[str, str]:
    """The first and the last category of a label, ``[low, medium]``, of a column with an order."""
    if label.startswith("[") and label.endswith("]"):
        low, _, high = label[1:-1].partition(", ")
        return low, high
    return label, label
