"""The DAG mondrian_frontier in a real Airflow: a process per point of the grid."""

from __future__ import annotations

import csv
import json

import pytest

from dag_runs import states, tries

pytestmark = pytest.mark.airflow


def asked(project, name, **changed):
    """What the trigger form says."""
    return {
        "input": str(project.root / "include" / "examples" / "people.csv"),
        "output": str(project.output(name)),
        "quasi_identifiers": ["age", "sex", "zip=prefix", "country=hierarchy:countries.csv"],
        "sensitive": ["diagnosis"],
        "cut": "median",
        "k": ["5", "50", "3000"],
        "l": ["1", "2"],
        **changed,
    }


@pytest.fixture(scope="module")
def runs(project):
    """All runs, started together; run id by name."""
    large = project.root / "large.csv"
    people = (project.root / "include" / "examples" / "people.csv").read_text().splitlines()
    large.write_text("\n".join([people[0], *people[1:] * 20]) + "\n")
    forms = {
        "all_rows": asked(project, "all_rows"),
        "drawn": asked(project, "drawn", input=str(large), k=["5", "20"], l=["1"], rows=10_000),
        "senseless": asked(project, "senseless", k=["1"]),
    }
    return {
        name: project.airflow.trigger("mondrian_frontier", form) for name, form in forms.items()
    }


@pytest.fixture
def over(project, runs):
    """Wait for a run; its state and its task instances."""

    def wait(name):
        state = project.airflow.finish("mondrian_frontier", runs[name])
        return state, project.airflow.tasks("mondrian_frontier", runs[name])

    return wait


def table(project, name):
    """The points in the CSV file."""
    with (project.output(name) / "frontier.csv").open() as file:
        return list(csv.DictReader(file))


def test_every_point_of_the_grid_is_a_task_named_after_it(project, over):
    state, tasks = over("all_rows")
    assert state == "success"
    assert states(tasks) == {
        ("sample", "success"): 1,
        ("point", "success"): 6,
        ("frontier", "success"): 1,
        ("clean_up", "success"): 1,
    }
    names = {each["rendered_map_index"] for each in tasks if each["task_id"] == "point"}
    assert names == {f"k = {k}, l = {l}" for k in (5, 50, 3000) for l in (1, 2)}  # noqa: E741
    files = sorted(each.name for each in project.output("all_rows").iterdir())
    assert files == ["frontier.csv", "frontier.html", "frontier.svg"]
    assert project.leftovers("all_rows") == []


def test_a_point_that_cannot_be_had_fails_nothing(project, over):
    over("all_rows")
    found = {(row["k"], row["l"]): row for row in table(project, "all_rows")}
    assert [key for key, row in found.items() if row["attainable"] == "0"] == [
        *(("3000", "1"), ("3000", "2")),
    ]
    assert float(found["5", "1"]["GCP"]) < float(found["50", "1"]["GCP"])
    assert float(found["50", "2"]["risk_max"]) <= 1 / 50


def test_points_share_what_was_drawn_and_nothing_of_it_stays(project, over):
    state, _tasks = over("drawn")
    assert state == "success"
    rows = table(project, "drawn")
    assert len(rows) == 2
    assert all(int(row["measured_rows"]) < int(row["rows"]) == 40_000 for row in rows)
    assert project.leftovers("drawn") == []


def test_a_grid_that_makes_no_sense_fails_at_once_and_for_good(project, over, runs):
    state, tasks = over("senseless")
    assert state == "failed"
    assert tries(tasks)["sample"] == 1
    assert states(tasks)["clean_up", "failed"] == 1
    assert not project.output("senseless").exists()
    assert project.leftovers("senseless") == []
    (sample,) = [each for each in tasks if each["task_id"] == "sample"]
    log = project.airflow.log_of("mondrian_frontier", runs["senseless"], sample)
    assert "hides nobody" in log


def test_no_value_of_a_person_is_logged_or_handed_on(project, over, runs):
    over("all_rows")
    with (project.root / "include" / "examples" / "people.csv").open() as file:
        people = list(csv.DictReader(file))
    values = {row[column] for row in people for column in ("name", "zip", "country")} - {""}
    run_id = runs["all_rows"]
    logs = project.root / "airflow" / "logs" / "dag_id=mondrian_frontier" / f"run_id={run_id}"
    written = "".join(path.read_text() for path in logs.rglob("*.log"))
    assert "lost (GCP)" in written
    path = f"/api/v2/dags/mondrian_frontier/dagRuns/{run_id}/taskInstances"
    handed_on = [
        project.airflow.request("GET", f"{path}/{task_id}/xcomEntries/return_value?map_index={at}")
        for task_id, at in [("sample", -1), ("point", 0), ("frontier", -1)]
    ]
    told = (
        " ".join(json.dumps(each["value"]) for each in handed_on)
        + (project.output("all_rows") / "frontier.html").read_text()
    )
    assert not [value for value in values if f'"{value}"' in told or f">{value}<" in told]
    assert not [row["name"] for row in people if row["name"] in written + told]
