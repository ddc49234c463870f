"""What the operators leave in the archive of reports, for the pages inside Airflow."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mondrian_ops.core.errors import PrivacyError
from mondrian_ops.hooks import settings

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.core.job import Job
    from mondrian_ops.storage import Archive

__all__ = ["record", "record_frontier", "refusal_recorded", "release_id"]

_log = logging.getLogger(__name__)


def release_id(dag_id: str, run_id: str, group: str, map_index: int) -> str:
    """What the archive calls the release of a task group in a run; ``map_index`` of ``wrap_up``.

    Every try of every task of the group gets the same id, and nobody can compute it who cannot read
    the archive. Raises StorageError or OSError where the archive's key cannot be read.
    """
    return _archive().id_of(dag_id, run_id, group, map_index)


def record(
    context: Context,
    job: Job,
    state: str,
    report: Mapping[str, Any] | None = None,
    reason: str | None = None,
    map_index: int | None = None,
) -> None:
    """Keep what became of a release, with its report where there is one.

    :param state: published, refused, waiting, rejected, expired or failed; replaces what was kept
        of this release before, but for one that was published: that still stands.
    :param reason: why it was not published; names no person's value.
    :param map_index: that of the release's ``wrap_up``, for a task that is not mapped with it.

    What cannot be kept is a warning in the task's log: the release is none the worse.
    """
    from mondrian_ops import report as reports

    with _no_more_than_warned():
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


def record_frontier(context: Context, job: Job, frontier: Mapping[str, Any]) -> None:
    """Keep a frontier of the job's input, as :func:`record` keeps a release."""
    from mondrian_ops import report as reports

    with _no_more_than_warned():
        entry = {**_entry(context, job), "state": "frontier", "reason": None}
        content = json.dumps(frontier, allow_nan=False).encode()
        _archive().keep(entry, {reports.FRONTIER_NAME: content})


def _put_aside(archive: Archive, entry_id: str) -> None:
    """Keep what a run has published as an entry of its own, once it was cleared and does not
    publish it again."""
    from mondrian_ops import report as reports

    try:
        archive.file(entry_id, reports.JSON_NAME)
    except FileNotFoundError:  # as nearly always: nothing was published, nor measured
        return
    for each in archive.entries():
        if each["id"] == entry_id and each.get("state") == "published":
            other = archive.id_of(entry_id, each["time"])
            files = {name: archive.file(entry_id, name) for name in each["files"]}
            archive.keep({**each, "id": other}, files)


@contextmanager
def refusal_recorded(context: Context, job: Job) -> Iterator[None]:
    """Keep that the release is refused when the block ends with a PrivacyError."""
    try:
        yield
    except PrivacyError as error:
        record(context, job, "refused", getattr(error, "report", None), str(error))
        raise


@contextmanager
def _no_more_than_warned() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        _log.warning(
            "the archive of reports, which the pages show, was not written: %s: %s",
            type(error).__name__,
            error,
        )


def _archive() -> Archive:
    from mondrian_ops.hooks.connections import use_connections
    from mondrian_ops.storage import Archive

    use_connections()  # a task that goes on after an answer has read no job yet
    return Archive(settings.reports())


def _entry(context: Context, job: Job, map_index: int | None = None) -> dict[str, Any]:
    """What is known of a release before it is made."""
    from mondrian_ops import storage

    run, instance = context["dag_run"], context["ti"]
    group = instance.task_id.rpartition(".")[0]
    if map_index is None:
        map_index = -1 if instance.map_index is None else instance.map_index
    return {
        "id": release_id(run.dag_id, run.run_id, group, map_index),
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
