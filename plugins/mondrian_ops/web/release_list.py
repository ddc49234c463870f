"""The list of releases: what an address chooses, and the drift from night to night."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields  # of `Choice` FastAPI reads the signature
from datetime import datetime
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlencode

import sqlalchemy as sa

from mondrian_ops.catalogue.tables import release

PAGE_ROWS = 50
BEFORE = 7
"""A release is compared with the median of so many releases before it."""


@dataclass(frozen=True)
class Release:
    """A release as the catalogue lists it; a missing figure is None."""

    id: str
    time: str
    series: str
    dataset: str
    input_series: str
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str
    reason: str | None
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

    @property
    def when(self) -> str:
        """The time at which the release came to its state, to the minute."""
        return when(self.time)


def when(time: str) -> str:
    """A time of the catalogue to the minute."""
    return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M}"


COLUMNS = tuple(each.name for each in fields(Release))
"""The columns of the catalogue that a release has, in the order of its fields."""

SORTS = {
    "time": "time", "dataset": "dataset", "state": "state", "k": "k", "l": "l",
    "rows": "rows_published", "suppressed": "rows_suppressed", "ncp": "NCP", "gcp": "GCP",
    "dp": "DP", "risk": "risk", "duration": "duration_s", "engine": "engine",
}  # fmt: skip
"""The sort keys of an address, and the column that each stands for."""


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

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """The filter."""
        exact = (
            release.c[name] == value
            for name in ("state", "dag_id", "run_id")
            if (value := getattr(self, name))
        )
        searched = self.dataset.casefold()
        return [
            *([release.c.searched.contains(searched, autoescape=True)] if searched else []),
            *exact,
        ]

    def order_by(self) -> list[sa.UnaryExpression[Any]]:
        """The order: releases without the figure come last, newer ones before older ones."""
        column = release.c[SORTS.get(self.sort, "time")]
        turned = sa.asc if self.order == "asc" else sa.desc
        if column is release.c.time:  # as its index is
            return [turned(column), turned(release.c.id)]
        return [turned(column).nulls_last(), release.c.time.desc(), release.c.id.desc()]

    def query(self, **changed: Any) -> str:
        """The query of an address with these changes; without a page it leads to the first."""
        keys = {**asdict(self), "page": 1, **changed}
        return urlencode({key: value for key, value in keys.items() if value not in ("", 1)})

    @property
    def is_narrowed(self) -> bool:
        """Whether there is a filter."""
        return any((self.dataset, self.state, self.dag_id, self.run_id))


@dataclass(frozen=True)
class Page:
    """One page of the list."""

    rows: list[Release]
    total: int
    number: int
    pages: int


class ListedNight(NamedTuple):
    """The figures by which a published release is compared with those before it."""

    id: str
    time: str
    GCP: float | None
    rows_published: float | None


def drifts_of(nights: Sequence[ListedNight], threshold: float) -> dict[str, dict[str, float]]:
    """The relative changes of ``loss`` and ``rows`` beyond the threshold, by the release's id.

    A release is compared with the median of the seven nights before it.
    """
    drifts = {}
    for at, night in enumerate(nights):
        before = nights[max(0, at - BEFORE) : at]
        changes = {
            "loss": _change(night.GCP, (each.GCP for each in before)),
            "rows": _change(night.rows_published, (each.rows_published for each in before)),
        }
        drifts[night.id] = {name: by for name, by in changes.items() if abs(by) > threshold}
    return drifts


def _change(now: float | None, before: Iterable[float | None]) -> float:
    """The change from the median, as a share of it; 0 where there is nothing to compare with."""
    values = [value for value in before if value is not None]
    usual = median(values) if values else 0
    return 0.0 if now is None or not usual else (now - usual) / usual
