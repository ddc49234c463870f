"""The list of releases: filtered, sorted, page by page, and its drift from night to night.

A value in the archive that has a wrong type counts as missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from statistics import median
from typing import Any
from urllib.parse import urlencode

from mondrian_ops.core.dataset_name import dataset_name

__all__ = ["SORTS", "Choice", "Page", "Release", "drifts_of", "nights_of", "page_of"]

PAGE_ROWS = 50
_BEFORE = 7
"""A release is compared with the median of so many releases before it."""


@dataclass(frozen=True)
class Release:
    """An entry of the archive with checked types; a missing figure is None."""

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
        """The name that all releases of a dataset share: the output without the night's date."""
        return dataset_name(self.dataset)

    @property
    def when(self) -> str:
        """The time at which the release came to its state, to the minute."""
        try:
            return f"{datetime.fromisoformat(self.time):%Y-%m-%d %H:%M}"
        except ValueError:
            return "–"


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

SORTS = {
    "time": "time", "dataset": "dataset", "state": "state", "k": "k", "l": "l",
    "rows": "rows_published", "suppressed": "rows_suppressed", "ncp": "NCP", "gcp": "GCP",
    "dp": "DP", "risk": "risk", "duration": "duration_s", "engine": "engine",
}  # fmt: skip
"""The sort keys of an address, and the attribute of a release that each stands for."""


@dataclass(frozen=True)
class Choice:
    """The filter, the order and the page of the list that an address requests."""

    dataset: str = ""
    state: str = ""
    dag_id: str = ""
    run_id: str = ""
    sort: str = "time"
    order: str = "desc"
    page: int = 1

    def takes(self, release: Release) -> bool:
        """Whether the filter lets the release through."""
        wanted = self.dataset.casefold()
        return (
            (wanted in release.dataset.casefold() or wanted in release.series.casefold())
            and self.state in ("", release.state)
            and self.dag_id in ("", release.dag_id)
            and self.run_id in ("", release.run_id)
        )

    def query(self, **changed: Any) -> str:
        """The query of an address with these changes; without a page it leads to the first."""
        keys = {**asdict(self), "page": 1, **changed}
        return urlencode({key: value for key, value in keys.items() if value not in ("", 1)})

    @property
    def is_narrowed(self) -> bool:
        """Whether there is a filter."""
        return any((self.dataset, self.state, self.dag_id, self.run_id))

    def sorted(self, releases: Sequence[Release]) -> list[Release]:
        """The releases in the chosen order; those without the figure come last."""
        key = attrgetter(SORTS.get(self.sort, "time"))
        with_figure = [release for release in releases if key(release) is not None]
        without = [release for release in releases if key(release) is None]
        return sorted(with_figure, key=key, reverse=self.order != "asc") + without


@dataclass(frozen=True)
class Page:
    """One page of the list."""

    rows: list[Release]
    total: int
    number: int
    pages: int


def page_of(releases: Iterable[Release], choice: Choice) -> Page:
    """The chosen page, or the nearest page that there is."""
    matching = choice.sorted(list(filter(choice.takes, releases)))
    pages = max(1, math.ceil(len(matching) / PAGE_ROWS))
    number = min(max(choice.page, 1), pages)
    first = (number - 1) * PAGE_ROWS
    return Page(matching[first : first + PAGE_ROWS], len(matching), number, pages)


def nights_of(releases: Iterable[Release], series: Iterable[str]) -> dict[str, list[Release]]:
    """The published releases of some datasets by the dataset's name, oldest first."""
    nights: dict[str, list[Release]] = {name: [] for name in series}
    for release in releases:
        if release.state == "published" and release.series in nights:
            nights[release.series].append(release)
    return {name: sorted(of_one, key=attrgetter("time")) for name, of_one in nights.items()}


def drifts_of(nights: Sequence[Release], threshold: float) -> dict[str, dict[str, float]]:
    """The relative changes of ``loss`` and ``rows`` beyond the threshold, by the release's id.

    A release is compared with the median of the seven nights before it.
    """
    drifts = {}
    for at, release in enumerate(nights):
        before = nights[max(0, at - _BEFORE) : at]
        changes = {
            "loss": _change(release.GCP, [each.GCP for each in before]),
            "rows": _change(release.rows_published, [each.rows_published for each in before]),
        }
        drifts[release.id] = {name: by for name, by in changes.items() if abs(by) > threshold}
    return drifts


def _change(now: float | None, before: Iterable[float | None]) -> float:
    """The change from the median, as a share of it; 0 where there is nothing to compare with."""
    values = [value for value in before if value is not None]
    usual = median(values) if values else 0
    return 0.0 if now is None or not usual else (now - usual) / usual
