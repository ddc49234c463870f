"""The catalogue's releases, as far as a user may read them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.models.dag import DagModel
from fastapi import HTTPException

from mondrian_ops import report as reports
from mondrian_ops.catalogue import Catalogue
from mondrian_ops.catalogue.releases import FRONTIER
from mondrian_ops.catalogue.tables import document, night, release, series
from mondrian_ops.data.pool import as_shown
from mondrian_ops.report.outcome import PUBLISHED
from mondrian_ops.report.series import NightFigures
from mondrian_ops.stores import shown
from mondrian_ops.web.release_list import (
    BEFORE,
    COLUMNS,
    PAGE_ROWS,
    Choice,
    ListedNight,
    Page,
    Release,
)

OpenCatalogue = Callable[[], Catalogue]
"""Gives the catalogue to a page that reads it; may raise the errors of its settings."""

_COLUMNS = [release.c[name] for name in COLUMNS]
_OF_NIGHT = [release.c[name] for name in ListedNight._fields]
_OF_SERIES = [night.c[name] for name in NightFigures._fields if name != "refitted"]


def readable_dags(user: BaseUser, dag_ids: Collection[str]) -> set[str]:
    """The DAGs that the user may read on Airflow's own pages."""
    teams = DagModel.get_dag_id_to_team_name_mapping(sorted(dag_ids))
    of_team: dict[str | None, set[str]] = defaultdict(set)
    for dag_id in dag_ids:
        of_team[teams.get(dag_id)].add(dag_id)
    manager = get_auth_manager()
    return {
        dag_id
        for team, ids in of_team.items()
        for dag_id in manager.filter_authorized_dag_ids(dag_ids=ids, user=user, team_name=team)
    }


