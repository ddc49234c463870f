"""Anonymize the drops of the day, every night.

A drop is `LANDING/DATASET/2025-06-01.parquet` (or `.csv`; several files whose names start with the
same day are one drop). Its job is `JOBS/DATASET.yaml`, without `input` and `output`; its release is
`RELEASES/DATASET/2025-06-01`, which becomes an Asset. A drop that fails does not affect the others.
A day without drops is skipped. A second run for a day replaces the day's releases.

To repeat a failed day, clear the whole run, because the working files of its tasks are gone.

| | Airflow Variable | default |
|---|---|---|
| LANDING | `mondrian_ops_landing` | `data/landing` |
| JOBS | `mondrian_ops_jobs` | `include/jobs` |
| RELEASES | `mondrian_ops_releases` | `out/nightly` |

LANDING and RELEASES may be URLs (`hdfs://`, `s3://`); JOBS is a directory that all workers share.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, AssetAlias, CronDataIntervalTimetable, Param, Variable, task
from airflow.sdk.exceptions import AirflowSkipException

from mondrian_ops.task_groups import anonymize_each

DEFAULTS = {
    "landing": "data/landing",
    "jobs": "include/jobs",
    "releases": "out/nightly",
}


@task
def find_drops(
    params: dict[str, Any] | None = None,
    data_interval_start: datetime | None = None,
    data_interval_end: datetime | None = None,
) -> list[dict[str, Any]]:
    """The jobs of the drops of the data interval, or of the ``day`` in the form."""
    from mondrian_ops import nightly_drops, storage
    from mondrian_ops.hooks.settings import use_settings

    use_settings()
    first, last = days((params or {}).get("day"), data_interval_start, data_interval_end)
    folder = place("landing")
    if folder == storage.resolved(DEFAULTS["landing"]):
        Path(folder).mkdir(parents=True, exist_ok=True)
    drops = nightly_drops.find_drops(folder, first, last)
    if not drops:
        raise AirflowSkipException(f"{folder}: no drops from {first} to {last}")
    return [drop.job(Path(place("jobs")), place("releases")) for drop in drops]


def days(day: str | None, start: datetime | None, end: datetime | None) -> tuple[date, date]:
    """The first and the last day to look for."""
    if day:
        return date.fromisoformat(day), date.fromisoformat(day)
    if start is None or end is None:
        raise ValueError("this run has no data interval; trigger it with a day or a logical date")
    return start.date(), max(start.date(), (end - timedelta(microseconds=1)).date())


def place(name: str) -> str:
    """A location of the table above; a relative path starts at `[mondrian_ops] home`."""
    from mondrian_ops import storage

    return storage.resolved(Variable.get(f"mondrian_ops_{name}", default=DEFAULTS[name]))


with DAG(
    dag_id="mondrian_nightly",
    dag_display_name="Mondrian: nightly",
    description="Anonymize the drops of the day and publish an Asset per release",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2025, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={
        "day": Param(
            None,
            type=["null", "string"],
            format="date",
            title="Day",
            description_md="Anonymize the drops of this day. "
            "Empty: those of the run's data interval.",
        )
    },
    tags=["mondrian_ops", "privacy"],
) as dag:
    anonymize_each(find_drops(), asset=AssetAlias("mondrian_nightly_release"))
