"""What all operators share: how a job is read, and what becomes of errors."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from airflow.sdk.exceptions import AirflowFailException

import handed_over
from mondrian_ops import operators, pipeline
from mondrian_ops.engines.handover import Sample
from mondrian_ops.errors import PrivacyError
from mondrian_ops.operators import (
    AnonymizeFragmentOperator,
    FrontierOperator,
    FrontierPointOperator,
    FrontierSampleOperator,
    PartitionOperator,
    RecodeOperator,
    SpecializePartOperator,
    WrapUpOperator,
)
from mondrian_ops.operators.base import release_name, work_of
from task_contexts import read_job
from teardowns import clean_up_after
from tiers import one_here, one_in

ALL = [
    (PartitionOperator, {}),
    (AnonymizeFragmentOperator, {"fragment": handed_over.fragment()}),
    (SpecializePartOperator, {"part": {"part": 0, "parts": 2, "work": "w"}}),
    (RecodeOperator, {"parts": []}),
    (WrapUpOperator, {"summaries": [handed_over.summary()]}),
    (FrontierSampleOperator, {"k": [2]}),
    (FrontierPointOperator, {"point": {"k": 2, "l": None, "drawn": Sample("w", 9, 9).to_dict()}}),
    (FrontierOperator, {"sample": [{"k": 2}], "points": []}),
]


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [each for each in ALL if each[0].begins_run or "summaries" in each[1]],
)
def test_a_job_is_checked_when_the_task_runs_and_not_before(operator, arguments, context):
    """The others take the job of the run; where nothing tells which, `wrap_up` asks its own."""
    task = operator(task_id="t", job={"k": "{{ params.k }}"}, **arguments)
    task.job = {"k": 1}
    with pytest.raises(AirflowFailException, match=r"input: is required|k: must be"):
        task.execute(context)


def test_a_job_may_be_a_template_as_a_whole():
    assert PartitionOperator(task_id="t", job="{{ params.job }}").job == "{{ params.job }}"


@pytest.mark.parametrize(("operator", "arguments"), ALL)
def test_every_template_field_is_assigned_as_it_comes(operator, arguments):
    marks = {name: object() for name in operator.template_fields}
    task = operator(task_id="t", **{**arguments, **marks})
    assert all(getattr(task, name) is mark for name, mark in marks.items())


@pytest.mark.parametrize(("operator", "arguments"), ALL)
def test_retries_are_bounded_and_can_be_changed(operator, arguments):
    assert operator(task_id="t", job={}, **arguments).retries == 2
    assert operator(task_id="t", job={}, retries=0, **arguments).retries == 0


def test_an_error_of_ours_is_final_and_its_cause_is_left_out(monkeypatch, context, job):
    def refuse(*_arguments, **_options):
        try:
            raise ValueError("Mary, 34, HIV")
        except ValueError as error:
            raise PrivacyError("k: 3 classes are smaller than k = 5") from error

    monkeypatch.setattr(pipeline, "partition", refuse)
    with pytest.raises(AirflowFailException, match="3 classes are smaller") as caught:
        PartitionOperator(task_id="t", job=job).execute(context)
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None


def test_any_other_error_may_be_retried(monkeypatch, context, job):
    monkeypatch.setattr(pipeline, "partition", Mock(side_effect=OSError(28, "no space left")))
    with pytest.raises(OSError, match="no space left"):
        PartitionOperator(task_id="t", job=job).execute(context)


def test_of_an_unforeseen_error_only_kind_and_place_are_shown(monkeypatch, context, job):
    def break_down(*_arguments, **_options):
        return {}["Mary, 34, HIV"]

    monkeypatch.setattr(pipeline, "partition", break_down)
    with pytest.raises(RuntimeError, match=r"^KeyError at .*test_base\.py:\d+;") as caught:
        PartitionOperator(task_id="t", job=job).execute(context)
    assert "Mary" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_the_tasks_of_an_output_share_a_working_directory_and_no_other_does(context, job):
    def place(run_id: str = "manual__1", **changed: object) -> str:
        run = SimpleNamespace(dag_id="a_dag", run_id=run_id)
        return work_of(read_job({**job, **changed}), {"dag_run": run})

    assert place() == place(k=3)
    assert place() != place(output=f"{job['output']}/another")
    assert place() != place("manual__2")


def test_a_job_may_be_a_file_with_some_options_changed(tmp_path, job):
    file = tmp_path / "job.yaml"
    file.write_text("k: 2\nquasi_identifiers: [age]\n")
    settings = [f"input={job['input']}", f"output={job['output']}", "k=7"]
    read = read_job({"file": str(file), "set": settings, "name": "people/today"})
    assert (read.k, read.output) == (7, job["output"])
    assert read_job(job).k == 2


CONNECTIONS = {"spark_conn_id": "{{ a }}", "storage_conn_id": "{{ b }}"}


@pytest.mark.parametrize(("operator", "arguments"), ALL)
def test_connections_are_arguments_of_every_task(operator, arguments, monkeypatch, job):
    task = operator(task_id="t", job={**job, "engine": "spark"}, **CONNECTIONS, **arguments)
    task.render_template_fields({"a": "a_spark", "b": "secret_conn"})
    monkeypatch.setitem(task.job, "input", "s3://bucket/in.csv")
    read = task.read_job()
    assert (read.spark.connection, read.input) == ("a_spark", "s3://secret_conn@bucket/in.csv")


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (
            {"spark_conn_id": "not_allowed", "storage_conn_id": "secret_conn"},
            "'not_allowed' is not allowed",
        ),
        ({"storage_conn_id": "not_allowed"}, "input: s3://bucket/in.csv is not allowed"),
    ],
)
def test_the_access_policy_is_for_connections_that_are_arguments_too(
    arguments, refused, context, job
):
    job.update(engine="spark", input="s3://bucket/in.csv")
    with pytest.raises(AirflowFailException, match=refused):
        PartitionOperator(task_id="t", job=job, **arguments).execute(context)


def test_releases_are_named_for_the_grid():
    assert release_name({"output": "/out/poker/2025-06-01/"}) == "poker/2025-06-01"
    assert release_name({"file": "/jobs/poker.yaml", "name": "poker/today"}) == "poker/today"
    assert release_name("/jobs/poker.yaml") == "poker.yaml"


def test_operators_import_nothing_heavy_at_module_level():
    heavy = {"numpy", "pandas", "pyarrow", "mondrian_ops.pipeline", "mondrian_ops.publish"}
    folder = Path(inspect.getfile(operators)).parent
    for file in folder.glob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & heavy, file.name


def test_the_tasks_of_a_job_may_be_in_several_groups(context, tds_job):
    through_all_phases(tds_job, context, "extract.", False, last="load.")
    home = Path(tds_job["output"]).parent
    assert sorted(each.name for each in home.iterdir()) == ["in.csv", "out"]


def test_two_groups_of_a_run_with_one_output_are_refused(context, tds_job):
    one, other = (PartitionOperator(task_id=f"{name}.p", job=tds_job) for name in "ab")
    one.execute(context)
    refusal = r"output: the task a\.p of this run .* an output of its own"
    with pytest.raises(AirflowFailException, match=refusal):
        other.execute(context)


def run_of(dag_id: str, run_id: str) -> SimpleNamespace:
    return SimpleNamespace(
        dag_id=dag_id,
        run_id=run_id,
        start_date=None,
        run_type="backfill",
        triggering_user_name="ada",
    )


def through_all_phases(job: dict, context: dict, group: str, is_mapped: bool, last="") -> dict:
    """The report of the release that the operators of a group make, the last two in ``last``."""
    last = last or group
    partition = PartitionOperator(task_id=f"{group}p", job=job, map_first_phase=is_mapped)
    fragments = partition.execute(context)
    if is_mapped:
        parts = [
            SpecializePartOperator(task_id=f"{group}s", job=job, part=part).execute(context)
            for part in fragments
        ]
        fragments = RecodeOperator(task_id=f"{group}r", job=job, parts=parts).execute(context)
    summaries = [
        AnonymizeFragmentOperator(task_id=f"{group}a", job=job, fragment=each).execute(context)
        for each in fragments
    ]
    wrap_up = WrapUpOperator(task_id=f"{last}w", job=job, summaries=summaries)
    wrap_up.execute(context)
    clean_up_after(job, f"{group}p").execute(context)
    report: dict = json.loads((Path(job["output"]) / "_report.json").read_text())
    return report


@pytest.mark.parametrize("is_mapped", [False, True])
@pytest.mark.parametrize("group", one_here(one_in(2, ["outer.protect.", "protect.", ""])))
def test_a_release_names_its_dag_and_group_and_is_replaced_by_them_only(
    context, tds_job, group, is_mapped
):
    maker = f"hospital/{group[:-1]}" if group else "hospital"
    for night in ("one", "two"):
        context["dag_run"] = run_of("hospital", night)
        report = through_all_phases(tds_job, context, group, is_mapped)
        assert report["made_by"] == maker
        assert (report["requested_by"], report["run_type"]) == ("ada", "backfill")
        assert report["outcome"]["state"] == "published"
    for dag_id, other in (("somebody", group), ("hospital", "another.")):
        context["dag_run"] = run_of(dag_id, "three")
        with pytest.raises(AirflowFailException, match=r"the DAG 'hospital'.*replace: any"):
            through_all_phases(tds_job, context, other, is_mapped)
    tds_job["replace"] = "any"
    report = through_all_phases(tds_job, context, "another.", is_mapped)
    assert report["made_by"] == "hospital/another"
    assert [each.name for each in Path(tds_job["output"]).parent.glob(".*")] == []
