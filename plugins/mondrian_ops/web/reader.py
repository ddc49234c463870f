"""The archive of reports, as far as a user may read it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from functools import cached_property

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.models.dag import DagModel
from fastapi import HTTPException

from mondrian_ops import report as reports
from mondrian_ops.core.dataset_name import dataset_name
from mondrian_ops.core.errors import StorageError
from mondrian_ops.storage import ReportArchive
from mondrian_ops.web.release_list import Release

__all__ = ["Listing", "Reader"]

_FRONTIER = "frontier"


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


class Listing:
    """The entries of the archive as releases; each is parsed once."""

    def __init__(self, archive: ReportArchive) -> None:
        self.archive = archive
        self._parsed: dict[tuple[str, str], Release] = {}

    def all(self) -> list[Release]:
        """Every entry, those of frontiers too, newest first."""
        releases = {}
        for entry in self.archive.entries():
            key = entry["id"], entry["time"]
            releases[key] = self._parsed.get(key) or Release.of(entry)
        self._parsed = releases
        return list(releases.values())


class Reader:
    """The entries of DAGs that a user may read; made for one request, in which it looks once."""

    def __init__(self, listing: Listing, user: BaseUser) -> None:
        self._listing = listing
        self._user = user

    def releases(self) -> list[Release]:
        """All releases, newest first."""
        return [release for release in self._readable if release.state != _FRONTIER]

    def release(self, entry_id: str) -> Release:
        """One release. Raises HTTPException 404 where there is none that the user may read.

        A release that the user may not read takes the same steps and gets the same answer as one
        that does not exist, so that nobody can tell one from the other.
        """
        for release in self.releases():
            if release.id == entry_id:
                return release
        raise HTTPException(404, "There is no such release.")

    def content(self, release: Release) -> bytes:
        """The content of a release's report. Raises HTTPException 404 where it has none."""
        if reports.JSON_NAME not in release.files:
            raise HTTPException(404, "This release has no report.")
        return self._file(release.id, reports.JSON_NAME)

    def report(self, release: Release) -> reports.Report | None:
        """The report of a release; None where there is none, or it is damaged."""
        if reports.JSON_NAME not in release.files:
            return None
        content = self._file(release.id, reports.JSON_NAME)
        try:
            return reports.Report.from_json(content).named()
        except reports.ReportError:
            return None

    def frontier(self, dataset: str) -> bytes | None:
        """The JSON of the newest frontier of an input, by its name without the date."""
        for each in self._readable:
            if each.state == _FRONTIER and dataset_name(each.input) == dataset:
                return self._file(each.id, reports.FRONTIER_NAME)
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
            raise HTTPException(404, "The archive does not have this report any more.") from None
