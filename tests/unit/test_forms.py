"""What a trigger form says, as a task takes it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import ParamValidationError

from added_criteria import added
from mondrian_ops.forms import Answer, job_answers, job_form
from mondrian_ops.job.job import Job


def answer(value):
    """What a task is given of a form's field."""
    dag = DAG("a_dag", schedule=None, params={"field": value})
    context = {"dag_run": SimpleNamespace(conf={"field": value}), "params": {"field": value}}
    return Answer(dag, "field").resolve(context)


@pytest.mark.parametrize(
    ("lines", "taken"),
    [
        (["age", "", "  ", "zip=prefix"], ["age", "zip=prefix"]),
        ([""], []),
        (["''", '""', "''=prefix", " '' = set"], ["", "", "=prefix", "= set"]),
        (["'a'", "''b", "a=''", "''''"], ["'a'", "''b", "a=''", "''''"]),
        ([1, None], [1, None]),
    ],
)
def test_an_emptied_line_is_none_and_two_quotes_are_the_empty_name(lines, taken):
    assert answer(lines) == taken


@pytest.mark.parametrize("value", ["", "''", 5, None, {"a": [""]}])
def test_what_is_no_list_stays(value):
    assert answer(value) == value


def test_only_a_list_that_is_required_cannot_be_emptied():
    form = job_form(identifiers=["name"], quasi_identifiers=["age"])
    assert form["identifiers"].resolve(None) is None
    with pytest.raises(ParamValidationError):
        form["quasi_identifiers"].resolve(None)
    emptied = {"input": "i", "output": "o", "k": 2, "quasi_identifiers": ["age"]}
    assert Job.from_dict({**emptied, "identifiers": None}) == Job.from_dict(emptied)


def test_a_form_has_the_fields_that_are_named_with_other_defaults():
    form = job_form("input", "k", "fragments", "spark_conf", "cut", input="in.csv", k=7)
    assert {name: param.value for name, param in form.items()} == {
        "input": "in.csv",
        "k": 7,
        "cut": "auto",
        "fragments": None,
        "spark_conf": [],
    }
    assert form["k"].schema["minimum"] == 2
    assert job_form("fragments", fragments=3)["fragments"].value == 3
    assert form["fragments"].schema["type"] == ["null", "integer"]
    assert (
        form["fragments"]
        .schema["description_md"]
        .endswith("Empty: as many as give each task enough work.")
    )
    assert form["cut"].schema["enum"] == ["auto", "median", "gain", "lookahead"]
    assert form["cut"].schema["section"] == "Algorithm"


def test_a_description_names_options_by_their_titles():
    texts = {name: field.schema["description_md"] for name, field in job_form().items()}
    assert "**Cut: auto**" in texts["cut_budget_s"]
    assert "**Maximum risk**" in texts["on_exceeded"]
    assert "**country=hierarchy:countries.csv**" in texts["quasi_identifiers"]


def resolved(job, context):
    """A job with what the form says in place of its answers."""
    if isinstance(job, dict):
        return {key: resolved(value, context) for key, value in job.items()}
    return job.resolve(context)


def test_the_answers_of_a_form_are_a_job():
    form = job_form(input="in.csv", output="out", k=5, quasi_identifiers=["age"])
    dag = DAG("a_dag", schedule=None, params=form)
    answers = {name: param.value for name, param in form.items()} | {
        "sensitive": ["income"],
        "t": 0.3,
        "t_distance": "hierarchical",
        "sensitive_hierarchy": ["income=income.csv", ""],
        "fragments": 3,
        "spark_conf": ["spark.a=1"],
    }
    context = {"dag_run": SimpleNamespace(conf=answers), "params": answers}
    assert Job.from_dict(resolved(job_answers(dag, form), context)) == Job.from_dict(
        {
            **{name: answers[name] for name in ("input", "output", "k", "sensitive", "t")},
            "quasi_identifiers": ["age"],
            "t_distance": "hierarchical",
            "sensitive_hierarchy": {"income": "income.csv"},
            "partitioning": {"fragments": 3},
            "spark": {"conf": {"spark.a": "1"}},
        }
    )


def test_a_form_asks_for_the_criteria_of_installed_packages():
    with added():
        field = job_form()["beta_likeness_beta"]
        dag = DAG("a_dag", schedule=None, params={"beta_likeness_beta": field})
        answers = job_answers(dag, ["k", "beta_likeness_beta"])
    assert (field.value, field.schema["type"]) == (None, ["null", "number"])
    assert field.schema["section"] == "More on privacy"
    assert field.schema["exclusiveMinimum"] == 0
    assert repr(answers["beta_likeness"]) == "{'beta': params['beta_likeness_beta']}"
