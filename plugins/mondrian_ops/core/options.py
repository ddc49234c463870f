"""Reading one section of a job description: typed, and precise about what is wrong where.

Values come from YAML, JSON, a Python dict, the trigger form or a rendered template. So a missing
key, ``None`` and an empty text all mean "not given", and a number may arrive as its text.
"""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import TypeVar

from mondrian_ops.core import limits
from mondrian_ops.core.errors import JobError, did_you_mean

__all__ = ["Options", "as_number", "shown"]

Choice = TypeVar("Choice", bound=str)

_SHOWN_CHARACTERS = 60
_LARGEST_WHOLE = 2**63 - 1

# What refers to itself again and again is not written out before it is cut.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 2 * _SHOWN_CHARACTERS
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = _SHOWN_CHARACTERS
_SHORT.maxlevel = 3


def shown(value: object) -> str:
    """An option's value for an error message, cut to a readable length."""
    try:
        text = _SHORT.repr(value)
    except ValueError:  # a number of more digits than Python writes
        text = "a huge number"
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def as_number(value: object) -> int | float | None:
    """The finite number that ``value`` is or spells, whole ones within 64 bits.

    None for anything else, booleans included.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, Integral):
        return int(value) if abs(int(value)) <= _LARGEST_WHOLE else None
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    return _spelled_number(value) if isinstance(value, str) else None


def _spelled_number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return as_number(kind(text))
        except ValueError:
            continue
    return None


class Options:
    """A mapping of options at ``path`` ("" for the top level); every reader checks one of them.

    ``known`` are the keys this section may have, ``source`` names the file in messages.
    ``moved`` maps keys of other sections to where they belong. Raises JobError when ``values`` is
    no mapping or has a key that is not known.
    """

    def __init__(
        self,
        values: object,
        *,
        path: str,
        known: Sequence[str],
        source: str = "",
        moved: Mapping[str, str] | None = None,
    ) -> None:
        self._path = path
        self.source = source
        if not isinstance(values, Mapping):
            raise self.error(None, f"must be a mapping of options, not {shown(values)}")
        self._values = values
        for key in values:
            if key not in known:
                raise self._unknown(key, known, moved or {})

    def _unknown(self, key: object, known: Sequence[str], moved: Mapping[str, str]) -> JobError:
        if str(key) in moved:
            return self.error(str(key), f"does not stand here; write it as {moved[str(key)]}")
        hint = did_you_mean(str(key), known) or f"; known here: {', '.join(known)}"
        return self.error(str(key), f"unknown option{hint}")

    def path(self, key: str | None) -> str:
        """The path of ``key`` from the top of the job; of this section when None."""
        if key is None:
            return self._path or "job"
        return f"{self._path}.{key}" if self._path else key

    def error(self, key: str | None, problem: str) -> JobError:
        """The error to raise about ``key``; the caller says the problem and the remedy."""
        source = f" (in {self.source})" if self.source else ""
        return JobError(f"{self.path(key)}: {problem}{source}")

    def get(self, key: str) -> object:
        """The raw value; None when it was not given."""
        value = self._values.get(key)
        return None if isinstance(value, str) and not value.strip() else value

    def section(
        self, key: str, known: Sequence[str], moved: Mapping[str, str] | None = None
    ) -> Options:
        """The section under ``key``, empty when it was not given."""
        value = self.get(key)
        return Options(
            {} if value is None else value,
            path=self.path(key),
            known=known,
            source=self.source,
            moved=moved,
        )

    def text(self, key: str, blank: bool = False) -> str | None:
        """A text (or a path object); None when it is blank (unless ``blank``) or was not given."""
        value = self._values.get(key) if blank else self.get(key)
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if value is None or isinstance(value, str):
            return value
        raise self.error(key, f"must be text, not {shown(value)}; put it in quotes")

    def choice(self, key: str, among: Sequence[Choice], default: Choice) -> Choice:
        """One of the words ``among``."""
        value = self.get(key)
        if value is None:
            return default
        for word in among:
            if value == word:
                return word
        hint = did_you_mean(value, among) if isinstance(value, str) else ""
        raise self.error(key, f"{shown(value)} is not one of {', '.join(among)}{hint}")

    def flag(self, key: str, default: bool) -> bool:
        """A boolean; the texts "true" and "false" are read as one."""
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, str):
            value = {"true": True, "false": False}.get(value.strip().lower(), value)
        if isinstance(value, bool):
            return value
        raise self.error(key, f"must be true or false, not {shown(value)}")

    def number(self, key: str) -> int | float | None:
        """A finite number; None when it was not given."""
        value = self.get(key)
        if value is None:
            return None
        number = as_number(value)
        if number is None:
            raise self.error(key, f"must be a number, not {shown(value)}")
        return number

    def whole(self, key: str, *, least: int, why: str = "") -> int | None:
        """A whole number of at least ``least``; None when it was not given."""
        value = self.get(key)
        if value is None:
            return None
        number = as_number(value)
        if number is None or number != int(number) or number < least:
            remedy = f"; {why}" if why else ""
            raise self.error(
                key, f"must be a whole number of at least {least}, not {shown(value)}{remedy}"
            )
        return int(number)

    def items(self, key: str, blanks: bool = False) -> Iterator[tuple[str, object]]:
        """(path of the item, item) of a list; a text is read as a list separated by commas.

        Blank texts are left out; with ``blanks``, for a column may bear such a name, only those
        between commas.
        """
        value = self.get(key)
        if value is None:
            return
        keep = blanks and not isinstance(value, str)
        for at, item in enumerate(self._as_list(key, value)):
            if keep or not (isinstance(item, str) and not item.strip()):
                yield f"{key}[{at}]", item

    def _as_list(self, key: str, value: object) -> Sequence[object]:
        if isinstance(value, str):
            if value.strip()[:1] in ("[", "("):
                raise self.error(key, f"{shown(value)} is the text of a list; pass the list itself")
            return [part.strip() for part in value.split(",")]
        if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
            return value
        raise self.error(key, f"must be a list, not {shown(value)}; write it as [a, b]")

    def check_count(self, key: str, limit: str) -> None:
        """Raise JobError where a list has more items than a limit of :mod:`core.limits`."""
        value = self.get(key)
        items = () if value is None else self._as_list(key, value)
        if len(items) > limits.limit(limit):
            met = f"lists {len(items):,} of them"
            raise self.error(key, limits.exceeded(limit, met, "name fewer"))

    def columns(self, key: str) -> dict[str, str]:
        """A list of column names: each name's own path, in the order given.

        Raises JobError on a name that is no text or stands in the list twice.
        """
        paths: dict[str, str] = {}
        for path, item in self.items(key, blanks=True):
            if not isinstance(item, str):
                raise self.error(
                    path, f"must be a column name, not {shown(item)}; put it in quotes"
                )
            if item in paths:
                raise self.error(path, f"column {item!r} is listed twice; remove one")
            paths[item] = self.path(path)
        return paths
