"""The DAGs under the CeleryExecutor: Redis, PostgreSQL, two workers that are processes apart.

All of it is installed from the wheel and its extras alone.
"""

from __future__ import annotations

from datetime import datetime
from itertools import combinations, cycle, zip_longest

import pytest

from dag_runs import asked_for, classes, form, nested, published, states, tries
from faults.airflow_harness import TASKS, AirflowHarness
from faults.injection import KILLS, faults_at
from mondrian_ops import pipeline
from mondrian_ops.catalogue import releases
from mondrian_ops.datasets import generate
from servers.needs import own_mounts
from servers.processes import wait_until

pytestmark = [pytest.mark.airflow, pytest.mark.redis, pytest.mark.postgres]


def fragments(tasks):
    """The instances that anonymized a fragment."""
    return [each for each in tasks if each["task_id"] == "anonymize_fragment"]


def at_once(one, other):
    """Whether two task instances ran at the same time."""
    starts, ends = (
        [datetime.fromisoformat(task[at]) for task in (one, other)]
        for at in ("start_date", "end_date")
    )
    return max(starts) < min(ends)


def test_fragments_run_on_different_workers_at_once(celery_project):
    data = celery_project.root / "many.parquet"
    generate("people", rows=60_000, seed=0, output=str(data))
    job = celery_project.job("at_once", input=str(data))
    run_id = celery_project.airflow.trigger("mondrian_anonymize", form(job, fragments=6))
    assert celery_project.airflow.finish("mondrian_anonymize", run_id) == "success"
    found = fragments(celery_project.airflow.tasks("mondrian_anonymize", run_id))
    assert len(found) == 6
    assert {each["hostname"] for each in found} == {"worker-0", "worker-1"}
    assert any(
        at_once(one, other)
        for one, other in combinations(found, 2)
        if one["hostname"] != other["hostname"]
    )
    assert published(celery_project.output("at_once")) == 60_000
    assert celery_project.leftovers("at_once") == []
    key = bytes.fromhex((celery_project.root / "catalogue.key").read_text())
    page = releases.id_of(key, "mondrian_anonymize", run_id, "", -1)
    report = celery_project.airflow.request("GET", f"/mondrian_ops/releases/{page}/report.json")
    assert report["rows"]["published"] == 60_000


@pytest.fixture(scope="module")
def killed(celery_project):
    """A run one of whose workers was killed in mid-fragment; its id, and what ran there.

    That the worker is missed takes most of a minute, in which other runs have another in its place.
    """
    airflow, held = celery_project.airflow, celery_project.root / "held"
    run_id = airflow.trigger("held_once", nested(celery_project.job("held_once")))
    wait_until(lambda: held.exists() and held.read_text() != "")
    (victim,) = [
        each
        for each in fragments(airflow.tasks("held_once", run_id))
        if each["pid"] == int(held.read_text())
    ]
    assert victim["state"] == "running"
    airflow.kill_worker(victim["hostname"])
    airflow.start_worker("worker-2")
    return run_id, victim


@pytest.fixture(scope="module")
def blind_runs(request, celery_project, killed):
    """Runs a task of which is done by a worker to whom the folder of releases is one of its own.

    Run id by the task's name.
    """
    out = celery_project.root / "out"
    out.mkdir(exist_ok=True)
    hide = f'mount -t tmpfs tmpfs "{out}" && exec "$@"'
    airflow = celery_project.airflow
    airflow.start_worker("blind", queues="blind", within=[*own_mounts(), "sh", "-c", hide, "sh"])
    return {
        name: airflow.trigger(
            f"blind_{name}", nested(celery_project.job(f"blind_{name}"), fragments=1)
        )
        for name in asked_for(request, "blind")
    }


@pytest.mark.mounts
@pytest.mark.parametrize(
    ("blind", "failing"),
    [
        ("anonymize_fragment", "anonymize_fragment"),
        pytest.param("partition", "anonymize_fragment", marks=pytest.mark.soak),
        pytest.param("wrap_up", "wrap_up", marks=pytest.mark.soak),
    ],
)
def test_a_worker_that_cannot_see_the_working_files_says_so(
    celery_project, blind_runs, blind, failing
):
    airflow, name = celery_project.airflow, f"blind_{blind}"
    run_id = blind_runs[blind]
    assert airflow.finish(name, run_id) == "failed"
    tasks = airflow.tasks(name, run_id)
    assert {each["hostname"] for each in tasks if each["task_id"] == blind} == {"blind"}
    failed = [each for each in tasks if each["task_id"] == failing]
    assert {each["state"] for each in failed} == {"failed"}
    assert tries(tasks)[failing] == 1
    for each in failed:
        log = airflow.log_of(name, run_id, each)
        assert "not on storage that all workers share" in log
    assert states(tasks)["clean_up", "failed"] == 1
    assert not celery_project.output(name).exists()
    assert len(celery_project.leftovers(name)) == (blind != "partition")  # for a repair


