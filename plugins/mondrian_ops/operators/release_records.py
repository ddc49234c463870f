"""What the operators record in the catalogue, for the pages inside Airflow to show."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from airflow.sdk import conf

from mondrian_ops.hooks import settings
from mondrian_ops.links import release_path
from mondrian_ops.operators.base import made_by, requested
from mondrian_ops.report.outcome import PUBLISHED

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.catalogue import Catalogue
    from mondrian_ops.job.job import Job

_log = logging.getLogger(__name__)

_OVER = ("published", "held")
_WITHOUT_RELEASE = ("failed", "refused", "rejected", "expired")


def check_catalogue(asks: bool = False) -> None:
    """Reach the catalogue and its key before any work is done.

    Raises JobError or StorageError if it cannot be used, OSError while it cannot be reached; only
    warns if the deployment lets runs publish without it, and the job never ``asks``: a decision
    that is not in the catalogue could be anybody's.
    """
    try:
        _catalogue().key  # noqa: B018 - connects
    except Exception as error:
        if asks or settings.needs_catalogue():
            raise
        _log.warning(
            "the catalogue cannot be used, so the pages will not show this run: %s: %s",
            type(error).__name__,
            error,
        )


def release_id(dag_id: str, run_id: str, group: str, map_index: int) -> str:
    """The catalogue's id of the release of a task group in a run; ``map_index`` is ``wrap_up``'s.

    Every try of every task of the group gets the same id, and only those who have the catalogue's
    key can compute it. Raises StorageError or OSError if the key cannot be read.
    """
    from mondrian_ops.catalogue import releases

    return releases.id_of(_catalogue().key, dag_id, run_id, group, map_index)


def release_url(context: Context) -> str:
    """The address of the page of this task's release; only a path if Airflow's host is not set.

    Empty, with a warning in the task's log, if the catalogue cannot be read: without it there is no
    page.
    """
    try:
        entry = _id_in(context)
    except Exception as error:
        _log.warning(
            "the release has no link, because the catalogue cannot be read: %s: %s",
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
    report: Mapping[str, Any],
    map_index: int | None = None,
) -> str:
    """Record what became of a release in the catalogue: its report, which says it.

    The record replaces an earlier one of this release, unless that says published.

    :param report: concluded, by the pipeline or by :func:`ended`.
    :param map_index: that of the release's ``wrap_up``, for a task that is not mapped with it.

    Returns the address of the release's page; empty, with a warning in the task's log, if it could
    not be recorded.
    """
    from mondrian_ops import report as reports
    from mondrian_ops.catalogue import releases

    with _failure_as_warning():
        entry = _entry(context, job, map_index)
        catalogue = _catalogue()
        key = catalogue.key
        with catalogue.writing() as connection:
            if reports.state_of(report) != PUBLISHED:
                releases.keep_aside(connection, key, entry["id"])
            releases.keep_reported(connection, entry, report)
        return _page_of(entry["id"])
    return ""


def record_failure(
    context: Context,
    job: Job | object,
    reason: str,
    *,
    state: str = "failed",
    map_index: int | None = None,
) -> bool:
    """Record that a run ended without a release, unless one of its tasks did so before.

    The first failure since the run began tells the cause; what follows from it does not replace it.

    :param job: that of the run, or what the operator was given where that is no job.
    :param reason: the text of a MondrianOpsError, or one that names tasks only.

    Returns whether it was recorded.
    """
    from mondrian_ops.catalogue import releases
    from mondrian_ops.job.job import Job

    with _failure_as_warning():
        entry = _entry(context, job, map_index)
        catalogue = _catalogue()
        key = catalogue.key
        with catalogue.writing() as connection:
            before, _ = releases.find(connection, entry["id"])
            over = before if before and before["state"] in _WITHOUT_RELEASE else None
            if over is not None and over["time"] >= _began(context):
                return False
            releases.keep_aside(connection, key, entry["id"])
            if isinstance(job, Job):
                report = ended(context, job, state, reason)
                releases.keep_reported(connection, entry, report)
            else:  # what is no job has no report
                releases.keep(connection, {**entry, "state": state, "reason": reason}, {})
        return True
    return False


class Recorded(NamedTuple):
    """What the catalogue says of a release; empty where it has no entry, or cannot be read.

    ``task_id`` is the task that recorded it, ``is_new`` whether it did so since the run began.
    """

    state: str = ""
    reason: str = ""
    task_id: str = ""
    is_new: bool = False


def recorded_state(context: Context, map_index: int | None = None) -> Recorded:
    """What the catalogue says of the release of this run."""
    from mondrian_ops.catalogue import releases

    with _failure_as_warning("read"):
        with _catalogue().reading() as connection:
            entry, _ = releases.find(connection, _id_in(context, map_index))
        if entry is not None:
            is_new = entry["time"] >= _began(context)
            return Recorded(entry["state"], entry["reason"] or "", entry["task_id"], is_new)
    return Recorded()


def recorded_report(context: Context, map_index: int | None = None) -> dict[str, Any] | None:
    """The report of the release that this run has published, by the catalogue.

    None where it has not, or the catalogue cannot be read.
    """
    from mondrian_ops import report as reports
    from mondrian_ops.catalogue import releases

    with _failure_as_warning("read"):
        with _catalogue().reading() as connection:
            entry, content = releases.find(
                connection, _id_in(context, map_index), reports.JSON_NAME
            )
        if entry is not None and content is not None and entry["state"] in _OVER:
            return reports.parsed(content)
    return None


def _began(context: Context) -> str:
    """When the run began, or began again after it was cleared, as the catalogue writes times."""
    started = context["dag_run"].start_date
    return "" if started is None else started.astimezone(UTC).isoformat(timespec="microseconds")


def ended(
    context: Context,
    job: Job,
    state: str,
    reason: str,
    report: Mapping[str, Any] | None = None,
    decision: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The report of a release that is not published, for :func:`record` and ``notify``.

    :param state: refused, rejected, expired or failed.
    :param reason: why, in a sentence; holds no person's value.
    :param report: that of the release, if it was measured.
    :param decision: a person's, see :func:`report.decided`.
    """
    from mondrian_ops import report as reports
    from mondrian_ops import stores

    if report is None:
        asked = job.to_dict()
        shown = {key: stores.shown(str(asked[key])) for key in ("input", "output")}
        report = reports.unmeasured(
            {**asked, **shown}, made_by=made_by(context["ti"], context), **requested(context)
        )
    return reports.conclude(dict(report), state, reason, decision)


