"""The DAGs in a real Airflow: scheduler, API server, LocalExecutor, a process per task.

The runs of the first wave are started together and looked at one by one; what needs one of them
to be over comes after.
"""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from pathlib import Path

import pytest

from dag_runs import classes, form, nested, published, states, tries

pytestmark = pytest.mark.airflow

DAY = "2025-06-01"
BAD_DAY = "2025-06-05"
MAX_ROWS = 1000
"""So that the fragments of recoded releases, of 2,000 rows, are not merged into one."""


@pytest.fixture(scope="module")
def runs(project):
    """Start the first wave; (DAG id, run id) by name."""
    odd = project.root / "odd.csv"
    people = (project.root / "include" / "examples" / "people.csv").read_text()
    odd.write_text(people.replace('"female"', '"a {{ 1 / 0 }}"'))
    landing = project.root / "landing"
    for name in ("people", "nobody"):
        (landing / name).mkdir(parents=True)
        shutil.copy(
            odd.parent / "include" / "examples" / "people.csv", landing / name / f"{DAY}.csv"
        )

    (landing / "broken").mkdir()
    (landing / "broken" / f"{BAD_DAY}.parquet").write_text("no Parquet")
    jobs = project.root / "include" / "jobs"
    shutil.copy(jobs / "people.yaml", jobs / "broken.yaml")

    def start(dag_id, conf=None, **options):
        return dag_id, project.airflow.trigger(dag_id, conf, **options)

    return {
        "happy": start("mondrian_anonymize", form(project.job("happy"))),
        "odd": start(
            "mondrian_anonymize",
            form(project.job("odd", input=str(odd), quasi_identifiers=["sex", "age"])),
        ),
        "top_down": start(
            "mondrian_anonymize",
            form(
                project.job("top_down", algorithm="tds", cut="auto"),
                tds_partitions=2,
                max_rows=MAX_ROWS,
            ),
        ),
        "impossible": start("mondrian_anonymize", form(project.job("impossible", l=1000))),
        "killed_once": start("killed_once", nested(project.job("killed_once"))),
        "killed_until_cleared": start(
            "killed_until_cleared", nested(project.job("killed_until_cleared"))
        ),
        "timed_out": start("timed_out", nested(project.job("timed_out"))),
        "waits": start("disturbed", nested(project.job("waits", require_approval=True))),
        "killed_partition": start("killed_partition", nested(project.job("killed_partition"))),
        "skipped_group": start("skipped_group", nested(project.job("skipped_group"))),
        "no_parts": start("mapped_first_phase", nested(project.job("no_parts"))),
        **{
            name: start(
                name,
                nested(
                    project.job(name, algorithm="tds", cut="auto", tds={"partitions": 2}),
                    max_rows=MAX_ROWS,
                ),
            )
            for name in ("killed_part", "failing_part")
        },
        "etl": start("mondrian_etl_example"),
        # The run of a night is for the day before it.
        "night": start("mondrian_nightly", logical_date="2025-06-02T00:00:00Z"),
        "bad_night": start("mondrian_nightly", {"day": BAD_DAY}),
        "quiet_night": start("mondrian_nightly", {"day": "2025-01-01"}),
    }


@pytest.fixture
def over(project, runs):
    """Wait for a run of the first wave; its state and its task instances."""

    def wait(name):
        dag_id, run_id = runs[name]
        state = project.airflow.finish(dag_id, run_id)
        return state, project.airflow.tasks(dag_id, run_id)

    return wait


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder, by what is in it."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_run_publishes_a_release(project, over):
    state, tasks = over("happy")
    assert state == "success"
    assert states(tasks) == {
        ("partition", "success"): 1,
        ("anonymize_fragment", "success"): 3,
        ("wrap_up", "success"): 1,
        ("clean_up", "success"): 1,
    }
    assert published(project.output("happy")) == 2000
    assert min(classes(project.output("happy")).values()) >= 5
    assert project.leftovers("happy") == []


def test_columns_can_be_recoded_as_a_whole(project, over):
    state, _tasks = over("top_down")
    assert state == "success"
    report = json.loads((project.output("top_down") / "_report.json").read_text())
    assert published(project.output("top_down")) == 2000
    assert min(classes(project.output("top_down")).values()) >= 5
    assert report["recoding"]["summary"]
    assert len(report["fragments"]) > 1


def test_fragments_are_named_in_the_grid(over):
    _state, tasks = over("happy")
    names = [
        each["rendered_map_index"] for each in tasks if each["task_id"] == "anonymize_fragment"
    ]
    assert sorted(name[:3] for name in names) == ["0: ", "1: ", "2: "]
    assert all(len(name) > 3 for name in names)


