"""The operators by themselves: what they check, what they call, what they make of errors."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk import Asset, AssetAlias
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops import operators, pipeline, storage
from mondrian_ops.algorithms import planning
from mondrian_ops.core.errors import PrivacyError
from mondrian_ops.operators import (
    AnonymizeFragmentOperator,
    CleanUpOperator,
    GatherFragmentsOperator,
    PartitionOperator,
    RecodeOperator,
    SpecializePartOperator,
    WrapUpOperator,
)
from mondrian_ops.operators.base import announce_work, read_job, release_name, work_of
from mondrian_ops.operators.partition import check_fragments

ALL = [
    (PartitionOperator, {}),
    (AnonymizeFragmentOperator, {"fragment": {"id": 0, "where": "", "work": "w"}}),
    (SpecializePartOperator, {"part": {"part": 0, "parts": 2, "work": "w"}}),
    (RecodeOperator, {"parts": []}),
    (WrapUpOperator, {"summaries": [{"id": 0, "work": "w"}]}),
]


def summary(fragment_id: int, work: str) -> dict:
    return {"id": fragment_id, "rows": 5, "equivalence_classes": 1, "work": work}


@pytest.mark.parametrize(("operator", "arguments"), ALL)
def test_a_job_is_checked_when_the_task_runs_and_not_before(operator, arguments, context):
    task = operator(task_id="t", job={"k": "{{ params.k }}"}, **arguments)
    task.job = {"k": 1}
    with pytest.raises(AirflowFailException, match=r"input: is required|k: must be"):
        task.execute(context)


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
    def break_down(*_arguments, **_options):
        raise OSError(28, "no space left")

    monkeypatch.setattr(pipeline, "partition", break_down)
    with pytest.raises(OSError, match="no space left"):
        PartitionOperator(task_id="t", job=job).execute(context)


def test_of_an_unforeseen_error_only_kind_and_place_are_told(monkeypatch, context, job):
    def break_down(*_arguments, **_options):
        return {}["Mary, 34, HIV"]

    monkeypatch.setattr(pipeline, "partition", break_down)
    with pytest.raises(RuntimeError, match=r"^KeyError at .*test_operators\.py:\d+;") as caught:
        PartitionOperator(task_id="t", job=job).execute(context)
    assert "Mary" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("error", [OSError("disk"), PrivacyError("l"), KeyboardInterrupt()])
def test_a_partition_that_fails_leaves_no_working_files(monkeypatch, context, job, error, mapped):
    made = []

    def fail(*_arguments):
        made.extend(each for each in folder.iterdir() if each.is_dir())
        raise error

    folder = Path(job["output"]).parent
    Path(job["input"]).write_text("age\n1\n2\n3\n4\n")
    job["algorithm"] = "tds"
    monkeypatch.setattr(planning, "merged", fail)
    with pytest.raises((OSError, AirflowFailException, KeyboardInterrupt)):
        PartitionOperator(task_id="t", job=job, map_first_phase=mapped).execute(context)
    assert len(made) == 1
    assert not made[0].exists()


def test_too_many_fragments_are_refused_before_any_work(monkeypatch, context, job):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "4")
    monkeypatch.setattr(pipeline, "partition", lambda *_a, **_k: pytest.fail("worked"))
    job["partitioning"] = {"fragments": 5}
    with pytest.raises(AirflowFailException, match=r"partitioning\.fragments: 5 .* 4; ask"):
        PartitionOperator(task_id="t", job=job).execute(context)


def test_too_many_parts_are_refused_before_any_work(monkeypatch, context, job):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "4")
    monkeypatch.setattr(pipeline, "count", lambda *_a, **_k: pytest.fail("worked"))
    job.update(algorithm="tds", tds={"partitions": 5}, partitioning={"fragments": 1})
    with pytest.raises(AirflowFailException, match=r"tds\.partitions: 5 .* 4; ask"):
        PartitionOperator(task_id="t", job=job, map_first_phase=True).execute(context)


@pytest.mark.parametrize("mapped", [False, True])
def test_more_fragments_than_asked_for_are_counted_too(monkeypatch, context, job, mapped):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "4")
    job["algorithm"] = "tds"
    Path(job["input"]).write_text("age\n" + "".join(f"{age}\n" for age in range(100)))
    job["partitioning"] = {"fragments": 2, "max_rows": 10, "sample": 1.0}
    task = PartitionOperator(task_id="t", job=job, map_first_phase=mapped)
    with pytest.raises(AirflowFailException, match=r"partitioning\.max_rows: \d+ .* 4; ask"):
        task.execute(context)
    assert [each.name for each in Path(job["output"]).parent.iterdir()] == ["in.csv"]


def test_one_task_may_have_any_number_of_fragments(monkeypatch, context, job):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "4")
    job.update(engine="spark", spark={"shape": "application"}, partitioning={"fragments": 5})
    check_fragments(read_job(job))


def test_a_partition_told_to_stop_removes_its_working_files(monkeypatch, context, job):
    def told_to_stop(_job, *, work, progress, made_by):
        Path(work).mkdir()
        task.on_kill()

    task = PartitionOperator(task_id="t", job=job)
    monkeypatch.setattr(pipeline, "partition", told_to_stop)
    with pytest.raises(SystemExit):
        task.execute(context)
    assert list(Path(job["output"]).parent.iterdir()) == []


def test_the_tasks_of_a_group_share_a_working_directory_and_no_other_does(context, job):
    def place(task_id: str, run_id: str = "manual__1") -> str:
        task = PartitionOperator(task_id=task_id, job=job)
        run = SimpleNamespace(dag_id="a_dag", run_id=run_id)
        return work_of(read_job(job), task, {"dag_run": run})

    assert place("a.partition") == place("a.wrap_up")
    assert place("a.partition") != place("b.partition")
    assert place("a.partition") != place("partition")
    assert place("a.partition") != place("a.partition", "manual__2")


def test_a_fragment_is_named_by_number_and_condition():
    task = AnonymizeFragmentOperator(
        task_id="t", job={}, fragment={"id": 3, "where": "age <= 38", "work": "w"}
    )
    assert task.fragment_name == "3: age <= 38"
    task.fragment = {"id": 0, "where": "", "work": "w", "job": {"output": "/out/poker/2025-06-01"}}
    assert task.fragment_name == "poker/2025-06-01 0: all rows"
    task.fragment = {"id": 1, "where": "zip IN " + "x" * 300, "work": "w"}
    assert len(task.fragment_name) == 120


def test_all_fragments_in_one_application_are_named_together():
    fragment = {"id": 0, "where": "9 fragments in one Spark application", "work": "w"}
    task = AnonymizeFragmentOperator(task_id="t", job={}, fragment={**fragment, "fragments": 9})
    assert task.fragment_name == "9 fragments in one Spark application"


def test_a_fragment_brings_its_job_where_it_has_one(monkeypatch, context, job):
    seen = {}

    def anonymize(its_job, fragment):
        seen.update(output=its_job.output, fragment=fragment)
        return {"id": 0, "rows": 5, "equivalence_classes": 1}

    monkeypatch.setattr(pipeline, "anonymize_fragment", anonymize)
    fragment = {"id": 0, "where": "", "work": "w"}
    task = AnonymizeFragmentOperator(task_id="t", fragment={**fragment, "job": job})
    assert task.execute(context) == summary(0, "w")
    assert seen == {"output": job["output"], "fragment": fragment}


def test_a_fragment_task_that_is_not_mapped_says_so(context, job):
    task = AnonymizeFragmentOperator(task_id="t", job=job, fragment=[{"id": 0}])
    with pytest.raises(AirflowFailException, match="map this task over"):
        task.execute(context)


@pytest.fixture
def tds_job(job):
    """A job with a first phase in two parts, over a hundred rows."""
    Path(job["input"]).write_text("age\n" + "".join(f"{n % 50}\n" for n in range(100)))
    return {**job, "algorithm": "tds", "tds": {"partitions": 2}, "partitioning": {"fragments": 1}}


def test_a_first_phase_is_mapped_over_its_parts(context, tds_job):
    partition = PartitionOperator(task_id="g.p", job=tds_job, map_first_phase=True)
    parts = partition.execute(context)
    assert [each["part"] for each in parts] == [0, 1]
    task = SpecializePartOperator(task_id="g.s", job=tds_job, part=parts[0])
    assert task.part_name == "part 1 of 2"
    summaries = [task.execute(context)]
    task.part = parts[1]
    summaries.append(task.execute(context))
    assert sum(each["rows"] for each in summaries) == 100
    recode = RecodeOperator(task_id="g.r", job=tds_job, parts=summaries)
    assert recode.execute(context) == PartitionOperator(task_id="g.p", job=tds_job).execute(context)


@pytest.mark.parametrize("changed", [{"algorithm": "mondrian"}, {"tds": {"partitions": 1}}])
def test_other_jobs_have_nothing_to_map_but_their_fragments(context, tds_job, changed):
    tds_job.update(changed)
    partition = PartitionOperator(task_id="g.p", job=tds_job, map_first_phase=True)
    assert partition.execute(context) == []
    (fragment,) = RecodeOperator(task_id="g.r", job=tds_job, parts=[]).execute(context)
    assert fragment["rows"] == 100


def test_on_spark_a_first_phase_is_not_mapped(monkeypatch, context, tds_job):
    partition = PartitionOperator(task_id="g.p", job=tds_job, map_first_phase=True)
    place = SimpleNamespace(partition=lambda *_told: [{"id": 0, "rows": 100}])
    monkeypatch.setattr("mondrian_ops.operators.partition.place_of", lambda *_told: place)
    partition.job = {**tds_job, "engine": "spark"}
    assert partition.execute(context) == []


def run_of(dag_id: str, run_id: str) -> SimpleNamespace:
    return SimpleNamespace(dag_id=dag_id, run_id=run_id, start_date=None)


def through_all_phases(job: dict, context: dict, group: str, is_mapped: bool) -> dict:
    """The report of the release that the operators of a group make."""
    partition = PartitionOperator(task_id=f"{group}p", job=job, map_first_phase=is_mapped)
    fragments = partition.execute(context)
    if is_mapped:
        found = [
            SpecializePartOperator(task_id=f"{group}s", job=job, part=part).execute(context)
            for part in fragments
        ]
        fragments = RecodeOperator(task_id=f"{group}r", job=job, parts=found).execute(context)
    summaries = [
        AnonymizeFragmentOperator(task_id=f"{group}a", job=job, fragment=each).execute(context)
        for each in fragments
    ]
    wrap_up = WrapUpOperator(task_id=f"{group}w", job=job, summaries=summaries)
    wrap_up.execute(context)
    CleanUpOperator(task_id=f"{group}c", job=job).execute(context)
    report: dict = json.loads((Path(job["output"]) / "_report.json").read_text())
    return report


@pytest.mark.parametrize("is_mapped", [False, True])
@pytest.mark.parametrize("group", ["", "protect.", "outer.protect."])
def test_a_release_names_its_dag_and_group_and_is_replaced_by_them_only(
    context, tds_job, group, is_mapped
):
    maker = f"hospital/{group[:-1]}" if group else "hospital"
    for night in ("one", "two"):
        context["dag_run"] = run_of("hospital", night)
        report = through_all_phases(tds_job, context, group, is_mapped)
        assert report["made_by"] == maker
    for dag_id, other in (("somebody", group), ("hospital", "another.")):
        context["dag_run"] = run_of(dag_id, "three")
        with pytest.raises(AirflowFailException, match=r"the DAG 'hospital'.*replace: any"):
            through_all_phases(tds_job, context, other, is_mapped)
    tds_job["replace"] = "any"
    report = through_all_phases(tds_job, context, "another.", is_mapped)
    assert report["made_by"] == "hospital/another"
    assert [each.name for each in Path(tds_job["output"]).parent.glob(".*")] == []


def test_a_part_task_that_is_not_mapped_says_so(context, job):
    task = SpecializePartOperator(task_id="t", job=job, part=[{"part": 0}])
    with pytest.raises(AirflowFailException, match="map this task over"):
        task.execute(context)


def test_without_its_working_files_a_recoding_fails_for_good(context, job):
    with pytest.raises(AirflowFailException, match="run again from the partition task"):
        RecodeOperator(task_id="t", job=job, parts=[]).execute(context)


REPORT = {
    "rows": {"input": 5, "published": 5, "suppressed": 0},
    "achieved": {"k": 5},
    "equivalence_classes": 1,
    "metrics": {"GCP": 0.5, "NCP": 2.5, "LM": 0.5, "DP": 25},
    "risk": {"prosecutor_max": 0.2, "prosecutor_avg": 0.2},
    "class_sizes": [[5, 1]],
    "timings_s": {"partition": 0.1},
    "job": {"k": 2, "algorithm": "mondrian"},
}


class Events(dict):
    """Outlet events as Airflow hands them out: one accessor per outlet."""

    class Accessor:
        extra = None

        def __init__(self):
            self.added = []

        def add(self, asset, extra):
            self.added.append((asset.uri, extra))

    def __missing__(self, outlet):
        return self.setdefault(outlet, self.Accessor())


@pytest.fixture
def wrapped_up(monkeypatch):
    """Where the pipeline's check and publish note what they were called with."""
    called = {}

    def check(_job, *, work, summaries, progress):
        called.update(work=work, summaries=summaries)
        progress("wrap_up", 1, 1)
        return pipeline.Checked(REPORT, "")

    monkeypatch.setattr(pipeline, "published_once", lambda _job, _work, make: make())
    monkeypatch.setattr(pipeline, "check", check)
    monkeypatch.setattr(pipeline, "publish", lambda _job, *, work: REPORT)
    monkeypatch.setattr("mondrian_ops.report.render_text", lambda *_a, **_k: "the report")
    return called


