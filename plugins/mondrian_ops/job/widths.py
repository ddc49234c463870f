"""Widths within which the values of a sensitive number or date count as similar.

The option ``l_width`` of a job. Two values lie within 10 % of one another if their difference is at
most 10 % of the one that is further from zero, so that 90 and 100 do, and zero is alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from mondrian_ops.job.options import shown, wrong
from mondrian_ops.late_methods import dataclass

_WIDTH = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(%|[a-z]*)", re.IGNORECASE)
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}


@dataclass(frozen=True)
class Width:
    """A width: a ``share`` of a value, a ``number`` of the column's units, or ``seconds``.

    ``text`` is how people write it.
    """

    amount: float
    unit: Literal["share", "number", "seconds"]
    text: str

    @property
    def is_of_time(self) -> bool:
        """Whether dates and times are measured with it, and no numbers."""
        return self.unit == "seconds"

    def covers(self, other: Width) -> bool:
        """Whether all values that are similar by ``other`` are similar by this width."""
        return self.unit == other.unit and self.amount >= other.amount


def as_width(text: str, path: str = "l_width") -> Width:
    """The width that ``text`` describes, at ``path`` of a job: ``10 %``, ``500`` or ``30 days``.

    Raises JobError.
    """
    match = _WIDTH.fullmatch(text.strip())
    number = float(match[1]) if match else None
    unit = match[2].lower() if match else ""
    seconds = _SECONDS.get(unit.removesuffix("s"))
    if not number or not (unit in ("", "%") or seconds):
        raise wrong(
            path,
            f"must be a width, such as 10 %, 500 (in the units of the column) or 30 days, not "
            f"{shown(text)}",
        )
    if unit == "%":
        if number >= 100:
            raise wrong(path, f"must be less than 100 %, not {shown(text)}")
        return Width(number / 100, "share", f"{number:g} %")
    if seconds:
        singular = unit.removesuffix("s")
        return Width(
            number * seconds, "seconds", f"{number:g} {singular}{'' if number == 1 else 's'}"
        )
    return Width(number, "number", f"{number:g}")


def widths_of(texts: Mapping[str, str]) -> dict[str, Width]:
    """The widths in ``l_width`` of a job, by sensitive column. Raises JobError."""
    return {name: as_width(text, f"l_width.{name}") for name, text in texts.items()}


DEFAULT_NUMBERS = as_width("10 %")
"""By which the report measures how narrow classes are where the job says nothing."""

DEFAULT_DATES = as_width("30 days")
"""The same of dates and times."""