def test_the_release_becomes_an_asset(project, over):
    over("happy")
    events = project.airflow.request("GET", "/api/v2/assets/events?limit=100")["asset_events"]
    uri = project.output("happy").as_uri()
    (event,) = [each for each in events if each["uri"] == uri]
    assert event["extra"]["achieved"]["k"] >= 5


def test_no_name_of_a_person_is_logged_or_handed_on(project, over, runs):
    over("happy")
    dag_id, run_id = runs["happy"]
    with (project.root / "include" / "examples" / "people.csv").open() as file:
        names = {row["name"] for row in csv.DictReader(file)}
    logs = project.root / "airflow" / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}"
    written = "".join(path.read_text() for path in logs.rglob("*.log"))
    assert "published" in written
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
    handed_on = [
        project.airflow.request("GET", f"{path}/{task_id}/xcomEntries/return_value?map_index={at}")
        for task_id, at in [("partition", -1), ("anonymize_fragment", 0), ("wrap_up", -1)]
    ]
    everything = written + json.dumps(handed_on)
    assert not [name for name in names if name in everything]


def test_values_of_the_data_are_never_taken_for_templates(project, over):
    state, tasks = over("odd")
    assert state == "success"
    assert any("{{" in (each["rendered_map_index"] or "") for each in tasks)
    assert published(project.output("odd")) == 2000


def test_what_no_release_can_meet_fails_at_once_and_for_good(project, over, runs):
    state, tasks = over("impossible")
    assert state == "failed"
    assert states(tasks)["partition", "failed"] == 1
    assert states(tasks)["wrap_up", "upstream_failed"] == 1
    assert tries(tasks)["partition"] == 1
    assert not project.output("impossible").exists()
    assert project.leftovers("impossible") == []
    (partition,) = [each for each in tasks if each["task_id"] == "partition"]
    assert "lower l" in project.airflow.log_of(*runs["impossible"], partition)


def test_a_fragment_that_is_killed_is_tried_again(project, over):
    name = "killed_once"
    state, tasks = over(name)
    assert state == "success"
    assert tries(tasks)["anonymize_fragment"] == 2
    assert tries(tasks)["partition"] == 1
    assert published(project.output(name)) == 2000
    assert project.leftovers(name) == []
    over("happy")
    assert classes(project.output(name)) == classes(project.output("happy"))


def test_a_killed_partition_leaves_no_raw_rows_behind(project, over):
    state, tasks = over("killed_partition")
    assert state == "failed"
    assert states(tasks)["clean_up", "failed"] == 1
    assert not project.output("killed_partition").exists()
    assert project.leftovers("killed_partition") == []


def test_a_first_phase_is_mapped_and_a_part_that_is_killed_is_tried_again(project, over):
    state, tasks = over("killed_part")
    assert state == "success"
    assert states(tasks) == {
        ("partition", "success"): 1,
        ("specialize_part", "success"): 2,
        ("recode", "success"): 1,
        ("anonymize_fragment", "success"): 3,
        ("wrap_up", "success"): 1,
        ("clean_up", "success"): 1,
    }
    assert tries(tasks)["specialize_part"] == 2
    assert tries(tasks)["partition"] == tries(tasks)["recode"] == 1
    names = {each["rendered_map_index"] for each in tasks if each["task_id"] == "specialize_part"}
    assert names == {"part 1 of 2", "part 2 of 2"}
    assert published(project.output("killed_part")) == 2000
    assert project.leftovers("killed_part") == []
    over("top_down")  # the same job, with threads
    told = [
        json.loads((project.output(name) / "_report.json").read_text())["recoding"]
        for name in ("killed_part", "top_down")
    ]
    assert told[0] == told[1]
    assert len(told[0]["specializations"]["parts"]) == 2
    assert classes(project.output("killed_part")) == classes(project.output("top_down"))


def test_without_one_of_the_parts_nothing_is_published(project, over):
    state, tasks = over("failing_part")
    assert state == "failed"
    assert states(tasks) == {
        ("partition", "success"): 1,
        ("specialize_part", "success"): 1,
        ("specialize_part", "failed"): 1,
        ("recode", "upstream_failed"): 1,
        ("anonymize_fragment", "upstream_failed"): 1,
        ("wrap_up", "upstream_failed"): 1,
        ("clean_up", "failed"): 1,
    }
    assert not project.output("failing_part").exists()
    assert len(project.leftovers("failing_part")) == 1  # for a repair


