"""Criteria of packages, as if they were installed in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from mondrian_ops.job import criterion
from mondrian_ops.job.options import option

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "extension"
BETA_LIKENESS = {"beta_likeness": "beta_likeness:BetaLikeness"}


@contextmanager
def added(entries: Mapping[str, str] = BETA_LIKENESS) -> Iterator[None]:
    """Packages that add criteria are installed: the value of the entry point of each, by name."""
    found = {name: EntryPoint(name, value, criterion.GROUP) for name, value in entries.items()}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", [*sys.path, str(EXAMPLE)])
        patched.setattr(criterion, "criteria", lambda: found)
        criterion.sections.cache_clear()
        try:
            yield
        finally:
            criterion.sections.cache_clear()


@dataclass(frozen=True, slots=True)
class Given(criterion.Criterion):
    """A criterion that requires what it is given."""

    title = "given"
    risk: float = option(text="A risk.")
    like_risk: float = option(0, text="Another one.")

    @property
    def level(self) -> float:
        return 1

    def holds(self, counts: Any) -> Any:
        return counts.classes.sum(axis=1) > 0

    def measure(self, counts: Any) -> Any:
        return counts.classes.sum(axis=1)

    def says(self, column: str) -> str:
        return f"given of {column}"

    def means(self, columns: str) -> str:
        return "nothing."


@dataclass(frozen=True, slots=True)
class ByItself(Given):
    """One that does not compare a class with the whole."""

    needs_all_rows = False
