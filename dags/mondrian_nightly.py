"""Anonymize, every night, each drop that has no release yet.

A drop is `LANDING/DATASET/2025-06-01.parquet` (or `.csv`; several files whose names start with the
same day are one drop), or a directory `LANDING/DATASET/2025-06-01` with `_SUCCESS` in it. Its job
is `JOBS/DATASET.yaml`, without `input` and `output`; its release is `RELEASES/DATASET/2025-06-01`,
which becomes an Asset. A drop that fails does not affect the others.

A night takes the drops of the days before it, the oldest first, as far as it looks back. A drop
that is not complete, or whose dataset is still at work or waits for an approval in another run, is
left to a later night; one that failed is tried again. `overdue_drops` fails as long as a drop
is older than that and has no release. The log of `find_drops`, and its XCom `drops`, tell what
became of each drop.

A drop whose columns are not those of the last release of its dataset is refused, and its error
names the change and an id. Trigger the DAG with this id under `accept` to release it as it is.

Trigger the DAG with a `day`, or make a backfill, to anonymize the drops of these days in any case.
An event of the Asset `mondrian_drop` starts a run at once; its extra `{"drop":
"DATASET/2025-06-01"}` names the drop, which has to be complete.

If the job says that the releases are a `series`, a run takes one drop of it, since the nights of a
series follow one another; `next_drops` then starts a run for the next one.

| | Airflow Variable | default |
|---|---|---|
| LANDING | `mondrian_ops_landing` | `data/landing` |
| JOBS | `mondrian_ops_jobs` | `include/jobs` |
| RELEASES | `mondrian_ops_releases` | `out/nightly` |
| how many days a night looks back | `mondrian_ops_lookback_days` | 7 |
| minutes after which an unchanged file is complete | `mondrian_ops_settle_minutes` | 10 |

LANDING and RELEASES may be URLs (`hdfs://`, `s3://`); JOBS is a directory that all workers share.
"""

from __future__ import annotations

import logging
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
    Variable,
    task,
)
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)

from mondrian_ops.task_groups import anonymize_each

DEFAULTS = {
    "landing": "data/landing",
    "jobs": "include/jobs",
    "releases": "out/nightly",
    "lookback_days": "7",
    "settle_minutes": "10",
}
DROP = Asset("mondrian_drop")
PATIENCE = timedelta(days=4)  # an approval takes three by default


# One at a time, so that two runs never take the same drop.
@task(inlets=[DROP], max_active_tis_per_dag=1, retries=2, retry_delay=timedelta(seconds=10))
def find_drops(**context: Any) -> list[dict[str, Any]]:
    """The jobs of the drops that this run takes, the oldest first."""
    from mondrian_ops import storage
    from mondrian_ops.hooks.settings import use_settings
    from mondrian_ops.nightly.acceptance import accept_changes
    from mondrian_ops.nightly.claims import AirflowClaims
    from mondrian_ops.nightly.landing import read_landing
    from mondrian_ops.nightly.night import Night, Request
    from mondrian_ops.nightly.series import SeriesOfJobs
    from mondrian_ops.operators.base import final_errors

    with final_errors():
        use_settings()
        landing, releases = place("landing"), place("releases")
        if landing == storage.resolved(DEFAULTS["landing"]):
            Path(landing).mkdir(parents=True, exist_ok=True)
        accept_changes(context["params"].get("accept") or (), context["dag_run"], releases)
        events = [event for asset in context["triggering_asset_events"].values() for event in asset]
        request = Request.of(
            context["dag_run"],
            context["params"].get("day"),
            [event.extra for event in events],
            whole("lookback_days", least=1),
        )
        settle = timedelta(minutes=whole("settle_minutes", least=0))
        claims, series = AirflowClaims(context, DROP), SeriesOfJobs(Path(place("jobs")))
        night = Night(request, releases, claims, series, settle)
        night.sort_out(read_landing(landing))
    for name, (state, reason) in sorted(night.states.items()):
        level = logging.WARNING if state == "overdue" else logging.INFO
        logging.getLogger(__name__).log(level, "%s: %s: %s", name, state, reason)
    if night.is_blocked:  # it was asked for, so that no later night would take it
        try_again([f"{name}: {why}" for name, (state, why) in night.states.items()
                   if state == "held"], context)  # fmt: skip
    context["ti"].xcom_push(key="drops", value=night.summary())
    if not night.taken:
        raise AirflowSkipException("no drop to take; the lines above tell why")
    return [drop.job(Path(place("jobs")), releases) for drop in night.taken]


@task(trigger_rule=TriggerRule.ALL_DONE)
def overdue_drops(**context: Any) -> None:
    """Fail if a drop is older than the look-back and has no release."""
    drops = context["ti"].xcom_pull(task_ids="find_drops", key="drops") or {}
    if overdue := drops.get("overdue"):
        raise AirflowFailException(
            f"no release of {', '.join(overdue)}; the log of find_drops tells what to do"
        )


@task(outlets=[DROP], trigger_rule=TriggerRule.ALL_DONE)
def next_drops(**context: Any) -> None:
    """Start a run for the drops of series that this run has left."""
    drops = context["ti"].xcom_pull(task_ids="find_drops", key="drops") or {}
    if not drops.get("left"):
        raise AirflowSkipException("this run has left no drop of a series")
    context["outlet_events"][DROP].extra = {"drops": drops["left"]}


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


def setting(name: str) -> str:
    """A value of the table above."""
    return str(Variable.get(f"mondrian_ops_{name}", default=DEFAULTS[name]))


def place(name: str) -> str:
    """A location of the table above; a relative path starts at `[mondrian_ops] home`."""
    from mondrian_ops import storage

    return storage.resolved(setting(name))


def whole(name: str, least: int) -> int:
    """A number of the table above."""
    from mondrian_ops.core.errors import JobError
    from mondrian_ops.operators.base import whole_of

    number = whole_of(f"the Variable mondrian_ops_{name}", setting(name))
    if number is None or number < least:
        raise JobError(f"the Variable mondrian_ops_{name}: must be at least {least}")
    return number


with DAG(
    dag_id="mondrian_nightly",
    dag_display_name="Mondrian: nightly",
    description="Anonymize each drop that has no release yet, and publish an Asset per release",
    doc_md=__doc__,
    schedule=AssetOrTimeSchedule(
        timetable=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"), assets=[DROP]
    ),
    start_date=datetime(2025, 1, 1),
    catchup=False,  # the next night looks back
    max_active_runs=100,  # a run whose release waits for an approval must not stop the nights
    params={
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
    },
    tags=["mondrian_ops", "privacy"],
) as dag:
    drops = find_drops()
    drops >> overdue_drops()
    anonymize_each(drops, asset=AssetAlias("mondrian_nightly_release")) >> next_drops()
