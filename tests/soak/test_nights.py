"""Many nights through ``mondrian_nightly``, in a real Airflow, one after the other.

The nights are one backfill: a run for each, on its own date, a few of them at a time. Whatever a
night finds, it ends as it should and leaves nothing behind but its release.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dag_runs import states, tries
from mondrian_ops import pipeline
from projects import Project
from soak import outside
from soak.disk import State, check_catalogue, state
from soak.drops import NIGHTS, ROLES, Drop, drops, job_of
from soak.resource_probes import Usage, growth, long_lived, print_usage, usage_of

pytestmark = [pytest.mark.soak, pytest.mark.airflow]

AT_ONCE = 3
DAG = "mondrian_nightly"
JOB = {**ROLES, "partitioning": {"fragments": 4}, "replace": "any"}  # earlier ones are by hand
HOURS = 3
DROPS = drops(NIGHTS)
FLAT_OF_AIRFLOW = Usage(memory=32, files=8, threads=8, mappings=100)
"""What a process of Airflow may gather over all nights after the warm-up; its pools breathe."""


@dataclass
class Nights:
    """What was seen of the nights as each of them was over."""

    drops: dict[str, Drop] = field(default_factory=dict)
    runs: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    seen: dict[str, outside.Seen] = field(default_factory=dict)
    before: dict[str, State] = field(default_factory=dict)
    standing: dict[str, State] = field(default_factory=dict)
    left: dict[str, list[str]] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    held: dict[str, list[Usage]] = field(default_factory=dict)
    seconds: float = 0.0


@pytest.fixture(scope="module")
def nights(project: Project) -> Nights:
    """All of them, from the first to the last."""
    landing = project.root / "landing" / "people"
    (project.root / "include" / "jobs" / "people.yaml").write_text(json.dumps(JOB))
    found = Nights(drops={str(drop.day): drop for drop in DROPS})
    files = {day: drop.write(landing) for day, drop in found.drops.items()}
    found.before = _published_before(project)
    processes = long_lived(project.airflow)
    began = time.monotonic()
    for day, run in _over(project):
        found.runs[day] = run
        found.tasks[day] = project.airflow.tasks(DAG, run["dag_run_id"])
        found.left[day] = _left(project, day)
        found.said[day] = _said(project, run, found.tasks[day])
        release = _releases(project) / day
        found.standing[day] = state(release)
        if found.drops[day].good:
            found.seen[day] = outside.check(release, files[day])
        for name, process in processes.items():
            found.held.setdefault(name, []).append(usage_of(process))
    found.seconds = time.monotonic() - began
    return found


def _published_before(project: Project) -> dict[str, State]:
    """Of half of the days an earlier delivery has been published; its releases, by day."""
    one = project.root / "out" / "earlier"
    earlier = Drop(0, "Parquet", 100)
    pipeline.run(pipeline.load_job(job_of(earlier.write(project.root / "earlier"), one)))
    days = [str(drop.day) for drop in DROPS if drop.number % 4 < 2]
    for day in days:
        shutil.copytree(one, _releases(project) / day)
    shutil.rmtree(one)
    return {day: state(_releases(project) / day) for day in days}


def _over(project: Project) -> Iterator[tuple[str, dict[str, Any]]]:
    """Start the nights; each by its day when it is over, those that are over together by day."""
    airflow = project.airflow
    airflow.unpause(DAG)
    body = {
        "dag_id": DAG,
        "from_date": f"{DROPS[0].day}T00:00:00Z",
        "to_date": f"{DROPS[-1].day}T00:00:00Z",
        "max_active_runs": AT_ONCE,
    }
    airflow.request("POST", "/api/v2/backfills", body)
    known: set[str] = set()
    end = time.monotonic() + HOURS * 3600
    while len(known) < NIGHTS:
        assert time.monotonic() < end, f"{len(known)} nights in {HOURS} hours"
        airflow.check_alive()
        for run in _runs(project):
            day = run["data_interval_start"][:10]
            # Unpaused, the DAG also has a run of its own for yesterday.
            if run["run_type"] == "backfill" and day not in known:
                known.add(day)
                yield day, run
        time.sleep(1)


def _runs(project: Project) -> list[dict[str, Any]]:
    """The runs that were over last."""
    path = f"/api/v2/dags/{DAG}/dagRuns?state=success&state=failed&order_by=-end_date&limit=100"
    found: list[dict[str, Any]] = project.airflow.request("GET", path)["dag_runs"]
    return found


def _releases(project: Project) -> Path:
    return project.root / "out" / "nightly" / "people"


def _left(project: Project, day: str) -> list[str]:
    """What lies beside the release of a day and is of its run."""
    return [path.name for path in _releases(project).glob(f".{day}*")]


def _said(project: Project, run: dict[str, Any], tasks: Sequence[dict[str, Any]]) -> str:
    """What the log of a ``partition`` task that failed says."""
    failed = [each for each in tasks if (each["task_id"], each["state"]) == ("partition", "failed")]
    return "".join(project.airflow.log_of(DAG, run["dag_run_id"], each) for each in failed)


@pytest.mark.parametrize("drop", DROPS, ids=lambda drop: f"{drop.day}-{drop.kind}")
def test_a_night_ends_as_its_drop_demands(nights: Nights, drop: Drop) -> None:
    """A drop that is broken fails at once, for good, and says why; the rest never fails."""
    day = str(drop.day)
    ended = states(nights.tasks[day])
    assert {task for task, most in tries(nights.tasks[day]).items() if most > 1} == set()
    fails = not drop.good and drop.kind != "no drop"
    assert ended["clean_up", "failed" if fails else "success"] == 1
    if drop.kind == "no drop":
        assert ended["find_drops", "skipped"] == 1
    elif drop.good:
        assert ended["wrap_up", "success"] == 1
        assert nights.seen[day].rows == drop.rows
    else:
        assert ended["partition", "failed"] == 1
        assert drop.says in nights.said[day]
    assert nights.runs[day]["state"] == ("failed" if fails else "success")


@pytest.mark.parametrize("drop", DROPS, ids=lambda drop: f"{drop.day}-{drop.kind}")
def test_what_was_published_before_stands_unless_it_is_replaced(nights: Nights, drop: Drop) -> None:
    day = str(drop.day)
    before = nights.before.get(day, {})
    assert (nights.standing[day] != before) == drop.good


def test_nothing_was_left_when_a_night_was_over(nights: Nights) -> None:
    assert {day: names for day, names in nights.left.items() if names} == {}


def test_no_night_touches_the_release_of_another(project: Project, nights: Nights) -> None:
    """And there is nothing beside the releases."""
    now = {path.name: state(path) for path in _releases(project).iterdir()}
    assert now == {day: files for day, files in nights.standing.items() if files}
    assert [path.name for path in _releases(project).parent.iterdir()] == ["people"]


def test_no_temporary_file_is_left(project: Project, nights: Nights) -> None:
    assert nights.runs
    assert list((project.root / "tmp").iterdir()) == []


def test_the_catalogue_grows_by_a_report_a_night(project: Project, nights: Nights) -> None:
    recorded = sum(drop.kind != "no drop" for drop in DROPS)
    path = project.root / "airflow" / "mondrian_ops" / "catalogue.db"
    check_catalogue(path, sum(drop.good for drop in DROPS), recorded)


def test_what_lives_on_gathers_nothing(nights: Nights) -> None:
    print_usage(f"{NIGHTS} nights in {nights.seconds:.0f} s", nights.held)
    for name, readings in nights.held.items():
        grown = growth(readings)
        assert grown.memory < FLAT_OF_AIRFLOW.memory, (name, grown)
        assert grown.files < FLAT_OF_AIRFLOW.files, (name, grown)
        assert grown.threads < FLAT_OF_AIRFLOW.threads, (name, grown)
        assert grown.mappings < FLAT_OF_AIRFLOW.mappings, (name, grown)
