"""DAGs that anonymize each drop of a landing folder: one for all datasets, or one for each.

::

    find_drops ──▶ partition ──▶ … ──▶ wrap_up ──▶ next_drops
        └──▶ overdue_drops

``dags/mondrian_nightly.py`` says what a drop is, and which of them a run takes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from airflow.sdk import (
    DAG,
    Asset,
    AssetAlias,
    AssetOrTimeSchedule,
    CronDataIntervalTimetable,
    Param,
    TriggerRule,
    task,
)
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)

from mondrian_ops.errors import JobError
from mondrian_ops.task_groups import anonymize_each

__all__ = ["LANDING", "RELEASES", "anonymize_folder", "nightly_dag"]

LANDING, RELEASES = "data/landing", "out/nightly"
"""Where drops and releases are by default."""

RELEASE = AssetAlias("mondrian_nightly_release")
"""Gets each release as an Asset of its own."""

SHIPPED = {
    f"mondrian_{name}"
    for name in ("anonymize", "etl_example", "frontier", "inspect", "nightly", "sweep")
}
"""The DAGs that come with the package, of which no dataset's may have the id."""

PATIENCE = timedelta(days=4)  # an approval takes three by default


def anonymize_folder(
    jobs: str,
    *,
    landing: str = LANDING,
    releases: str = RELEASES,
    each: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> dict[str, DAG]:
    """A DAG for each dataset that has a job in a folder, so that one does not turn another red.

    The DAG ``mondrian_DATASET`` does for ``JOBS/DATASET.yaml`` what ``mondrian_nightly`` does for
    all: it releases the drops ``LANDING/DATASET/2025-06-01…`` as ``RELEASES/DATASET/2025-06-01``.
    Job files are not read to parse the DAGs, only listed.

    The Asset ``mondrian_DATASET`` gets an event per release, with the night as its partition, such
    as ``2025-06-01``; the alias ``mondrian_nightly_release`` gets each release as an Asset.

    :param jobs: the folder; a relative path starts at ``[mondrian_ops] home``.
    :param landing: where the drops are, ``releases``: where the releases go; paths or URLs.
    :param options: of every DAG: ``schedule`` (a cron expression, ``0 0 * * *``; UTC), ``owner``,
        ``pool``, ``tags``, ``lookback_days`` (7), ``settle_minutes`` (10), and those of
        :func:`mondrian_ops.task_groups.anonymize_each`, such as ``stewards`` and ``on_refusal``.
    :param each: by dataset, options that differ for it.

    Returns the DAGs by their ids. Airflow finds them by itself, in a file that has the words
    ``airflow`` and ``dag`` in it. Raises JobError if the folder is
    missing, ``each`` names a dataset without a job, or two names make one id.
    """
    from mondrian_ops.hooks.settings import home

    folder = Path(home(), jobs)
    if not folder.is_dir():
        raise JobError(f"{jobs}: no such folder of jobs; make it, or name another")
    datasets = sorted(file.stem for file in folder.glob("*.yaml") if file.name[0] not in "._")
    if strangers := sorted(set(each or ()) - set(datasets)):
        raise JobError(f"each: {jobs} has no job {strangers[0]}.yaml; correct the name")
    dags: dict[str, DAG] = {}
    for dataset in datasets:
        dag_id = f"mondrian_{re.sub(r'[^A-Za-z0-9_.-]', '_', dataset)}"
        if dag_id in dags or dag_id in SHIPPED:
            raise JobError(f"{jobs}: {dataset}.yaml makes the DAG {dag_id} again; rename the file")
        dags[dag_id] = nightly_dag(
            dag_id,
            landing=landing,
            jobs=str(folder),
            releases=releases,
            dataset=dataset,
            **{**options, **(each or {}).get(dataset, {})},
        )
    return dags


def nightly_dag(
    dag_id: str,
    *,
    landing: str,
    jobs: str,
    releases: str,
    dataset: str = "",
    drop: Asset | None = None,
    schedule: str = "0 0 * * *",
    owner: str = "airflow",
    pool: str = "default_pool",
    tags: tuple[str, ...] = (),
    lookback_days: int | str = 7,
    settle_minutes: int | str = 10,
    doc_md: str | None = None,
    display_name: str | None = None,
    **options: Any,
) -> DAG:
    """The DAG that releases the drops of one dataset, or of all (``dataset`` empty).

    :param drop: the Asset whose events start a run, by default ``DAG_ID_drop``.

    The other parameters are those of :func:`anonymize_folder`; places and numbers are templates.
    """
    drop = drop or Asset(f"{dag_id}_drop")
    with DAG(
        dag_id=dag_id,
        dag_display_name=display_name or f"Mondrian: {dataset}",
        description="Anonymize each drop that has no release yet, and publish an Asset per release",
        doc_md=doc_md,
        schedule=AssetOrTimeSchedule(
            timetable=CronDataIntervalTimetable(schedule, timezone="UTC"), assets=[drop]
        ),
        start_date=datetime(2025, 1, 1),
        catchup=False,  # the next night looks back
        max_active_runs=100,  # a run whose release waits for an approval must not stop the nights
        default_args={"owner": owner, "pool": pool},
        params=_form(),
        tags=["mondrian_ops", "privacy", *tags],
    ) as dag:
        find = task(
            task_id="find_drops",
            inlets=[drop],
            max_active_tis_per_dag=1,  # so that two runs never take the same drop
            retries=2,
            retry_delay=timedelta(seconds=10),
        )(find_drops)
        drops = find(
            landing=landing,
            jobs=jobs,
            releases=releases,
            dataset=dataset,
            asset=drop.name,
            lookback_days=lookback_days,
            settle_minutes=settle_minutes,
        )
        overdue = task(task_id="overdue_drops", trigger_rule=TriggerRule.ALL_DONE)(overdue_drops)
        drops >> overdue()
        released = anonymize_each(
            drops, asset=RELEASE, by_night=Asset(dag_id) if dataset else None, **options
        )
        following = task(task_id="next_drops", outlets=[drop], trigger_rule=TriggerRule.ALL_DONE)(
            next_drops
        )
        released >> following(asset=drop.name)
    return dag


def _form() -> dict[str, Param]:
    return {
        "day": Param(
            None,
            type=["null", "string"],
            format="date",
            title="Day",
            description_md="Anonymize the drops of this day, even if they have a release. "
            "Empty: those without a release, as a night does.",
        ),
        "accept": Param(
            [],
            type=["null", "array"],
            items={"type": "string"},
            title="Accept changes of columns",
            description_md="The ids of the changes that you accept, one per line, as the errors "
            "of the refused drops give them. Each holds for one release, and your name is noted.",
        ),
    }


# The tasks


def find_drops(
    *,
    landing: str,
    jobs: str,
    releases: str,
    dataset: str,
    asset: str,
    lookback_days: int | str,
    settle_minutes: int | str,
    **context: Any,
) -> list[dict[str, Any]]:
    """The jobs of the drops that this run takes, the oldest first."""
    from mondrian_ops import stores
    from mondrian_ops.hooks.settings import use_settings
    from mondrian_ops.nightly.acceptance import accept_changes
    from mondrian_ops.nightly.claims import AirflowClaims
    from mondrian_ops.nightly.landing import read_landing
    from mondrian_ops.nightly.night import Night, Request
    from mondrian_ops.nightly.series import SeriesOfJobs
    from mondrian_ops.operators.base import final_errors

    with final_errors():
        use_settings()
        landing, jobs, releases = map(stores.resolved, (landing, jobs, releases))
        if landing == stores.resolved(LANDING):
            Path(landing).mkdir(parents=True, exist_ok=True)
        accept_changes(context["params"].get("accept") or (), context["dag_run"], releases)
        events = [each for of in context["triggering_asset_events"].values() for each in of]
        request = Request.of(
            context["dag_run"],
            context["params"].get("day"),
            [event.extra for event in events],
            whole("lookback_days", lookback_days, least=1),
        )
        settle = timedelta(minutes=whole("settle_minutes", settle_minutes, least=0))
        claims, series = AirflowClaims(context, Asset(asset)), SeriesOfJobs(Path(jobs))
        night = Night(request, releases, claims, series, settle)
        night.sort_out(read_landing(landing, dataset))
    for name, (state, reason) in sorted(night.states.items()):
        level = logging.WARNING if state == "overdue" else logging.INFO
        logging.getLogger(__name__).log(level, "%s: %s: %s", name, state, reason)
    if night.is_blocked:  # it was asked for, so that no later night would take it
        try_again(
            [f"{name}: {why}" for name, (state, why) in night.states.items() if state == "held"],
            context,
        )
    context["ti"].xcom_push(key="drops", value=night.summary())
    if not night.taken:
        raise AirflowSkipException("no drop to take; the lines above tell why")
    return [each.job(Path(jobs), releases) for each in night.taken]


def overdue_drops(**context: Any) -> None:
    """Fail if a drop is older than the look-back and has no release."""
    drops = context["ti"].xcom_pull(task_ids="find_drops", key="drops") or {}
    if overdue := drops.get("overdue"):
        raise AirflowFailException(
            f"no release of {', '.join(overdue)}; the log of find_drops tells what to do"
        )


def next_drops(*, asset: str, **context: Any) -> None:
    """Start a run for the drops of series that this run has left."""
    drops = context["ti"].xcom_pull(task_ids="find_drops", key="drops") or {}
    if not drops.get("left"):
        raise AirflowSkipException("this run has left no drop of a series")
    context["outlet_events"][Asset(asset)].extra = {"drops": drops["left"]}


def try_again(held: list[str], context: Any) -> NoReturn:
    """Wait for the runs that are at work on these drops, but not for ever: a run holds a slot."""
    since, now = context["ti"].get_first_reschedule_date(context), datetime.now(UTC)
    if since is not None and now - since > PATIENCE:
        raise AirflowFailException(
            f"waited for {PATIENCE.days} days: {'; '.join(held)}; see to that run, then clear this "
            "task"
        )
    again: Any = AirflowRescheduleException
    raise again(now + timedelta(seconds=30))


def whole(name: str, value: object, least: int) -> int:
    """A number of days or minutes, which may be text. Raises JobError for another value."""
    from mondrian_ops.operators.base import whole_of

    number = whole_of(name, value)
    if number is None or number < least:
        raise JobError(f"{name}: must be at least {least}")
    return number
