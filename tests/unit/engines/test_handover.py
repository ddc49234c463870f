"""What tasks hand over survives its way as JSON, and another version's is refused."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest

from mondrian_ops.engines.handover import Fragment, Part, PartSummary, RunState, Sample, Summary
from mondrian_ops.errors import StorageError

FRAGMENT = Fragment(
    id=1, where="age <= 3", rows=5, work="w", any_of=[[{"column": "age", "op": "<=", "value": 3}]]
)
VALUES = [
    FRAGMENT,
    Fragment.together([FRAGMENT, FRAGMENT]),
    Summary(1, "age <= 3", "w", 5, 0, 1, 25, 0.1, 1.0),
    Part(0, 2, "w"),
    PartSummary(0, 5, 3, 2, 0.1, 1.0),
    Sample("w", 9, 5, fragments=20, drawn=2),
    RunState(5, {}, "", {}, "scatter", [[0, 1]], (FRAGMENT,), {"age": "interval"}, {"note": ""}),
]


def kind(value: object) -> str:
    return type(value).__name__


@pytest.mark.parametrize("value", VALUES, ids=kind)
def test_a_value_comes_back_from_json(value):
    travelled = json.loads(json.dumps(value.to_dict(), allow_nan=False))
    assert type(value).from_dict(travelled) == value
    with_more = {**travelled, "job": {"of": "a mapped task"}}
    assert type(value).from_dict(with_more) == value


@pytest.mark.parametrize("value", VALUES, ids=kind)
def test_one_of_another_version_is_refused(value):
    with pytest.raises(StorageError, match="schema version 99"):
        type(value).from_dict({**value.to_dict(), "schema": 99})


@pytest.mark.parametrize("value", VALUES, ids=kind)
def test_nobody_changes_a_value(value):
    with pytest.raises(FrozenInstanceError):
        value.rows = 6


def test_all_fragments_together_are_the_work_of_one_task():
    together = VALUES[1]
    assert (together.fragments, together.rows, together.work) == (2, 10, "w")
    assert together.name == "2 fragments in one Spark application"
    assert (FRAGMENT.name, FRAGMENT.fragments) == ("1: age <= 3", None)