class Reader:
    """The releases of DAGs that a user may read, for one request: one transaction."""

    def __init__(self, open_catalogue: OpenCatalogue, user: BaseUser) -> None:
        self._open_catalogue = open_catalogue
        self._user = user
        self._connection: sa.Connection

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Read in this block: its thread may wait for the database."""
        with self._open_catalogue().reading() as self._connection:
            yield

    def page(self, choice: Choice) -> Page:
        """The chosen page of the list, or the nearest page that there is."""
        chosen = sa.and_(self._is_readable, *choice.conditions())
        counted = sa.select(sa.func.count()).where(chosen)
        total: int = self._connection.execute(counted).scalar_one()
        pages = max(1, math.ceil(total / PAGE_ROWS))
        number = min(max(choice.page, 1), pages)
        order = choice.order_by()
        ids = sa.select(release.c.id).where(chosen).order_by(*order).limit(PAGE_ROWS)
        ids = ids.offset((number - 1) * PAGE_ROWS)  # sorted without the other columns
        rows = sa.select(*_COLUMNS).where(release.c.id.in_(ids)).order_by(*order)
        return Page(self._releases(rows), total, number, pages)

    def states(self) -> list[str]:
        """The states that releases have."""
        return sorted({state for _, state in self._listed})

    def dags(self) -> list[str]:
        """The DAGs that have releases."""
        return sorted({dag_id for dag_id, _ in self._listed})

    def release(self, entry_id: str) -> Release:
        """One release. Raises HTTPException 404 where there is none that the user may read.

        A release that the user may not read takes the same steps and gets the same answer as one
        that does not exist, so that nobody can tell one from the other.
        """
        found = self._releases(
            sa.select(*_COLUMNS).where(self._is_readable, release.c.id == entry_id)
        )
        if not found:
            raise HTTPException(404, "There is no such release.")
        return found[0]

    def before(self, of: Release) -> Release | None:
        """The published release of its dataset that came before."""
        last = self._nights(of.series, _COLUMNS).where(release.c.time < of.time).limit(1)
        return next(iter(self._releases(last)), None)

    def latest(self, series: str, count: int) -> list[ListedNight]:
        """The last published releases of a dataset, oldest first."""
        newest_first = self._connection.execute(self._nights(series, _OF_NIGHT).limit(count))
        return [ListedNight(*row) for row in newest_first][::-1]

    def nights(self, series: str, first: str, last: str) -> list[ListedNight]:
        """The published releases of a dataset between two times, and the seven before them.

        Oldest first.
        """
        time = [release.c.time]
        oldest = self._nights(series, time).where(release.c.time < first).limit(1)
        since = sa.func.coalesce(oldest.offset(BEFORE - 1).scalar_subquery(), "")
        between = sa.and_(release.c.time >= since, release.c.time <= last)
        newest_first = self._connection.execute(self._nights(series, _OF_NIGHT).where(between))
        return [ListedNight(*row) for row in newest_first][::-1]

    def _nights(self, series: str, columns: list[sa.Column[Any]]) -> sa.Select[Any]:
        """The published releases of a dataset, newest first."""
        chosen = sa.select(*columns).where(
            release.c.dag_id.in_(self._dags),
            release.c.series == series,
            release.c.state == PUBLISHED,
        )
        return chosen.order_by(release.c.time.desc(), release.c.id.desc())

    def series(self, of: Release, name: str) -> list[NightFigures]:
        """The nights of a series, by its name as reports show it, oldest first.

        ``of`` is the release of one of its nights. None are given where a DAG that the user may not
        read has releases of the same dataset.
        """
        others = sa.select(sa.func.count()).where(
            release.c.series == of.series, release.c.dag_id.not_in(self._dags)
        )
        if self._connection.scalar(others):
            return []
        every = self._connection.scalars(sa.select(series.c.name))
        names = [each for each in every if shown(each) == name]
        if len(names) != 1:
            return []
        rows = (
            sa.select(*_OF_SERIES, night.c.boundaries.is_not(None).label("fitted"))
            .join(series)
            .where(series.c.name == names[0], night.c.state.in_((PUBLISHED, "held")))
            .order_by(night.c.number)
        )
        nights: list[NightFigures] = []
        is_fitted = False
        for row in self._connection.execute(rows):
            figures = row._asdict() | _as_shown(row, nights, int(of.k or 1))
            fitted = bool(figures.pop("fitted"))
            nights.append(NightFigures(**figures, refitted=fitted and is_fitted))
            is_fitted |= fitted
        return nights

    def content(self, of: Release) -> bytes | None:
        """The content of a release's report; None where it has none."""
        return self._document(of.id, reports.JSON_NAME)

    def frontier(self, input_series: str) -> bytes | None:
        """The JSON of the newest frontier of an input, by its name without the date."""
        newest = (
            sa.select(release.c.id)
            .where(
                release.c.dag_id.in_(self._dags),
                release.c.state == FRONTIER,
                release.c.input_series == input_series,
            )
            .order_by(release.c.time.desc())
            .limit(1)
        )
        entry_id = self._connection.scalar(newest)
        return None if entry_id is None else self._document(entry_id, reports.FRONTIER_NAME)

    def _releases(self, rows: sa.Select[Any]) -> list[Release]:
        return [Release(*row) for row in self._connection.execute(rows)]

    def _document(self, entry_id: str, name: str) -> bytes | None:
        content = sa.select(document.c.content).where(
            document.c.release == entry_id, document.c.name == name
        )
        return self._connection.scalar(content)

    @property
    def _is_readable(self) -> sa.ColumnElement[bool]:
        return sa.and_(release.c.dag_id.in_(self._dags), release.c.state != FRONTIER)

    @cached_property
    def _dags(self) -> Sequence[str]:
        """The DAGs of the catalogue that the user may read."""
        of_all = sa.select(release.c.dag_id).distinct()
        return sorted(readable_dags(self._user, {*self._connection.scalars(of_all)}))

    @cached_property
    def _listed(self) -> list[tuple[str, str]]:
        """Each DAG with each state that its releases have."""
        pairs = sa.select(release.c.dag_id, release.c.state).distinct()
        found = self._connection.execute(pairs.where(self._is_readable))
        return [(row.dag_id, row.state) for row in found]


def _as_shown(row: Any, before: Sequence[NightFigures], k: int) -> dict[str, int]:
    """The rows that came in a night and wait after it: as its report shows them."""
    waits = as_shown(row.rows_waiting, k)
    waited = before[-1].rows_waiting if before else 0
    came = row.rows_published + row.rows_suppressed + waits - waited
    return {"rows_in": max(0, came), "rows_waiting": waits}