def test_a_job_without_parts_skips_that_stage(project, over):
    state, tasks = over("no_parts")
    assert state == "success"
    assert states(tasks) == {
        ("partition", "success"): 1,
        ("specialize_part", "skipped"): 1,
        ("recode", "success"): 1,
        ("anonymize_fragment", "success"): 3,
        ("wrap_up", "success"): 1,
        ("clean_up", "success"): 1,
    }
    assert project.leftovers("no_parts") == []
    over("happy")
    assert classes(project.output("no_parts")) == classes(project.output("happy"))


def test_a_group_that_is_skipped_is_skipped_to_its_end(over):
    """Also behind the stage of the parts, which may be skipped by itself."""
    state, tasks = over("skipped_group")
    assert state == "success"
    found = {each["task_id"]: each["state"] for each in tasks}
    assert found.pop("clean_up") == "success"
    assert set(found) > {"partition", "specialize_part", "recode", "anonymize_fragment", "wrap_up"}
    assert set(found.values()) == {"skipped"}


def test_the_group_works_inside_another_etl(project, over):
    state, tasks = over("etl")
    assert state == "success"
    assert states(tasks)["load", "success"] == 1
    out = project.root / "out" / "etl_example"
    assert published(out / "visits") > 1900
    assert (out / "diagnoses_by_region.csv").read_text().count("\n") > 10
    assert sorted(each.name for each in out.iterdir()) == ["diagnoses_by_region.csv", "visits"]


def test_a_drop_that_fails_leaves_the_others_alone(project, over):
    state, tasks = over("night")
    assert state == "failed"
    assert states(tasks) == {
        ("find_drops", "success"): 1,
        ("overdue_drops", "success"): 1,
        ("next_drops", "skipped"): 1,
        ("partition", "success"): 1,
        ("partition", "failed"): 1,
        ("fragments", "success"): 1,
        ("anonymize_fragment", "success"): 4,
        ("wrap_up", "success"): 1,
        ("wrap_up", "failed"): 1,
        ("clean_up", "failed"): 1,
    }
    nightly = project.root / "out" / "nightly"
    assert published(nightly / "people" / DAY) == 2000
    assert [each.name for each in (nightly / "people").iterdir()] == [DAY]
    assert not (nightly / "nobody").exists()
    names = {each["rendered_map_index"] for each in tasks if each["task_id"] == "wrap_up"}
    assert names == {f"people/{DAY}", f"nobody/{DAY}"}


def test_a_night_whose_drops_all_fail_fails(project, over):
    state, tasks = over("bad_night")
    assert state == "failed"
    assert states(tasks) == {
        ("find_drops", "success"): 1,
        ("overdue_drops", "success"): 1,
        ("next_drops", "skipped"): 1,
        ("partition", "failed"): 1,
        ("fragments", "failed"): 1,
        ("anonymize_fragment", "upstream_failed"): 1,
        ("wrap_up", "failed"): 1,
        ("clean_up", "failed"): 1,
    }
    assert set(tries(tasks).values()) <= {0, 1}
    assert not (project.root / "out" / "nightly" / "broken" / BAD_DAY).exists()


def test_a_night_without_drops_is_skipped(over):
    state, tasks = over("quiet_night")
    assert state == "success"
    assert {each["task_id"] for each in tasks if each["state"] != "skipped"} == {
        "clean_up",
        "overdue_drops",
    }


# What follows needs runs of the first wave to be over.


def test_a_night_run_again_takes_what_has_no_release(project, over, runs):
    over("night")
    nightly = project.root / "out" / "nightly"
    before = contents(nightly / "people" / DAY)
    jobs = project.root / "include" / "jobs"
    shutil.copy(jobs / "people.yaml", jobs / "nobody.yaml")
    clear(project, *runs["night"])
    state, _tasks = over("night")
    assert state == "success"
    assert contents(nightly / "people" / DAY) == before
    assert published(nightly / "nobody" / DAY) == 2000
    assert [each.name for each in (nightly / "people").iterdir()] == [DAY]


def test_a_day_by_hand_replaces_its_releases(project, over, runs):
    nightly = project.root / "out" / "nightly"
    over("night")
    before, files = classes(nightly / "people" / DAY), contents(nightly / "people" / DAY)
    run_id = project.airflow.trigger("mondrian_nightly", {"day": DAY})
    project.airflow.finish("mondrian_nightly", run_id)
    assert classes(nightly / "people" / DAY) == before
    assert contents(nightly / "people" / DAY) != files


def test_a_run_done_again_gives_the_same_release_with_the_same_tasks(project, over, runs):
    over("happy")
    release = project.output("happy")
    before = classes(release)
    clear(project, *runs["happy"])
    state, tasks = over("happy")
    assert state == "success"
    assert states(tasks)["anonymize_fragment", "success"] == 3
    assert published(release) == 2000
    assert classes(release) == before
    assert project.leftovers("happy") == []