def test_wrap_up_takes_its_own_fragments_and_returns_a_small_summary(wrapped_up, context, job):
    task = WrapUpOperator(task_id="g.t", job=job, summaries=[])
    work = work_of(read_job(job), task, context)
    task.summaries = [summary(0, work), summary(0, "of another release"), summary(1, work)]
    result = task.execute(context)
    assert [each["id"] for each in wrapped_up["summaries"]] == [0, 1]
    assert all("work" not in each for each in wrapped_up["summaries"])
    assert wrapped_up["work"] == work
    assert set(result) == {
        *("output", "rows", "asked", "achieved", "equivalence_classes"),
        *("metrics", "risk", "timings_s"),
    }


def test_summaries_of_many_fragments_are_working_files(wrapped_up, monkeypatch, context, job):
    wrap_up = WrapUpOperator(task_id="g.t", job=job, summaries=[])
    work = storage.WorkDir(work_of(read_job(job), wrap_up, context))
    work.create()
    summaries = [{"id": n, "rows": 5, "equivalence_classes": 1} for n in range(3)]
    monkeypatch.setattr(pipeline, "anonymize_fragment", lambda *_a: {"summaries": summaries})
    fragment = {"id": 0, "where": "all", "work": work.root, "fragments": 3}
    task = AnonymizeFragmentOperator(task_id="g.a", job=job, fragment=fragment)
    wrap_up.summaries = [task.execute(context)]
    assert wrap_up.summaries == [{"summaries": 3, "work": work.root}]
    wrap_up.execute(context)
    assert wrapped_up["summaries"] == summaries


