"""Whether each published interval is a union of the cells of its series, as written.

This module shares no code with encoding, cutting and generalizing. It reads the published texts, or
the two bounds, and compares their ends with the boundaries as the catalogue has them: an interval
is a union of cells exactly where it begins at a boundary, or nowhere, and ends at one, or nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

_NO_START, _NO_STOP = "(-inf", "inf)"


def no_unions(published: Iterable[str | None], boundaries: Sequence[Any], closed: bool) -> int:
    """How many distinct ``published`` texts of an interval column are no unions of cells.

    ``boundaries`` are as JSON; ``closed``: intervals end with their greatest value, which the next
    boundary follows. The missing value and "*" say nothing of a value.
    """
    starts = {_NO_START, *(f"[{_key(each)}" for each in boundaries)}
    last = [_key(_before(each) if closed else each) for each in boundaries]
    stops = {_NO_STOP, *(f"{each}{']' if closed else ')'}" for each in last)}
    return sum(
        not _is_union(text, starts, stops) for text in {*published} if text not in (None, "*")
    )


def no_bounds(
    least: Iterable[str | None],
    greatest: Iterable[str | None],
    boundaries: Sequence[Any],
    closed: bool,
) -> int:
    """The same of the texts of the distinct bounds that ``interval_style: bounds`` publishes."""
    starts = {_key(each) for each in boundaries}
    stops = {_key(_before(each)) for each in boundaries} if closed else starts
    return sum(
        len({_key(text) for text in found if text is not None} - allowed)
        for found, allowed in ((least, starts), (greatest, stops))
    )


def _is_union(text: str, starts: set[str], stops: set[str]) -> bool:
    start, comma, stop = text.partition(", ")
    if not comma:  # a cell of one value
        return f"[{_key(text)}" in starts and f"{_key(text)}]" in stops
    start = start if start == _NO_START else f"[{_key(start[1:])}" if start[:1] == "[" else ""
    stop = stop if stop == _NO_STOP else f"{_key(stop[:-1])}{stop[-1:]}"
    return start in starts and stop in stops


@lru_cache(maxsize=1 << 14)
def _key(value: Any) -> str:
    """A text that is the same for the same number, date or time."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return str(value)
    return format(number.normalize(), "f") if number else "0"


def _before(value: Any) -> Any:
    """The greatest whole number or date before one."""
    if isinstance(value, int):
        return value - 1
    return (date.fromisoformat(value) - timedelta(1)).isoformat()
