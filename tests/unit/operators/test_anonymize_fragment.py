"""The task of one fragment: its name, its job, its summary."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowFailException

from handed_over import fragment, summary
from mondrian_ops import pipeline
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.operators import AnonymizeFragmentOperator
from task_contexts import begun_work


def test_a_fragment_is_named_by_number_and_condition():
    task = AnonymizeFragmentOperator(task_id="t", job={}, fragment=fragment(3, where="age <= 38"))
    assert task.fragment_name == "3: age <= 38"
    task.fragment = {**fragment(), "job": {"output": "/out/poker/2025-06-01"}}
    assert task.fragment_name == "poker/2025-06-01 0: all rows"
    task.fragment = fragment(1, where="zip IN " + "x" * 300)
    assert len(task.fragment_name) == 120


def test_all_fragments_in_one_application_are_named_together():
    where = "9 fragments in one Spark application"
    task = AnonymizeFragmentOperator(
        task_id="t", job={}, fragment=fragment(where=where, fragments=9)
    )
    assert task.fragment_name == where


@pytest.fixture
def anonymized(monkeypatch):
    """The fragments that are anonymized, and the cores that each is cut on."""
    calls = []

    def anonymize(given, engine):
        calls.append((given, engine._cores))
        return Summary.from_dict(summary(given.id, given.work))

    monkeypatch.setattr(pipeline, "anonymize_fragment", anonymize)
    return calls


def test_a_fragment_brings_its_job_where_it_has_one(anonymized, context, job):
    own = fragment(work=begun_work(context, job).root)
    task = AnonymizeFragmentOperator(task_id="t", fragment={**own, "job": job})
    assert task.execute(context) == summary(work=own["work"])
    assert anonymized == [(Fragment.from_dict(own), 1)]


@pytest.mark.parametrize(("given", "taken"), [(3, 3), ("2", 2), ("", 1), (None, 1)])
def test_a_fragment_is_cut_on_the_cores_that_the_task_is_given(
    anonymized, context, job, given, taken
):
    own = fragment(work=begun_work(context, job).root)
    task = AnonymizeFragmentOperator(task_id="t", job=job, fragment=own, cores=given)
    task.execute(context)
    assert [cores for _, cores in anonymized] == [taken]


@pytest.mark.parametrize("given", [0, -1, 1.5, "many"])
def test_cores_that_are_no_number_of_them_are_refused(context, job, given):
    task = AnonymizeFragmentOperator(task_id="t", job=job, fragment=fragment(), cores=given)
    with pytest.raises(AirflowFailException, match=r"^cores: must be"):
        task.execute(context)


def test_a_fragment_task_that_is_not_mapped_says_so(context, job):
    task = AnonymizeFragmentOperator(task_id="t", job=job, fragment=[{"id": 0}])
    with pytest.raises(AirflowFailException, match="map this task over"):
        task.execute(context)