def test_a_worker_killed_in_mid_fragment_loses_nothing(celery_project, killed):
    airflow = celery_project.airflow
    run_id, victim = killed
    assert airflow.finish("held_once", run_id) == "success"
    tasks = airflow.tasks("held_once", run_id)
    (again,) = [each for each in fragments(tasks) if each["map_index"] == victim["map_index"]]
    assert again["try_number"] == 2
    assert again["hostname"] != victim["hostname"]
    assert tries(tasks)["partition"] == 1
    assert states(tasks)["anonymize_fragment", "success"] == 3
    assert published(celery_project.output("held_once")) == 2000
    assert celery_project.leftovers("held_once") == []
    undisturbed = nested(celery_project.job("undisturbed"))["job"]
    pipeline.run(pipeline.load_job(undisturbed))
    assert classes(celery_project.output("held_once")) == classes(
        celery_project.output("undisturbed")
    )


# That a first phase is mapped, and that its parts are made good, test_runs.py shows.
ON_SOAK = {"mapped_first_phase": pytest.mark.soak}


@pytest.fixture(
    scope="module", params=[pytest.param(dag, marks=ON_SOAK.get(dag, ())) for dag in TASKS]
)
def harness(request, celery_project):
    """Runs of a DAG whose tasks can be disturbed."""
    return AirflowHarness(celery_project, request.param)


def kinds(harness, task):
    """Of each operation on each kind of file the last call in a task."""
    last = {}
    for passed in harness.passed:
        if passed.step == task and not passed.point.startswith("stat"):
            last[passed.point.rpartition(" ")[0]] = passed
    assert last, f"{task} came by no point"
    return last


CHOSEN = {
    "partition": "write fragment",
    "specialize_part": "write level-00001.arrow",
    "recode": "write recoding.arrow",
    "anonymize_fragment": "write part",
    "wrap_up": "exchange out",
    "clean_up": "rmdir fragments",
}


def test_a_release_of_several_workers_is_that_of_one_process(harness):
    assert harness.undisturbed == harness.expected


def test_each_task_disturbed_once_is_made_good(harness):
    """A run whose tasks are all killed, beside one whose tasks all fail."""
    chosen = [kinds(harness, task)[CHOSEN[task]] for task in harness.tasks]
    harness.check_made_good(
        {
            "killed": [(passed, "killed after") for passed in chosen],
            "failing": [(passed, "EIO") for passed in chosen],
        }
    )


@pytest.mark.soak
def test_each_task_disturbed_at_each_kind_of_point_is_made_good(harness):
    """A run disturbs each of its tasks once; several runs at once."""
    turns = cycle(["killed after", "EIO", "ENOSPC", "killed before", "reply lost"])
    by_task = [
        [
            (passed, kind if kind in faults_at(passed.point) else KILLS[1])
            for passed, kind in zip(kinds(harness, task).values(), turns, strict=False)
        ]
        for task in harness.tasks
    ]
    runs = [[case for case in cases if case is not None] for cases in zip_longest(*by_task)]
    for first in range(0, len(runs), 6):
        some = enumerate(runs[first : first + 6], first)
        harness.check_made_good({f"soak{number}": faults for number, faults in some})


OVERTAKEN = {
    "disturbed": {
        "partition-over": ("partition write fragment", ""),
        "partition-again": ("partition write fragment", "partition write fragment"),
        "partition-publishing": ("partition rename run.json", "wrap_up exchange out"),
        "fragment-over": ("anonymize_fragment write part", ""),
        "fragment-again": ("anonymize_fragment write part", "anonymize_fragment write part"),
        "fragment-publishing": ("anonymize_fragment rename part", "wrap_up exchange out"),
        "wrap_up-over": ("wrap_up rename _report.html", ""),
        "wrap_up-publishing": ("wrap_up rename _report.html", "wrap_up exchange out"),
        "wrap_up-again": ("wrap_up exchange out", "wrap_up write _report.json"),
    },
    "mapped_first_phase": {
        "part-over": ("specialize_part write level-00001.arrow", ""),
        "part-publishing": ("specialize_part write level-00001.arrow", "wrap_up exchange out"),
        "recode-again": ("recode write recoding.arrow", "recode write recoding.arrow"),
        "recode-publishing": ("recode rename run.json", "wrap_up exchange out"),
    },
}
"""By DAG: where a first attempt is suspended, and where a later one is when it goes on."""


@pytest.fixture
def another_worker(celery_project, harness):
    """One that does many tasks at once, where others are suspended."""
    name = f"worker-{harness.dag}"
    celery_project.airflow.start_worker(name, concurrency=20)
    yield
    celery_project.airflow.kill_worker(name)


@pytest.mark.soak
@pytest.mark.usefixtures("another_worker")
def test_an_attempt_that_was_given_up_goes_on_unnoticed(harness):
    cases = OVERTAKEN[harness.dag]
    harness.check_overtaken(
        {
            name: (point(harness, at), point(harness, until) if until else None)
            for name, (at, until) in cases.items()
        }
    )


@pytest.mark.soak
@pytest.mark.usefixtures("another_worker")
@pytest.mark.parametrize("harness", ["disturbed"], indirect=True)
def test_an_attempt_that_is_suspended_in_its_publication_holds_the_others_up(harness):
    harness.check_held_up("held-up", point(harness, "wrap_up exchange out"))


def point(harness, told):
    """The last call of an operation on a kind of file in a task."""
    task, _, kind = told.partition(" ")
    return kinds(harness, task)[kind]
