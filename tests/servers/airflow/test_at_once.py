"""Many runs at once against one scheduler, two of them to one output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dag_runs import form, tries
from projects import Project
from soak import outside
from soak.drops import Drop, drops, job_of
from soak.resource_probes import Usage, long_lived, print_usage, usage_of

pytestmark = pytest.mark.airflow

DAG = "mondrian_anonymize"
LATE = "another run has published to"
"""What a run says that was overtaken by another to the same output."""


@dataclass(frozen=True)
class Run:
    """A run that is over."""

    name: str
    drop: Drop
    files: Sequence[Path]
    run: dict[str, Any]
    tasks: list[dict[str, Any]]
    said: str

    @property
    def state(self) -> str:
        """How it ended."""
        return str(self.run["state"])


@pytest.fixture(scope="module", params=[3, pytest.param(20, marks=pytest.mark.soak)])
def runs(request: pytest.FixtureRequest, project: Project) -> list[Run]:
    """Start them all, the first drop's twice with one output, and wait for them all."""
    number: int = request.param
    good = [drop for drop in drops(2 * number, seed=1) if drop.good][: number - 1]
    airflow = project.airflow
    airflow.pause(DAG)
    started = [_started(project, number, drop) for drop in (good[0], *good)]
    airflow.unpause(DAG)
    processes = long_lived(airflow)
    readings: dict[str, list[Usage]] = {name: [] for name in processes}
    found = []
    for name, drop, files, run_id in started:
        for _tasks in airflow.watch(DAG, run_id, timeout=3600):
            for each, process in processes.items():
                readings[each].append(usage_of(process))
        run, tasks = airflow.run(DAG, run_id), airflow.tasks(DAG, run_id)
        failed = [task for task in tasks if task["state"] == "failed"]
        said = "".join(airflow.log_of(DAG, run_id, task) for task in failed)
        found.append(Run(name, drop, files, run, tasks, said))
    print_usage(f"{number} runs, {_most(found)} at once", readings)
    return found


def _started(project: Project, number: int, drop: Drop) -> tuple[str, Drop, Sequence[Path], str]:
    name = f"at_once_{number}_{drop.number}"
    folder = project.root / name
    files = sorted(folder.glob("*")) or drop.write(folder)
    job = job_of(files, project.output(name))
    del job["partitioning"]
    return name, drop, files, project.airflow.queue(DAG, form(job, fragments=2))


def _most(runs: Sequence[Run]) -> int:
    """How many ran at once, at most."""
    spans = [(run.run["start_date"], run.run["end_date"]) for run in runs]
    return max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)


def alone(runs: Sequence[Run]) -> Iterator[Run]:
    """Those with an output of their own."""
    return (run for run in runs if run.name != runs[0].name)


def test_all_that_have_an_output_of_their_own_publish(project: Project, runs: list[Run]) -> None:
    assert {run.name: run.said for run in alone(runs) if run.state != "success"} == {}
    for run in alone(runs):
        assert outside.check(project.output(run.name), run.files).rows == run.drop.rows


def test_of_two_with_one_output_one_may_be_overtaken(project: Project, runs: list[Run]) -> None:
    two = [run for run in runs if run.name == runs[0].name]
    assert len(two) == 2
    late = [run for run in two if run.state == "failed"]
    assert len(late) < 2
    assert all(LATE in run.said for run in late)
    assert outside.check(project.output(two[0].name), two[0].files).rows == two[0].drop.rows


def test_no_task_was_tried_twice(runs: list[Run]) -> None:
    again = {run.name: tries(run.tasks) for run in runs if max(tries(run.tasks).values()) > 1}
    assert again == {}


def test_nothing_is_left_but_the_releases(project: Project, runs: list[Run]) -> None:
    kept = Counter(run.name for run in runs if run.state == "failed")  # for a repair
    assert {run.name: len(project.leftovers(run.name)) for run in runs} == {
        run.name: kept[run.name] for run in runs
    }
