"""The figures of a release as Airflow metrics: StatsD, Datadog or OpenTelemetry.

Each figure has one name, and the DAG, the task and the dataset as tags. StatsD has no tags: as
Airflow does with its own metrics, each figure is also sent under a name that contains them, unless
``[metrics] legacy_names_on`` is off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import conf

from mondrian_ops.stores.dataset_name import dataset_name

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.job.job import Job

_IN_NAMES = ("dag_id", "dataset")


def count_release(context: Context, job: Job, state: str) -> None:
    """Count a release by its state."""
    from airflow.sdk.observability import stats

    tags = _tags(context, job)
    stats.incr("mondrian_ops.releases", tags={**tags, "state": state})
    if _names_hold_tags():
        stats.incr(f"{_prefix(tags)}.releases.{state}")


def send_figures(context: Context, job: Job, report: Mapping[str, Any]) -> None:
    """Send the figures of a release."""
    from airflow.sdk.observability import stats

    tags = _tags(context, job)
    prefixes: dict[str, dict[str, str] | None] = {"mondrian_ops": tags}
    if _names_hold_tags():
        prefixes[_prefix(tags)] = None
    for prefix, given in prefixes.items():
        for name, figure in _figures(report):
            stats.gauge(f"{prefix}.{name}", figure, tags=given)
        for phase, seconds in report["timings_s"].items():
            stats.timing(f"{prefix}.duration.{phase}", seconds * 1000, tags=given)


def _figures(report: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name in ("GCP", "NCP", "LM", "DP"):
        yield name.lower(), report["metrics"][name]
    for name in ("prosecutor_max", "prosecutor_avg"):
        yield f"risk.{name}", report["risk"][name]
    for name, rows in report["rows"].items():
        yield f"rows.{name}", rows
    yield "equivalence_classes", report["equivalence_classes"]
    for name, reached in report["achieved"].items():
        if isinstance(reached, int | float):
            yield f"achieved.{name}", reached


def _tags(context: Context, job: Job) -> dict[str, str]:
    from airflow.sdk.observability import stats

    dataset = stats.normalize_name_for_stats(_dataset(job), log_warning=False)
    return {**context["ti"].stats_tags, "dataset": dataset}


def _dataset(job: Job) -> str:
    """The name of the dataset that is released again and again: the output's, without its date."""
    parts = [part for part in re.split(r"[/\\]", dataset_name(str(job.output))) if part]
    named = [part.replace("*", "").strip("-_. ") for part in parts]
    # `day=2025-06-01` leaves `day=`, which is no name.
    return ([part for part in named if part and not part.endswith("=")] or parts)[-1]


def _prefix(tags: Mapping[str, str]) -> str:
    return ".".join(["mondrian_ops", *(tags[name].replace(".", "__") for name in _IN_NAMES)])


def _names_hold_tags() -> bool:
    return conf.getboolean("metrics", "legacy_names_on", fallback=True)
