"""A job is edited while its run is under way: the run goes on with the job that it began with.

Each task is given the job anew: from a file, a template or a form. Whoever may change that could
have a release made of strong requirements and checked against weak ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

from mondrian_ops import stores
from mondrian_ops.task_groups import anonymize_each
from releases import recorded_releases
from task_contexts import Instance, task_context
from task_runs import TaskRun
from tiers import one_in
from waiting_questions import installed

ROWS = "".join(
    f"{20 + at % 40},{10000 + at % 7},{'fm'[at % 2]},n{at},{'abcd'[at % 4]}\n" for at in range(400)
)


@pytest.fixture(autouse=True)
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Jobs may read and write here."""
    for option in ("INPUTS", "OUTPUTS"):
        monkeypatch.setenv(f"AIRFLOW__MONDRIAN_OPS__ALLOWED_{option}", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE", str(tmp_path / "catalogue.db"))
    yield
    stores.use_policy(None)
    stores.use_policies(None)


@pytest.fixture
def job(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "in.csv").write_text("age,zip,sex,name,ill\n" + ROWS)
    return {
        "input": str(tmp_path / "in.csv"),
        "output": str(tmp_path / "out"),
        "k": 5,
        "l": 2,
        "identifiers": ["name"],
        "quasi_identifiers": ["age", "zip", "sex"],
        "sensitive": ["ill"],
        "partitioning": {"fragments": 3, "sample": 1.0},
    }


@pytest.fixture
def run(job: dict[str, Any]) -> TaskRun:
    """A run whose fragments are anonymized."""
    run = TaskRun(job)
    run.partition()
    run.anonymize()
    return run


EDITS: dict[str, dict[str, Any]] = {
    "k": {"k": 2},
    "l": {"l": None},
    "quasi_identifiers": {"quasi_identifiers": ["age"]},
    "unlisted": {"unlisted": "publish"},
    "identifiers, unlisted": {"identifiers": [], "unlisted": "publish"},
    "output": {"output": "elsewhere"},
    "partitioning.fragments": {"partitioning": {"fragments": 9, "sample": 1.0}},
}


def edited(job: dict[str, Any], edit: dict[str, Any]) -> dict[str, Any]:
    changed = {key: value for key, value in {**job, **edit}.items() if value is not None}
    if edit.get("output"):
        changed["output"] = str(Path(job["output"]).with_name(edit["output"]))
    return changed


def released(job: dict[str, Any]) -> dict[str, Any]:
    """The report of the release, whose columns and classes must be those of the job."""
    release = Path(job["output"])
    rows = ds.dataset(release).to_table().to_pandas()
    assert set(rows.columns) == {"age", "zip", "sex", "ill"}
    assert rows.groupby(["age", "zip", "sex"]).size().min() >= 5
    report: dict[str, Any] = json.loads((release / "_report.json").read_text())
    return report


@pytest.mark.parametrize("edit", one_in(2, EDITS.values()), ids=EDITS)
def test_a_job_edited_before_wrap_up_checks_and_files_the_release_as_before(
    run: TaskRun, job: dict[str, Any], edit: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run.job = edited(job, edit)
    summary = run.wrap_up()
    report = released(job)
    assert (report["job"]["k"], report["job"]["l"]) == (5, 2)
    assert report["columns"]["quasi_identifiers"] == job["quasi_identifiers"]
    assert report["columns"]["identifiers"] == ["name"]
    assert report["job"]["partitioning"]["fragments"] == 3
    assert summary["asked"] == {"k": 5, "l": 2, "algorithm": "mondrian"}
    (entry,) = recorded_releases()
    assert (entry["k"], entry["l"], entry["dataset"]) == (5, 2, job["output"])
    (warning,) = [each for each in capsys.readouterr().out.splitlines() if "has changed" in each]
    names = next(name for name, each in EDITS.items() if each is edit)
    assert f"has changed: {names};" in warning
    assert "elsewhere" not in warning
    run.clean_up()
    assert not list(Path(job["output"]).parent.glob(".out*"))
    assert not Path(job["output"]).with_name("elsewhere").exists()


def test_a_job_edited_after_partition_changes_no_fragment(job: dict[str, Any]) -> None:
    run = TaskRun(job)
    run.partition()
    run.job = edited(job, {**EDITS["k"], **EDITS["quasi_identifiers"], **EDITS["output"]})
    run.anonymize()
    run.wrap_up()
    assert released(job)["job"]["k"] == 5


@pytest.mark.parametrize("given", ["/no/such/job.yaml", {"k": 1}, None])
def test_a_job_that_cannot_be_read_any_more_does_not_stop_the_run(
    run: TaskRun, job: dict[str, Any], given: Any
) -> None:
    run.job = given
    run.wrap_up()
    released(job)
    run.clean_up()
    assert not list(Path(job["output"]).parent.glob(".out*"))


def test_an_approval_that_is_dropped_from_the_job_is_asked_for_all_the_same(
    job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    airflow = installed(monkeypatch)
    run = TaskRun({**job, "require_approval": True})
    run.partition()
    run.anonymize()
    run.job = {**job, "k": 2}
    with pytest.raises(TaskAwaitingInput) as caught:
        run.wrap_up()
    assert len(airflow.asked) == 1
    assert caught.value.kwargs["parked"]["job"]["k"] == 5
    assert not Path(job["output"]).exists()
    event = airflow.answered("Approve")
    run.task("wrap_up").decided(run.context, **caught.value.kwargs, event=event)
    assert released(job)["outcome"]["decided_by"] == "ada"


def test_what_a_sensitive_hierarchy_says_later_does_not_matter(
    job: dict[str, Any], tmp_path: Path
) -> None:
    """The check takes the tree of the run: with another one, values would be closer."""
    tree = tmp_path / "ills.csv"
    tree.write_text("a;x;*\nb;x;*\nc;y;*\nd;y;*\n")
    close = {"t": 1, "t_distance": "hierarchical", "sensitive_hierarchy": {"ill": "ills.csv"}}
    (tmp_path / "job.json").write_text(json.dumps({**job, **close}))
    run = TaskRun(str(tmp_path / "job.json"))
    run.partition()
    run.anonymize()
    tree.unlink()
    run.wrap_up()
    released(job)


# Policies


def decree(folder: Path, job: dict[str, Any], **required: Any) -> None:
    policy = {"name": "people", "inputs": [job["input"]], **required}
    file = folder / "policies.json"
    file.write_text(json.dumps({"unmatched": "allow", "policies": [policy]}))
    stores.use_policies(str(file))


@pytest.fixture
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__POLICIES", str(tmp_path / "policies.json"))
    return tmp_path


def test_a_job_that_names_another_input_in_the_end_does_not_leave_its_policy(
    job: dict[str, Any], policies: Path
) -> None:
    """Whoever may change the job's file between two tasks would need no approval."""
    decree(policies, job, min_k=5, approval={"required": True})
    run = TaskRun(job)
    run.partition()
    run.anonymize()
    other = policies / "free.csv"
    other.write_bytes(Path(job["input"]).read_bytes())
    run.job = {**job, "input": str(other), "k": 2}
    wrap_up = run.task("wrap_up")
    held = wrap_up.job_of_run(run.context, run.fragments[0]["work"])
    assert (held.input, held.k, held.require_approval) == (job["input"], 5, True)


def test_a_policy_that_became_stricter_holds_for_rows_that_were_read_before(
    run: TaskRun, job: dict[str, Any], policies: Path
) -> None:
    decree(policies, job, min_k=6)
    run.job = {**job, "k": 6}
    with pytest.raises(AirflowFailException, match="k: is 5, and the policy 'people' requires"):
        run.wrap_up()
    assert not Path(job["output"]).exists()


def test_working_files_of_another_run_are_not_taken(run: TaskRun, job: dict[str, Any]) -> None:
    """Anybody who may write an XCom can name them."""
    for name in ("of_another_run", ".out.mondrian_ops-000000000000"):
        run.fragments[0]["work"] = str(Path(job["output"]).with_name(name))
        with pytest.raises(AirflowFailException, match="no working files of this run"):
            run.anonymize(0)


def test_of_several_jobs_each_keeps_its_own_though_one_names_the_other_s_output(
    job: dict[str, Any],
) -> None:
    """As `anonymize_each` has them: the tasks of a job have the map index of the job."""
    jobs = [{**job, "output": f"{job['output']}-{name}"} for name in "ab"]
    context, fragments = task_context(), []
    with DAG("a_dag", schedule=None) as dag:
        anonymize_each(list_of_jobs.override(task_id="jobs")())
    for index, each in enumerate(jobs):
        context["ti"].map_index = index
        partition = dag.get_task("partition").unmap({"job": each})
        own = {**context, "ti": Instance(**{**vars(context["ti"]), "xcoms": {}})}
        fragments.append(partition.execute(own))
        for key, value in own["ti"].xcoms.items():
            context["ti"].xcoms.setdefault(key, []).append(value)
    edited_jobs = [{**jobs[1], "k": 2}, {**jobs[0], "k": 3}]
    gather = dag.get_task("fragments")
    gather.job, gather.partitions = edited_jobs, fragments
    gathered = gather.execute(context)
    assert {(each["work"], each["map_index"]) for each in gathered} == {
        (fragments[0][0]["work"], 0),
        (fragments[1][0]["work"], 1),
    }
    anonymize = dag.get_task("anonymize_fragment")
    summaries = [anonymize.unmap({"fragment": each}).execute(context) for each in gathered]
    for index, each in enumerate(edited_jobs):
        context["ti"].map_index = index
        wrap_up = dag.get_task("wrap_up").unmap({"job": each})
        wrap_up.summaries = summaries
        assert wrap_up.execute(context)["output"] == jobs[index]["output"]
        released(jobs[index])


@task
def list_of_jobs() -> list[Any]:
    """The jobs."""
    return []
