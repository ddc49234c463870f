"""What one user may see of the archive of reports."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.models.dag import DagModel
from fastapi import HTTPException

from mondrian_ops import report as reports
from mondrian_ops.core.errors import StorageError
from mondrian_ops.storage import Archive
from mondrian_ops.web.releases import Release, dataset_name

__all__ = ["Listing", "Reader"]

_FRONTIER = "frontier"


def readable_dags(user: BaseUser, dag_ids: Iterable[str]) -> set[str]:
    """Those of the DAGs that the user may read, as for Airflow's own pages."""
    asked = set(dag_ids)
    teams = DagModel.get_dag_id_to_team_name_mapping(sorted(asked))
    of_team: dict[str | None, set[str]] = defaultdict(set)
    for dag_id in asked:
        of_team[teams.get(dag_id)].add(dag_id)
    manager = get_auth_manager()
    return {
        dag_id
        for team, ids in of_team.items()
        for dag_id in manager.filter_authorized_dag_ids(dag_ids=ids, user=user, team_name=team)
    }


class Listing:
    """What the archive holds, as releases; those that were read before are not read anew."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self._known: dict[tuple[str, str], Release] = {}

    def all(self) -> list[Release]:
        """Everything in the archive, frontiers too, newest first."""
        known, releases = self._known, {}
        for entry in self.archive.entries():
            key = entry["id"], entry["time"]
            releases[key] = known.get(key) or Release.of(entry)
        self._known = releases
        return list(releases.values())


class Reader:
    """The archive as a user sees it: only what comes from DAGs that they may read.

    It is made for one request, in which it looks once.
    """

    def __init__(self, listing: Listing, user: BaseUser) -> None:
        self._listing = listing
        self._user = user

    def releases(self) -> list[Release]:
        """All releases, newest first."""
        return [release for release in self._readable if release.state != _FRONTIER]

    def release(self, entry_id: str) -> Release:
        """One release; raises HTTPException 404 where there is none that the user may read.

        What they may not read is looked for, and answered, exactly as what is not there: nobody
        can tell one from the other.
        """
        for release in self.releases():
            if release.id == entry_id:
                return release
        raise HTTPException(404, "There is no such release.")

    def content(self, release: Release) -> bytes:
        """The content of a release's report; raises HTTPException 404 where it has none."""
        if reports.JSON_NAME not in release.files:
            raise HTTPException(404, "This release has no report.")
        return self._file(release.id, reports.JSON_NAME)

    def report(self, release: Release) -> reports.Report | None:
        """The report of a release as it is shown; None where there is none, or it is damaged."""
        if reports.JSON_NAME not in release.files:
            return None
        content = self._file(release.id, reports.JSON_NAME)
        try:
            return reports.Report.from_json(content).named()
        except reports.ReportError:
            return None

    def frontier(self, location: str) -> Mapping[str, Any] | None:
        """The newest frontier that there is of an input, given without its date."""
        for each in self._readable:
            if each.state == _FRONTIER and dataset_name(each.input) == location:
                return _object(self._file(each.id, reports.FRONTIER_NAME))
        return None

    @cached_property
    def _readable(self) -> list[Release]:
        listed = self._listing.all()
        allowed = readable_dags(self._user, {release.dag_id for release in listed})
        return [release for release in listed if release.dag_id in allowed]

    def _file(self, entry_id: str, name: str) -> bytes:
        try:
            return self._listing.archive.file(entry_id, name)
        except (FileNotFoundError, StorageError):
            raise HTTPException(404, "The report is not in the archive any more.") from None


def _object(content: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(content, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _finite(text: str) -> float:
    """A number of a report; no browser reads NaN or Infinity. Raises ValueError."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
