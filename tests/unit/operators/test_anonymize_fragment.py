"""The task of one fragment: its name, its job, its summary."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops import pipeline
from mondrian_ops.operators import AnonymizeFragmentOperator


def summary(fragment_id: int, work: str) -> dict:
    return {"id": fragment_id, "rows": 5, "equivalence_classes": 1, "work": work}


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

    def anonymize(its_job, fragment, cores):
        seen.update(output=its_job.output, fragment=fragment, cores=cores)
        return {"id": 0, "rows": 5, "equivalence_classes": 1}

    monkeypatch.setattr(pipeline, "anonymize_fragment", anonymize)
    fragment = {"id": 0, "where": "", "work": "w"}
    task = AnonymizeFragmentOperator(task_id="t", fragment={**fragment, "job": job})
    assert task.execute(context) == summary(0, "w")
    assert seen == {"output": job["output"], "fragment": fragment, "cores": 1}


@pytest.mark.parametrize(("given", "taken"), [(3, 3), ("2", 2), ("", 1), (None, 1)])
def test_a_fragment_is_cut_on_the_cores_that_the_task_is_given(
    monkeypatch, context, job, given, taken
):
    seen = []
    found = {"id": 0, "rows": 5, "equivalence_classes": 1}
    monkeypatch.setattr(
        pipeline, "anonymize_fragment", lambda *_given, cores: seen.append(cores) or found
    )
    fragment = {"id": 0, "where": "", "work": "w"}
    AnonymizeFragmentOperator(task_id="t", job=job, fragment=fragment, cores=given).execute(context)
    assert seen == [taken]


@pytest.mark.parametrize("given", [0, -1, 1.5, "many"])
def test_cores_that_are_no_number_of_them_are_refused(context, job, given):
    fragment = {"id": 0, "where": "", "work": "w"}
    task = AnonymizeFragmentOperator(task_id="t", job=job, fragment=fragment, cores=given)
    with pytest.raises(AirflowFailException, match=r"^cores: must be"):
        task.execute(context)


def test_a_fragment_task_that_is_not_mapped_says_so(context, job):
    task = AnonymizeFragmentOperator(task_id="t", job=job, fragment=[{"id": 0}])
    with pytest.raises(AirflowFailException, match="map this task over"):
        task.execute(context)
