"""A series in the nightly DAG of a real Airflow: five nights.

One of them publishes nothing, one is killed, one comes late, and one is asked for again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dag_runs import states, tries
from nights import Nights
from projects import Project
from servers.processes import wait_until

pytestmark = pytest.mark.airflow

DAG = "mondrian_nightly"


class Visits(Nights):
    """The series ``visits`` of the nightly DAG, in May."""

    def __init__(self, project: Project) -> None:
        series = {"hold_nights": 3, "hold_above": 0.06}
        super().__init__(project.root, series=series, partitioning={"fragments": 1})
        self.airflow = project.airflow
        self.landing = project.root / "landing" / "visits"
        self.releases = project.root / "out" / "nightly" / "visits"
        self.first = ""
        self._before = {run["dag_run_id"] for run in self._runs()}

    @staticmethod
    def date(day: int) -> str:
        return f"2025-05-{day:02}"

    def drop(self, day: int) -> Path:
        return self.landing / f"{self.date(day)}.parquet"

    def trigger(self, last: int, **conf: Any) -> str:
        """Start the night that looks back from a day on."""
        date = f"{self.date(last + 1)}T00:00:00Z"
        return str(self.airflow.trigger(DAG, conf, logical_date=date))

    def nights(self) -> int:
        """How many nights are over with a release."""
        return len(list(self.releases.glob("2025-*/_SUCCESS")))

    def runs(self) -> list[dict[str, Any]]:
        """The runs of the DAG since this module began, but for the night of today."""
        runs = [run for run in self._runs() if run["dag_run_id"] not in self._before]
        return [run for run in runs if run["run_type"] != "scheduled"]

    def _runs(self) -> list[dict[str, Any]]:
        path = f"/api/v2/dags/{DAG}/dagRuns?limit=100"
        runs: list[dict[str, Any]] = self.airflow.request("GET", path)["dag_runs"]
        return runs

    def is_at_work(self) -> bool:
        """Whether a run is not over."""
        return any(run["state"] in ("queued", "running") for run in self.runs())

    def wait_for(self, nights: int) -> None:
        """Wait until so many nights have a release, and no run is at work."""
        wait_until(lambda: self.nights() >= nights and not self.is_at_work(), timeout=600)


@pytest.fixture(scope="module")
def visits(project: Project) -> Iterator[Visits]:
    """The five nights. Their runs follow one another, so that each of them takes its time."""
    visits = Visits(project)
    (project.root / "include" / "jobs" / "visits.yaml").write_text(json.dumps(visits.keys))
    project.airflow.unpause(DAG)
    # Three drops at once, after an outage; the first is too small to be published.
    for day, rows in ((2, 3), (3, 200), (5, 90)):
        visits.deliver(day, rows)
    (project.airflow.home / "kill-one").touch()
    visits.first = visits.trigger(5)
    visits.wait_for(2)
    for day, rows in ((4, 150), (6, 120)):  # the first is late
        visits.deliver(day, rows)
    visits.trigger(6)
    visits.wait_for(4)
    yield visits
    shutil.rmtree(visits.landing)


def test_each_row_is_in_one_release_or_waits(visits: Visits) -> None:
    assert visits.nights() == 4
    assert not visits.output(2).exists()
    visits.check_each_row_once()
    reports = [json.loads(each.read_text()) for each in visits.releases.glob("2025*/_report.json")]
    assert sorted(report["series"]["night"] for report in reports) == list(range(2, 6))
    assert not list(visits.releases.glob(".*.mondrian_ops-*"))


def test_the_night_that_was_killed_is_not_published_twice(visits: Visits) -> None:
    assert not (visits.airflow.home / "kill-one").exists()
    runs = visits.runs()
    tasks = [visits.airflow.tasks(DAG, run["dag_run_id"]) for run in runs]
    assert [tries(each)["wrap_up"] for each in tasks].count(2) == 1
    assert {run["state"] for run in runs} == {"success"}


def test_a_night_without_a_release_succeeds(visits: Visits) -> None:
    told = states(visits.airflow.tasks(DAG, visits.first))
    assert told["wrap_up", "success"] == 1
    assert told["clean_up", "success"] == 1


def test_a_night_that_is_asked_for_again_is_refused_before_its_rows_are_read(
    visits: Visits,
) -> None:
    """It comes last: its run fails."""
    again = visits.trigger(9, day=visits.date(3))
    assert visits.airflow.finish(DAG, again) == "failed"
    told = states(visits.airflow.tasks(DAG, again))
    assert told["partition", "failed"] == 1
    visits.check_each_row_once()
