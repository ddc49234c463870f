"""The operators' entries in the archive of reports, which the pages inside Airflow show."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.sdk import conf

from mondrian_ops.hooks import settings
from mondrian_ops.links import release_path

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.core.job import Job
    from mondrian_ops.storage import ReportArchive

__all__ = ["record", "record_frontier", "release_id", "release_url"]

_log = logging.getLogger(__name__)


def release_id(dag_id: str, run_id: str, group: str, map_index: int) -> str:
    """The archive's id of the release of a task group in a run; ``map_index`` is ``wrap_up``'s.

    Every try of every task of the group gets the same id, and only those who can read the archive
    can compute it. Raises StorageError or OSError if the archive's key cannot be read.
    """
    return _archive().id_of(dag_id, run_id, group, map_index)


def release_url(context: Context) -> str:
    """The address of the page of this task's release; only a path if Airflow's host is not set.

    Empty, with a warning in the task's log, if the archive of reports cannot be read: without it
    there is no page.
    """
    try:
        entry = _id_in(context)
    except Exception as error:
        _log.warning(
            "the release has no link, because the archive of reports cannot be read: %s: %s",
            type(error).__name__,
            error,
        )
        return ""
    return _page_of(entry)


def _page_of(entry_id: str) -> str:
    base = urlsplit(conf.get("api", "base_url", fallback="") or "")
    path = release_path(entry_id, base.path.rstrip("/"))
    return f"{base.scheme}://{base.netloc}{path}" if base.netloc else path


def record(
    context: Context,
    job: Job,
    state: str,
    report: Mapping[str, Any] | None = None,
    reason: str | None = None,
    map_index: int | None = None,
) -> str:
    """Record the state of a release in the archive, with its report if there is one.

    The record replaces an earlier one of this release, unless that says published.

    :param state: published, refused, waiting, rejected, expired or failed.
    :param reason: why it was not published; holds no person's value.
    :param map_index: that of the release's ``wrap_up``, for a task that is not mapped with it.

    Returns the address of the release's page; empty, with a warning in the task's log, if it could
    not be recorded.
    """
    from mondrian_ops import report as reports

    with _failure_as_warning():
        outcome: dict[str, Any] = {"state": state, "reason": reason}
        files = {}
        if report is not None:
            outcome |= reports.Report.of(report).overview()
            files[reports.JSON_NAME] = reports.json_content(report)
        entry = {**_entry(context, job, map_index), **outcome}
        archive = _archive()
        if state != "published":
            _put_aside(archive, entry["id"])
        archive.keep(entry, files)
        return _page_of(entry["id"])
    return ""


def record_frontier(context: Context, job: Job, frontier: Mapping[str, Any]) -> None:
    """Record a frontier of the job's input, as :func:`record` does with a release."""
    from mondrian_ops import report as reports

    with _failure_as_warning():
        entry = {**_entry(context, job), "state": "frontier", "reason": None}
        content = json.dumps(frontier, allow_nan=False).encode()
        _archive().keep(entry, {reports.FRONTIER_NAME: content})


def _put_aside(archive: ReportArchive, entry_id: str) -> None:
    """Give the published release of a cleared run an entry of its own: it is still there."""
    from mondrian_ops import report as reports

    try:
        archive.file(entry_id, reports.JSON_NAME)
    except FileNotFoundError:  # the usual case: the run has not published
        return
    for entry in archive.entries():
        if entry["id"] == entry_id and entry.get("state") == "published":
            other = archive.id_of(entry_id, entry["time"])
            files = {name: archive.file(entry_id, name) for name in entry["files"]}
            archive.keep({**entry, "id": other}, files)


@contextmanager
def _failure_as_warning() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        _log.warning(
            "the archive of reports was not written, so the pages do not show this run: %s: %s",
            type(error).__name__,
            error,
        )


def _archive() -> ReportArchive:
    from mondrian_ops.hooks.store_credentials import use_connections
    from mondrian_ops.storage import ReportArchive

    use_connections()  # a task that resumes after an approval has read no job yet
    return ReportArchive(settings.reports())


def _entry(context: Context, job: Job, map_index: int | None = None) -> dict[str, Any]:
    """An entry with what is known of a release before it is made."""
    from mondrian_ops import storage

    run, instance = context["dag_run"], context["ti"]
    if map_index is None:
        map_index = _map_index(context)
    return {
        "id": _id_in(context, map_index),
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        "dataset": storage.shown(str(job.output)),
        "input": storage.shown(str(job.input)),
        "dag_id": run.dag_id,
        "run_id": run.run_id,
        "task_id": instance.task_id,
        "map_index": map_index,
        "k": job.k,
        "l": job.l,
        "t": job.t,
        "algorithm": job.algorithm,
        "engine": job.engine,
    }


def _id_in(context: Context, map_index: int | None = None) -> str:
    run, instance = context["dag_run"], context["ti"]
    group = instance.task_id.rpartition(".")[0]
    index = _map_index(context) if map_index is None else map_index
    return release_id(run.dag_id, run.run_id, group, index)


def _map_index(context: Context) -> int:
    index = context["ti"].map_index
    return -1 if index is None else index