def test_wrap_up_without_any_fragment_fails_for_good(wrapped_up, context, job):
    task = WrapUpOperator(task_id="t", job=job, summaries=[summary(0, "of another release")])
    with pytest.raises(AirflowFailException, match="no fragment of it was anonymized"):
        task.execute(context)
    assert not wrapped_up


def test_wrap_up_announces_the_release_to_its_outlets(wrapped_up, context, job):
    asset, alias = Asset("visits"), AssetAlias("releases")
    task = WrapUpOperator(task_id="t", job=job, summaries=[], outlets=[asset, alias])
    task.summaries = [summary(0, work_of(read_job(job), task, context))]
    context["outlet_events"] = Events()
    result = task.execute(context)
    assert context["outlet_events"][asset].extra == result
    assert context["outlet_events"][alias].added == [(Path(job["output"]).as_uri(), result)]


def test_fragments_of_several_jobs_are_paired_by_working_directory(context, job):
    jobs = [{**job, "output": f"{job['output']}-{name}"} for name in "ab"] + [{"k": 1}]
    task = GatherFragmentsOperator(task_id="g.t", job=jobs, partitions=[])
    works = [work_of(read_job(each), task, context) for each in jobs[:2]]
    # The first job failed in its partition task: the second's fragments come first.
    task.partitions = [[{"id": 0, "work": works[1]}, {"id": 1, "work": works[1]}]]
    assert task.execute(context) == [
        {"id": 0, "work": works[1], "job": jobs[1]},
        {"id": 1, "work": works[1], "job": jobs[1]},
    ]


