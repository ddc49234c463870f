"""Limits on what a job and its files may hold, so that a small file cannot use up a worker.

Each is checked before the memory is used, by the code that reads. An administrator changes them for
a whole process by the setting ``limits``, ``csv_line=64MiB, columns=20000``; a job cannot.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

from mondrian_ops.errors import InputError, JobError, did_you_mean
from mondrian_ops.late_methods import dataclass

VARIABLE = "AIRFLOW__MONDRIAN_OPS__LIMITS"
"""The variable that Airflow reads its setting ``limits`` from; it holds on a command line, too."""

_UNITS = {"": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
_ENTRY = re.compile(r"\s*(\w+)\s*=\s*([0-9][0-9_]*)\s*(|KiB|MiB|GiB)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit's default; ``unit`` is ``bytes`` where it counts bytes."""

    default: int
    unit: str = ""


LIMITS: dict[str, Limit] = {
    # Of jobs.
    "job_file": Limit(256 << 10, "bytes"),
    "quasi_identifiers": Limit(256),
    "sensitive": Limit(256),
    "columns": Limit(10_000),  # of a source, too
    "fragments": Limit(10_000),
    # Of hierarchies; the last, levels × leaves, also of those that are built from the data.
    "hierarchy_file": Limit(32 << 20, "bytes"),
    "hierarchy_rows": Limit(1_000_000),
    "hierarchy_levels": Limit(64),
    "hierarchy_cells": Limit(1 << 29),
    # Of sources, after decompression.
    "csv_line": Limit(8 << 20, "bytes"),
    "text": Limit(16 << 20, "bytes"),
    "quasi_identifier_text": Limit(4 << 10, "bytes"),
    "parquet_page": Limit(256 << 20, "bytes"),
    "inflation": Limit(1000),  # times the size of the files
}
"""By name; docs/security.md describes each."""

ALWAYS_UNPACKED = 256 << 20
"""To so many bytes any source may unpack."""

_changed: Mapping[str, int] | None = None


def limit(name: str) -> int:
    """The value of a limit in this process."""
    return in_use().get(name, LIMITS[name].default)


def in_use() -> Mapping[str, int]:
    """The limits that are not the defaults, by name."""
    return parsed(os.environ.get(VARIABLE, "")) if _changed is None else _changed


def use(changed: Mapping[str, int] | None) -> None:
    """Set the limits of this process; None: those of the environment, else the defaults."""
    global _changed
    _changed = changed


@contextmanager
def changed(**limits: int) -> Iterator[None]:
    """Set some limits within the block."""
    before = _changed
    use({**in_use(), **limits})
    try:
        yield
    finally:
        use(before)


@lru_cache(maxsize=8)
def parsed(setting: str) -> Mapping[str, int]:
    """Parse a setting: ``NAME=NUMBER``, separated by commas or lines; bytes may have a unit.

    Raises JobError where it is malformed.
    """
    limits: dict[str, int] = {}
    for entry in filter(str.strip, re.split(r"[,\n]", setting)):
        match = _ENTRY.fullmatch(entry)
        name, number, unit = match.groups() if match else (entry.strip(), "0", "")
        if match and name not in LIMITS:
            raise JobError(f"limits: there is no limit {name!r}{did_you_mean(name, LIMITS)}")
        value = int(number) * _UNITS[unit.upper()]
        if value < 1 or (unit and LIMITS[name].unit != "bytes"):
            raise JobError(
                f"limits: {entry.strip()!r} is not valid; write NAME=NUMBER, such as columns=20000 "
                "or csv_line=64MiB"
            )
        limits[name] = value
    return limits


def exceeded(name: str, met: str, remedy: str) -> str:
    """The text of an error: what exceeds a limit (``met``), the limit, and the remedy."""
    value, unit = limit(name), LIMITS[name].unit
    shown = size_text(value) if unit == "bytes" else f"{value:,}"
    return (
        f"{met}; the limit {name!r} is {shown}: {remedy}, or have an administrator raise {name!r} "
        "in the setting limits of the section [mondrian_ops] of Airflow's configuration"
    )


def check_text(where: str, length: int, name: str = "text") -> None:
    """Raise InputError if a value of ``length`` bytes exceeds a limit; ``where`` holds it."""
    if length > limit(name):
        met = f"{where} holds a value of {size_text(length)}"
        raise InputError(exceeded(name, met, "shorten it, or leave out that column"))


def most_unpacked(packed: int) -> int:
    """The bytes to which files of ``packed`` bytes may unpack."""
    return ALWAYS_UNPACKED + limit("inflation") * packed


def size_text(size: int) -> str:
    """Bytes as people write them: ``8 MiB``, ``1,025 bytes``."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size % factor == 0 or size >= 100 * factor:
            return f"{size // factor:,} {unit}"
    return f"{size:,} bytes"
