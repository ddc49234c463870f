"""The operators of the frontier by themselves."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops.engines.handover import Sample
from mondrian_ops.operators import (
    FrontierOperator,
    FrontierPointOperator,
    FrontierSampleOperator,
    PartitionOperator,
)
from mondrian_ops.operators.base import work_of
from mondrian_ops.stores import load_job
from teardowns import clean_up_after

POINT = {
    "k": 2,
    "l": None,
    "drawn": Sample("w", 1, 1).to_dict(),
}


@pytest.fixture
def data(job):
    """The job, over data that is there."""
    rows = "".join(f"{20 + at % 30},{'abc'[at % 3]}\n" for at in range(3000))
    Path(job["input"]).write_text("age,ill\n" + rows)
    return {**job, "sensitive": ["ill"]}


def traced(job, context, **arguments):
    """What the three tasks return, one after the other; the working files are left."""
    sample = FrontierSampleOperator(task_id="sample", job=job, **arguments).execute(context)
    points = [
        FrontierPointOperator(task_id="point", job=job, point=point).execute(context)
        for point in sample
    ]
    gather = FrontierOperator(task_id="frontier", job=job, sample=sample, points=points)
    return sample, points, gather.execute(context)


def test_a_release_of_the_same_job_in_the_same_run_has_other_working_files(data, context):
    traced(data, context, k=[2])
    assert PartitionOperator(task_id="partition", job=data).execute(context)


def test_the_grid_is_measured_gathered_and_cleaned_up(data, context):
    folder = Path(data["output"]).parent
    sample, points, summary = traced(data, context, k=["2", " ", "10"], l="1,2,4", rows="")
    assert [(each["k"], each["l"]) for each in sample] == [
        *((2, None), (10, None), (2, 2), (10, 2), (2, 4), (10, 4)),
    ]
    assert ["reason" in each for each in points] == [False] * 4 + [True] * 2
    assert (summary["points"], summary["attainable"]) == (6, 4)
    assert summary["output"] == f"{data['output']}_frontier"
    with open(summary["files"][0]) as file:
        assert [row["k"] for row in csv.DictReader(file)] == ["2", "10"] * 3
    clean_up_after(data, "sample").execute(context)
    assert sorted(each.name for each in folder.iterdir()) == ["in.csv", "out_frontier"]


def test_tasks_share_what_was_drawn_and_hand_on_little(data, context):
    rows = "".join(f"{at % 977},{'abc'[at % 3]}\n" for at in range(40_000))
    Path(data["input"]).write_text("age,ill\n" + rows)
    sample, points, _summary = traced(data, context, k=[5], sample=0.2)
    work = work_of(load_job({**data, "output": f"{data['output']}_frontier"}), context)
    assert sample[0]["drawn"]["work"] == work
    assert sample[0]["drawn"]["drawn"] > 0
    assert points[0]["GCP_error"] is not None
    assert len(json.dumps([sample, points])) < 1000
    clean_up_after(data, "sample").execute(context)
    assert not Path(work).exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"k": []}, "at least one k"),
        ({"k": ["two"]}, r"k\[0\]: must be a number"),
        ({"k": ["2"], "l": ["1", "x"]}, r"l\[1\]: must be a number"),
        ({"k": ["2"], "rows": "many"}, "rows: must be a number"),
        ({"k": ["2"], "rows": 2.5}, "rows: must be a whole number"),
        ({"k": ["2"], "rows": 0}, "rows: must be at least 1"),
        ({"k": ["2"], "sample": 2}, "sample: must be a rate"),
        ({"k": ["1"]}, "k = 1, l = 1: k: must be"),
    ],
)
def test_what_makes_no_sense_fails_for_good_and_leaves_nothing(data, context, arguments, error):
    with pytest.raises(AirflowFailException, match=error):
        FrontierSampleOperator(task_id="sample", job=data, **arguments).execute(context)
    assert [each.name for each in Path(data["output"]).parent.iterdir()] == ["in.csv"]


def test_a_grid_larger_than_airflow_maps_is_refused_before_any_work(data, context, monkeypatch):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "4")
    task = FrontierSampleOperator(task_id="sample", job=data, k=[2, 3, 4], l=[1, 2])
    with pytest.raises(AirflowFailException, match="k, l: 6 mapped tasks are more than"):
        task.execute(context)


def test_a_point_must_be_one(data, context):
    task = FrontierPointOperator(task_id="point", job=data, point=[POINT])
    with pytest.raises(AirflowFailException, match="map this task over its output"):
        task.execute(context)


def test_a_point_is_named_after_its_k_and_l():
    def name(**point):
        return FrontierPointOperator(task_id="point", job={}, point=point).point_name

    assert name(k=5, l=None) == "k = 5, l = 1"
    assert name(k=10, l=2) == "k = 10, l = 2"


def test_a_release_is_not_written_into(data, context):
    output = Path(data["output"])
    output.mkdir()
    (output / "_SUCCESS").write_text("{}")
    drawn = {**POINT["drawn"], "work": work_of(load_job(data), context)}
    point = {**POINT, "drawn": drawn}
    task = FrontierOperator(
        task_id="frontier", job=data, sample=[point], points=[], folder=str(output)
    )
    with pytest.raises(AirflowFailException, match="holds a release"):
        task.execute(context)