def test_jobs_that_have_no_fragments_at_all_fail_for_good(context, job):
    """Tasks mapped over nothing would be skipped, and the run a success."""
    task = GatherFragmentsOperator(task_id="t", job=[job, {"k": 1}], partitions=[])
    with pytest.raises(AirflowFailException, match=r"none of 2 data set\(s\) was partitioned"):
        task.execute(context)


def test_the_fragments_of_all_jobs_together_are_limited(monkeypatch, context, job):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "1")
    task = GatherFragmentsOperator(task_id="t", job=[job], partitions=[])
    work = work_of(read_job(job), task, context)
    task.partitions = [[{"id": 0, "work": work}, {"id": 1, "work": work}]]
    with pytest.raises(AirflowFailException, match="2 mapped tasks are more than"):
        task.execute(context)


def test_clean_up_takes_one_job_or_many_or_none(context, job):
    task = CleanUpOperator(task_id="t", job=job)
    work = Path(work_of(read_job(job), task, context))
    for given in (job, [{"k": 1}, job], "/no/such/job.yaml", None):
        work.mkdir(exist_ok=True)
        task.job = given
        task.execute(context)
        assert work.exists() == (given in ("/no/such/job.yaml", None))


def test_where_working_files_will_be_is_said_before_there_are_any(monkeypatch, context, job):
    """A partition task that is killed returns nothing, and leaves raw rows behind."""
    task = PartitionOperator(task_id="t", job=job)

    def killed(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "partition", killed)
    with pytest.raises(KeyboardInterrupt):
        task.execute(context)
    clean_up = CleanUpOperator(task_id="c", job="/no/such/job.yaml")
    clean_up.upstream_task_ids.add("t")
    work = Path(work_of(read_job(job), task, context))
    work.mkdir()
    clean_up.execute(context)
    assert not work.exists()