def record_frontier(context: Context, job: Job, frontier: Mapping[str, Any]) -> None:
    """Record a frontier of the job's input, as :func:`record` does with a release."""
    from mondrian_ops import report as reports
    from mondrian_ops.catalogue import releases

    with _failure_as_warning():
        entry = {**_entry(context, job), "state": releases.FRONTIER}
        content = json.dumps(frontier, allow_nan=False).encode()
        with _catalogue().writing() as connection:
            releases.keep(connection, entry, {reports.FRONTIER_NAME: content})


@contextmanager
def _failure_as_warning(done: str = "written, so the pages do not show this run") -> Iterator[None]:
    try:
        yield
    except Exception as error:
        _log.warning(
            "the catalogue was not %s: %s: %s",
            done,
            type(error).__name__,
            error,
        )


def open_entry(context: Context, map_index: int | None = None) -> tuple[Catalogue, str]:
    """The catalogue, and the id in it of the release of this task or of another map index."""
    return _catalogue(), _id_in(context, map_index)


def _catalogue() -> Catalogue:
    from mondrian_ops import catalogue

    catalogue.use(settings.catalogue_place)  # a task that resumes has read no job yet
    return catalogue.current()


def _entry(context: Context, job: Job | object, map_index: int | None = None) -> dict[str, Any]:
    """An entry with what is known of a release before it is made."""
    run, instance = context["dag_run"], context["ti"]
    if map_index is None:
        map_index = map_index_of(context)
    return {
        "id": _id_in(context, map_index),
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        "dag_id": run.dag_id,
        "run_id": run.run_id,
        "task_id": instance.task_id,
        "map_index": map_index,
        **_about(job),
    }


def _about(job: Job | object) -> dict[str, Any]:
    """The columns of an entry that come from a job; of what is none, those that can be told."""
    from mondrian_ops import stores
    from mondrian_ops.job.job import Job

    if isinstance(job, Job):
        return {
            "dataset": stores.shown(str(job.output)),
            "input": stores.shown(str(job.input)),
            "k": job.k,
            "l": job.l,
            "t": job.t,
            "algorithm": job.algorithm,
            "engine": job.engine,
        }
    given = job if isinstance(job, Mapping) else {"output": job or "no job"}
    named = given.get("output") or given.get("name") or given.get("file") or "a job"
    return {
        "dataset": stores.shown(str(named)),
        "input": stores.shown(str(given.get("input") or "")),
        "algorithm": "",
        "engine": "",
    }


def _id_in(context: Context, map_index: int | None = None) -> str:
    run, instance = context["dag_run"], context["ti"]
    group = instance.task_id.rpartition(".")[0]
    index = map_index_of(context) if map_index is None else map_index
    return release_id(run.dag_id, run.run_id, group, index)


def map_index_of(context: Context) -> int:
    """The task's map index; -1 if it is not mapped."""
    index = context["ti"].map_index
    return -1 if index is None else index
