"""Tasks of a run that has published its release already, and are cleared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mondrian_ops.errors import MondrianOpsError
from mondrian_ops.operators.base import announced_by, check_work
from mondrian_ops.operators.release_records import recorded_report

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

_ATTEMPT = "mondrian_ops_attempt"


def announce_attempt(context: Context, work: str) -> None:
    """Tell the tasks that follow by which token they recognize the release of this attempt."""
    from mondrian_ops import publish

    context["ti"].xcom_push(key=_ATTEMPT, value=publish.WorkDir(work).token)


def released(
    operator: BaseOperator, context: Context, work: str, map_index: int | None = None
) -> dict[str, Any] | None:
    """The report of the run's release if it is published and the working files are gone.

    Such a task was cleared: there is nothing left to do, and nothing to do it with. The release is
    recognized by the token of the run's attempt, or in the catalogue, where another run has
    replaced it meanwhile. A night that is over without a release counts, too.

    None while there are working files, and where the run has published nothing.

    :param map_index: that of the release's ``wrap_up``, for a task that is not mapped with it.
    """
    from mondrian_ops import publish, stores
    from mondrian_ops import report as reports

    check_work(work, context)
    if publish.WorkDir(work).is_begun:
        return None
    output = publish.output_of(work)
    tokens = {token for token in announced_by(operator, context, key=_ATTEMPT) if token}
    report = None
    try:
        if publish.current_token(output) in tokens:
            report = reports.parsed(publish.beside_release(output, reports.JSON_NAME))
    except (MondrianOpsError, FileNotFoundError, ValueError) as error:  # it cannot be read
        operator.log.info("the release cannot be recognized by its files: %s", error)
    if report is None:
        report = recorded_report(context, map_index)
    if report is not None:
        operator.log.info(
            "the release of this run, %s, is published already; nothing is done again",
            stores.shown(output),
        )
    return report


def fragments_of(report: Mapping[str, Any], work: str) -> list[dict[str, Any]]:
    """The fragments of a release, as the task before the mapped ones has returned them."""
    from mondrian_ops.engines.handover import Fragment

    fragments = [
        Fragment(id=each["id"], where=each["where"], rows=each["rows"], work=work)
        for each in report["fragments"]
    ]
    job = report["job"]
    if job.get("engine") == "spark" and (job.get("spark") or {}).get("shape") == "application":
        fragments = [Fragment.together(fragments)]
    return [each.to_dict() for each in fragments]
