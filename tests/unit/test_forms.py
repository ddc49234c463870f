"""What a trigger form says, as a task takes it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.sdk import DAG

from mondrian_ops.forms import Answer


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