def test_working_files_where_jobs_may_not_write_any_more_are_not_left_silently(
    context, job, monkeypatch, tmp_path
):
    """An administrator narrows the limits while a run is under way."""
    there = {**job, "output": str(tmp_path / "still" / "out")}
    task = CleanUpOperator(task_id="c", job=[job, there])
    task.upstream_task_ids.add("t")
    works = [Path(work_of(read_job(each), task, context)) for each in (job, there)]
    for work in works:
        work.mkdir(parents=True)
    announce_work(context, str(works[0]))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS", str(tmp_path / "still"))
    with pytest.raises(AirflowFailException, match="allowed_outputs again") as caught:
        task.execute(context)
    assert str(works[0]) in str(caught.value)
    assert str(works[1]) not in str(caught.value)
    assert [work.exists() for work in works] == [True, False]
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS", str(tmp_path))
    task.execute(context)
    assert not works[0].exists()


def test_a_job_may_be_a_file_with_some_options_changed(tmp_path, job):
    file = tmp_path / "job.yaml"
    file.write_text("k: 2\nquasi_identifiers: [age]\n")
    settings = [f"input={job['input']}", f"output={job['output']}", "k=7"]
    read = read_job({"file": str(file), "set": settings, "name": "people/today"})
    assert (read.k, read.output) == (7, job["output"])
    assert read_job(job).k == 2


def test_releases_are_named_for_the_grid():
    assert release_name({"output": "/out/poker/2025-06-01/"}) == "poker/2025-06-01"
    assert release_name({"file": "/jobs/poker.yaml", "name": "poker/today"}) == "poker/today"
    assert release_name("/jobs/poker.yaml") == "poker.yaml"


def test_operators_import_nothing_heavy_at_module_level():
    heavy = {"numpy", "numba", "pandas", "pyarrow", "mondrian_ops.pipeline", "mondrian_ops.storage"}
    folder = Path(inspect.getfile(operators)).parent
    for file in folder.glob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & heavy, file.name
