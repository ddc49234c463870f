"""The nightly DAG over a week in a real Airflow: what it takes, leaves, asks about and tells.

The nights follow one another by their logical dates. A backfill, and a run that an event starts,
are about datasets of their own and run beside them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dag_runs import parked, published, states
from projects import Project

pytestmark = pytest.mark.airflow

DAG = "mondrian_nightly"
DATASETS = ("wards", "clinics", "labs", "archive")
JOB = {"k": 2, "quasi_identifiers": ["age"], "partitioning": {"fragments": 1}, "unlisted": "drop"}
ROWS = 50


@dataclass
class Week:
    """The project with a landing folder of its own datasets, and the runs of its nights."""

    project: Project
    runs: dict[str, str] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)

    @property
    def landing(self) -> Path:
        return self.project.root / "landing"

    @property
    def releases(self) -> Path:
        return self.project.root / "out" / "nightly"

    def deliver(self, *names: str, rows: int = ROWS) -> None:
        for name in names:
            path = self.landing / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("age\n" + "".join(f"{20 + row % 10}\n" for row in range(rows)))

    def request(self, method: str, path: str, body: Any = None) -> Any:
        return self.project.airflow.request(method, f"/api/v2/{path}", body)

    def night(self, name: str, last: str) -> str:
        """Start the night that looks back from a day on."""
        end = f"{last[:8]}{int(last[8:]) + 1:02}"
        self.runs[name] = self.project.airflow.trigger(DAG, logical_date=f"{end}T00:00:00Z")
        return self.runs[name]

    def over(self, run_id: str) -> tuple[str, Any]:
        """Wait for a run; its state, and how many of its tasks ended how."""
        state = self.project.airflow.finish(DAG, run_id)
        return state, states(self.project.airflow.tasks(DAG, run_id))

    def drops(self, run_id: str) -> dict[str, list[str]]:
        """What a run says of the drops of this module, by their state."""
        path = f"dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances/find_drops/xcomEntries/drops"
        value = self.request("GET", path)["value"]
        told = json.loads(value) if isinstance(value, str) else value
        own = {
            state: [name for name in names if name.partition("/")[0] in DATASETS]
            for state, names in told.items()
        }
        return {state: names for state, names in own.items() if names}

    def waits(self, run_id: str) -> int:
        """Wait until one release of a run waits; its map index."""
        for tasks in self.project.airflow.watch(DAG, run_id):
            waiting = [each for each in tasks if each["state"] == "awaiting_input"]
            others = [
                each for each in tasks if each["task_id"] == "wrap_up" and each not in waiting
            ]
            if waiting and all(each["state"] == "success" for each in others):
                (task,) = waiting
                return int(task["map_index"])
        pytest.fail("the run is over, and no release waited")

    def answer(self, run_id: str, option: str) -> None:
        index = self.waits(run_id)
        parked(self.project.airflow, DAG, run_id, map_index=index)
        path = f"dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances/wrap_up/{index}/hitlDetails"
        self.request("PATCH", path, {"chosen_options": [option], "params_input": {}})

    def rows(self, name: str) -> int:
        return published(self.releases / name)


@pytest.fixture(scope="module")
def week(project: Project) -> Iterator[Week]:
    """All nights; what can be seen only while they run is asserted here."""
    week = Week(project)
    for dataset in DATASETS:
        job = {**JOB, "require_approval": True} if dataset == "wards" else JOB
        (project.root / "include" / "jobs" / f"{dataset}.yaml").write_text(json.dumps(job))
    project.airflow.unpause(DAG)
    for run_type in ("backfill", "asset_triggered"):
        week.before += _runs(week, run_type)
    week.deliver("archive/2025-03-20.csv", "archive/2025-03-21.csv", "labs/2025-03-25.csv")
    _backfill(week)
    _announce(week, "labs/2025-03-25")

    # The first night finds a drop of the day before, which was late, and one that still grows.
    week.deliver("wards/2025-03-01.csv", "clinics/2025-03-01.csv")
    week.deliver("clinics/2025-03-02/part-0.csv")
    first = week.night("first", "2025-03-02")
    week.waits(first)

    # Meanwhile the next night runs on, though a release of the first still waits.
    week.deliver("clinics/2025-03-02/_SUCCESS", "clinics/2025-03-03.csv", "wards/2025-03-03.csv")
    second = week.night("second", "2025-03-03")
    assert week.over(second)[0] == "success"
    assert project.airflow.run(DAG, first)["state"] == "running"
    assert not (week.releases / "wards" / "2025-03-01").exists()
    week.answer(first, "Approve")
    week.over(first)

    # Three nights do not run, a drop is delivered again, and one is found that nobody saw.
    days = ("04", "05", "06")
    week.deliver(*(f"clinics/2025-03-{day}.csv" for day in days), "labs/2025-01-01.csv")
    week.deliver("clinics/2025-03-01.csv", rows=ROWS + 10)
    third = week.night("third", "2025-03-07")
    week.answer(third, "Reject")
    week.over(third)
    fourth = week.night("fourth", "2025-03-08")
    week.over(fourth)
    yield week
    for dataset in DATASETS:
        shutil.rmtree(week.landing / dataset)


def _backfill(week: Week) -> None:
    body = {
        "dag_id": DAG,
        "from_date": "2025-03-20T00:00:00Z",
        "to_date": "2025-03-21T00:00:00Z",
        "max_active_runs": 2,
    }
    week.request("POST", "backfills", body)


def _announce(week: Week, drop: str) -> None:
    (asset,) = week.request("GET", "assets?name_pattern=mondrian_drop")["assets"]
    week.request("POST", "assets/events", {"asset_id": asset["id"], "extra": {"drop": drop}})


def _runs(week: Week, run_type: str) -> list[str]:
    """The runs of this module; those of a series run in the same Airflow."""
    found = week.request("GET", f"dags/{DAG}/dagRuns?limit=100")["dag_runs"]
    runs = [run["dag_run_id"] for run in found if run["run_type"] == run_type]
    return [run for run in runs if run not in week.before]


def test_a_late_drop_is_taken_and_a_growing_one_is_left_to_the_next_night(week: Week) -> None:
    assert week.drops(week.runs["first"]) == {
        "incomplete": ["clinics/2025-03-02"],
        "missing": ["wards/2025-03-02"],
        "taken": ["clinics/2025-03-01", "wards/2025-03-01"],
        "dated in the future": [
            "archive/2025-03-20",
            "archive/2025-03-21",
            "labs/2025-03-25",
        ],
    }
    assert week.rows("clinics/2025-03-02") == ROWS


def test_an_approval_that_takes_two_nights_holds_its_own_dataset_only(week: Week) -> None:
    drops = week.drops(week.runs["second"])
    assert drops["held"] == ["wards/2025-03-01", "wards/2025-03-03"]
    assert drops["taken"] == ["clinics/2025-03-02", "clinics/2025-03-03"]
    assert week.rows("wards/2025-03-01") == ROWS


def test_after_an_outage_no_drop_is_lost(week: Week) -> None:
    state, tasks = week.over(week.runs["third"])
    drops = week.drops(week.runs["third"])
    assert drops["taken"] == [
        "clinics/2025-03-01",
        "clinics/2025-03-04",
        "clinics/2025-03-05",
        "clinics/2025-03-06",
        "wards/2025-03-03",
    ]
    assert week.rows("clinics/2025-03-01") == ROWS + 10  # it was delivered again
    assert week.rows("clinics/2025-03-06") == ROWS
    assert drops["overdue"] == ["labs/2025-01-01"]
    assert tasks["overdue_drops", "failed"] == 1
    assert (state, tasks["wrap_up", "success"]) == ("failed", 4)


def test_what_was_rejected_is_not_asked_about_again(week: Week) -> None:
    drops = week.drops(week.runs["fourth"])
    assert drops["rejected"] == ["wards/2025-03-03"]
    assert "taken" not in drops
    assert not (week.releases / "wards" / "2025-03-03").exists()


def test_a_backfill_takes_the_drops_of_its_days(week: Week) -> None:
    runs = _runs(week, "backfill")
    assert {week.over(run)[0] for run in runs} == {"success"}
    taken = sorted(week.drops(run)["taken"] for run in runs)
    assert taken == [["archive/2025-03-20"], ["archive/2025-03-21"]]
    assert week.rows("archive/2025-03-20") == week.rows("archive/2025-03-21") == ROWS


def test_an_event_starts_a_run_for_the_drop_that_it_names(week: Week) -> None:
    (run,) = _runs(week, "asset_triggered")
    assert week.over(run)[0] == "success"
    assert week.drops(run) == {"taken": ["labs/2025-03-25"]}
    assert week.rows("labs/2025-03-25") == ROWS


def test_a_dataset_of_a_folder_of_jobs_has_a_dag_and_an_asset_of_its_own(project):
    root, airflow = project.root, project.airflow
    drop = root / "landing_apart" / "visits" / "2025-03-01.csv"
    drop.parent.mkdir(parents=True)
    drop.write_text("age\n" + "".join(f"{20 + row % 10}\n" for row in range(ROWS)))
    other = root / "landing_apart" / "labs" / "2025-03-01.csv"
    other.parent.mkdir()
    other.write_text("no job")
    run_id = airflow.trigger("mondrian_visits", logical_date="2025-03-02T00:00:00Z")
    assert airflow.finish("mondrian_visits", run_id) == "success"
    assert published(root / "out" / "apart" / "visits" / "2025-03-01") == ROWS
    events = airflow.request("GET", "/api/v2/assets/events?source_dag_id=mondrian_visits")
    nights = {
        event["name"]: event["partition_key"]
        for event in events["asset_events"]
        if event["source_task_id"] == "wrap_up"
    }
    assert nights.pop("mondrian_visits") == "2025-03-01"
    (release,) = nights  # by the alias
    assert release.endswith("/out/apart/visits/2025-03-01")
    assert nights[release] is None
