"""The list of releases: filtered, sorted, page by page, and how each compares to its nights before.

What the archive holds is not trusted to have the right types: what has not is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from functools import cached_property
from statistics import median
from typing import Any
from urllib.parse import urlencode

from mondrian_ops.core.dataset_name import dataset_name

__all__ = ["SORTS", "Choice", "Drift", "Page", "Release", "dataset_name", "nights_of", "page_of"]

PAGE_ROWS = 50
NIGHTS = 60
"""Points of a sparkline."""

_BEFORE = 7
"""Releases before, whose median a release is compared with."""


@dataclass(frozen=True)
class Release:
    """An entry of the archive, with the types that the pages rely on; None where there is none."""

    id: str
    time: str
    dataset: str
    input: str
    dag_id: str
    run_id: str
    task_id: str
    state: str
    reason: str
    algorithm: str
    engine: str
    k: float | None
    l: float | None  # noqa: E741 - as every paper calls it
    t: float | None
    achieved_k: float | None
    achieved_l: float | None
    achieved_t: float | None
    rows_input: float | None
    rows_published: float | None
    rows_suppressed: float | None
    equivalence_classes: float | None
    NCP: float | None
    GCP: float | None
    LM: float | None
    DP: float | None
    risk: float | None
    risk_avg: float | None
    duration_s: float | None
    map_index: int
    files: tuple[str, ...]

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Release:
        """The release of an entry."""
        return cls(*(read(entry.get(name)) for name, read in _FIELDS))

    @cached_property
    def series(self) -> str:
        """What the releases of a dataset have in common: the dataset without the night's date."""
        return dataset_name(self.dataset)

    @property
    def when(self) -> datetime | None:
        """When it came to its state."""
        try:
            return datetime.fromisoformat(self.time)
        except ValueError:
            return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # JSON holds integers of any length
        return None
    return number if math.isfinite(number) else None


def _index(value: object) -> int:
    return value if isinstance(value, int) else -1


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(_text, value)) if isinstance(value, list) else ()


_READ: dict[str, Callable[[object], Any]] = {
    "str": _text,
    "float | None": _number,
    "int": _index,
    "tuple[str, ...]": _names,
}
_FIELDS = [(each.name, _READ[str(each.type)]) for each in fields(Release)]

SORTS: dict[str, Callable[[Release], Any]] = {
    "time": lambda r: r.time,
    "dataset": lambda r: r.dataset,
    "state": lambda r: r.state,
    "k": lambda r: r.k,
    "l": lambda r: r.l,
    "rows": lambda r: r.rows_published,
    "suppressed": lambda r: r.rows_suppressed,
    "ncp": lambda r: r.NCP,
    "gcp": lambda r: r.GCP,
    "dp": lambda r: r.DP,
    "risk": lambda r: r.risk,
    "duration": lambda r: r.duration_s,
    "engine": lambda r: r.engine,
}
"""What the list may be sorted by."""


@dataclass(frozen=True)
class Choice:
    """What somebody wants to see of the list."""

    dataset: str = ""
    state: str = ""
    dag_id: str = ""
    run_id: str = ""
    sort: str = "time"
    order: str = "desc"
    page: int = 1

    def takes(self, release: Release) -> bool:
        """Whether the release is among them."""
        wanted = self.dataset.casefold()
        return (
            (wanted in release.dataset.casefold() or wanted in release.series.casefold())
            and self.state in ("", release.state)
            and self.dag_id in ("", release.dag_id)
            and self.run_id in ("", release.run_id)
        )

    def query(self, **changed: Any) -> str:
        """The query of an address that asks for this, but for what is changed; its first page."""
        asked = {**asdict(self), "page": 1, **changed}
        return urlencode({key: value for key, value in asked.items() if value not in ("", 1)})

    @property
    def is_narrowed(self) -> bool:
        """Whether it leaves any release out."""
        return any((self.dataset, self.state, self.dag_id, self.run_id))

    def sorted(self, releases: Iterable[Release]) -> list[Release]:
        """In the order asked for; those without the figure come last."""
        key = SORTS.get(self.sort, SORTS["time"])
        given = list(releases)
        known = [release for release in given if key(release) is not None]
        known.sort(key=key, reverse=self.order != "asc")
        return known + [release for release in given if key(release) is None]


@dataclass(frozen=True)
class Page:
    """One page of the list."""

    rows: list[Release]
    total: int
    number: int
    pages: int


def page_of(releases: Iterable[Release], choice: Choice) -> Page:
    """The page asked for, or the nearest there is."""
    matching = choice.sorted(filter(choice.takes, releases))
    pages = max(1, math.ceil(len(matching) / PAGE_ROWS))
    number = min(max(choice.page, 1), pages)
    first = (number - 1) * PAGE_ROWS
    return Page(matching[first : first + PAGE_ROWS], len(matching), number, pages)


@dataclass(frozen=True)
class Drift:
    """How far a release is from the median of those before it, as shares of that."""

    loss: float | None
    rows: float | None

    def beyond(self, threshold: float) -> list[tuple[str, float]]:
        """What changed by more than the threshold."""
        changes = (("loss", self.loss), ("rows", self.rows))
        return [(what, by) for what, by in changes if by is not None and abs(by) > threshold]


def nights_of(
    releases: Iterable[Release], series: Iterable[str]
) -> dict[str, list[tuple[Release, Drift]]]:
    """The published releases of each of some datasets, oldest first, each with its drift."""
    published: dict[str, list[Release]] = {name: [] for name in series}
    for release in releases:
        if release.state == "published" and release.series in published:
            published[release.series].append(release)
    return {name: _with_drift(nights) for name, nights in published.items()}


def _with_drift(nights: list[Release]) -> list[tuple[Release, Drift]]:
    nights.sort(key=lambda release: release.time)
    return [
        (each, _drift(each, nights[max(0, at - _BEFORE) : at])) for at, each in enumerate(nights)
    ]


def _drift(release: Release, before: Sequence[Release]) -> Drift:
    return Drift(
        _change(release.GCP, [each.GCP for each in before]),
        _change(release.rows_published, [each.rows_published for each in before]),
    )


def _change(now: float | None, before: Sequence[float | None]) -> float | None:
    known = [value for value in before if value is not None]
    usual = median(known) if known else 0
    return None if now is None or not usual else (now - usual) / usual