def test_a_release_that_fails_its_check_is_refused_for_good(project, over):
    over("killed_once")
    release = project.output("killed_once")
    before = contents(release)
    job = project.job("killed_once", replace="any")  # the release of another DAG
    run_id = project.airflow.trigger("tampered", nested(job))
    assert project.airflow.finish("tampered", run_id) == "failed"
    tasks = project.airflow.tasks("tampered", run_id)
    assert states(tasks)["wrap_up", "failed"] == 1
    assert states(tasks)["clean_up", "failed"] == 1
    assert tries(tasks)["wrap_up"] == 1
    (wrap_up,) = [each for each in tasks if each["task_id"] == "wrap_up"]
    log = project.airflow.log_of("tampered", run_id, wrap_up)
    assert "refused and not published" in log
    assert "[7, 8]" not in log
    assert contents(release) == before
    assert len(project.leftovers("killed_once")) == 1  # for a repair


def test_a_run_that_is_stopped_publishes_nothing_and_shows_as_failed(project, stopped):
    run_id, name = stopped
    assert project.airflow.finish("slow", run_id) == "failed"
    assert not project.output(name).exists()
    found = states(project.airflow.tasks("slow", run_id))
    assert found["wrap_up", "skipped"] == found["clean_up", "failed"] == 1
    assert found["anonymize_fragment", "success"] == 0


@pytest.fixture(scope="module")
def stopped(project):
    """A run that somebody marked as failed while its fragments were anonymized."""
    run_id = project.airflow.trigger("slow", nested(project.job("slow")))
    for tasks in project.airflow.watch("slow", run_id, every=0.2):
        if states(tasks)["anonymize_fragment", "running"] == 3:
            break  # one that only starts as the run is stopped may be missed by Airflow
    path = f"/api/v2/dags/slow/dagRuns/{run_id}"
    project.airflow.request("PATCH", path, {"state": "failed"})
    return run_id, "slow"


def test_a_fragment_whose_worker_was_killed_is_cleared_and_the_run_goes_on(project, over, runs):
    state, tasks = over("killed_until_cleared")
    assert state == "failed"
    assert states(tasks)["anonymize_fragment", "success"] == 2
    assert states(tasks)["clean_up", "failed"] == 1
    (kept,) = project.output("killed_until_cleared").parent.glob(".*")
    assert kept.stat().st_mode & 0o777 == 0o700
    Path(f"{project.output('killed_until_cleared')}.repaired").touch()
    clear(project, *runs["killed_until_cleared"], only_failed=True)
    state, tasks = over("killed_until_cleared")
    assert state == "success"
    assert tries(tasks)["partition"] == 1
    assert sum(each["try_number"] == 2 for each in tasks) == 2  # the fragment, and clean_up
    over("happy")
    name = "killed_until_cleared"
    assert published(project.output(name)) == 2000
    assert classes(project.output(name)) == classes(project.output("happy"))
    assert project.leftovers(name) == ["release.repaired"]


def test_what_no_run_needs_is_swept(project, over, runs, stopped):
    """A run that timed out ends without its clean_up; one that is deleted needs nothing."""
    project.airflow.finish("slow", stopped[0])
    state, tasks = over("timed_out")
    assert state == "failed"
    assert states(tasks)["clean_up", "skipped"] == 1
    waiting = ("wrap_up", "awaiting_input")
    assert project.airflow.comes_true(
        lambda: states(project.airflow.tasks(*runs["waits"]))[waiting] == 1
    )
    needed = ["slow", "timed_out", "waits"]
    sweep(project)
    assert [len(project.leftovers(name)) for name in needed] == [1, 1, 1]
    for dag_id, run_id in (("slow", stopped[0]), runs["timed_out"]):
        project.airflow.request("DELETE", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")
    sweep(project)
    assert [len(project.leftovers(name)) for name in needed] == [0, 0, 1]


def sweep(project):
    """Have the working files swept; the run fails, for stores of other tests do not answer."""
    run_id = project.airflow.trigger("mondrian_sweep")
    assert project.airflow.finish("mondrian_sweep", run_id) == "failed"
    (task,) = project.airflow.tasks("mondrian_sweep", run_id)
    assert "working files may remain: " in project.airflow.log_of("mondrian_sweep", run_id, task)


def clear(project, dag_id, run_id, only_failed=False):
    """Have a whole run, or what failed of it, done again."""
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/clear"
    project.airflow.request("POST", path, {"dry_run": False, "only_failed": only_failed})
