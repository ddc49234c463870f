from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mondrian_ops.core import limits
from mondrian_ops.core.errors import JobError
from mondrian_ops.core.job import (
    DiMondrian,
    Job,
    Partitioning,
    QuasiIdentifier,
    Samarati,
    Tds,
    rows_of,
)

DESIGN_EXAMPLE = """
input: data/adult.parquet
output: out/adult
k: 5
l: 2
identifiers: [name, ssn]
identifier_policy: drop
quasi_identifiers:
  - {name: age, generalization: interval}
  - {name: native-country, generalization: hierarchy, hierarchy: countries.csv}
  - {name: zip, generalization: prefix}
  - {name: occupation, generalization: set}
sensitive: [income]
algorithm: mondrian
cut: auto
partitioning: {strategy: multidimensional, fragments: 8, sample: 0.001, seed: 0}
retrieval: auto
engine: local
samarati: {max_suppressed: 20, choice: minimal}
tds: {partitions: 4, k_intermediate: 5000}
di_mondrian: {cut_points: 2}
"""


def minimal(**changes: Any) -> dict[str, Any]:
    return {"input": "in.csv", "output": "out", "k": 5, "quasi_identifiers": ["age"]} | changes


def with_sensitive(**changes: Any) -> dict[str, Any]:
    return minimal(sensitive=["income"]) | changes


def one(item: object) -> QuasiIdentifier:
    return Job.from_dict(minimal(quasi_identifiers=[item])).quasi_identifiers[0]


def test_who_has_several_rows_is_named_by_an_identifier() -> None:
    job = Job.from_dict(minimal(entity_id="person", identifiers=["name"]))
    assert (job.entity_id, job.identifiers) == ("person", ("name", "person"))
    assert Job.from_dict(job.to_dict()) == job
    assert Job.from_dict(minimal(entity_id="name", identifiers=["name"])).identifiers == ("name",)
    assert "entity_id" not in Job.from_dict(minimal()).to_dict()


@pytest.mark.parametrize(
    ("changes", "where"),
    [({"quasi_identifiers": ["age", "person"]}, "quasi_identifiers[1]"),
     ({"sensitive": ["person"]}, "sensitive[0]")],
)  # fmt: skip
def test_who_has_several_rows_is_named_by_no_other_column(changes: Any, where: str) -> None:
    with pytest.raises(JobError) as caught:
        Job.from_dict(minimal(entity_id="person", **changes))
    assert str(caught.value).startswith(f"{where}: column 'person' is listed already, at entity_id")


def test_the_example_of_the_design_is_read_whole() -> None:
    assert Job.from_dict(yaml.safe_load(DESIGN_EXAMPLE)) == Job(
        input="data/adult.parquet",
        output="out/adult",
        k=5,
        l=2,
        identifiers=("name", "ssn"),
        quasi_identifiers=(
            QuasiIdentifier("age", "interval"),
            QuasiIdentifier("native-country", "hierarchy", "countries.csv"),
            QuasiIdentifier("zip", "prefix"),
            QuasiIdentifier("occupation", "set"),
        ),
        sensitive=("income",),
        partitioning=Partitioning("multidimensional", 8, 0.001, 0),
        samarati=Samarati(20, "minimal"),
        tds=Tds(4, 5000),
        di_mondrian=DiMondrian(2),
    )


def test_the_defaults() -> None:
    assert Job.from_dict(minimal()) == Job(
        input="in.csv", output="out", k=5, quasi_identifiers=(QuasiIdentifier("age"),)
    )


def test_a_job_is_hashable_and_reading_does_not_change_the_mapping() -> None:
    mapping = yaml.safe_load(DESIGN_EXAMPLE)
    before = copy.deepcopy(mapping)
    assert isinstance(hash(Job.from_dict(mapping)), int)
    assert mapping == before


@pytest.mark.parametrize(
    "mapping",
    [
        yaml.safe_load(DESIGN_EXAMPLE),
        minimal(),
        with_sensitive(l=1.0e1, diversity="recursive", c=0.5, unlisted="drop", relaxed=True),
        with_sensitive(l=2, missing_sensitive="value"),
        with_sensitive(l=2.5, diversity="entropy", t=0.3, t_distance="ordered"),
        with_sensitive(
            t=0.3, t_distance="hierarchical", sensitive_hierarchy={"income": "income.csv"}
        ),
        minimal(quasi_identifiers=["age=ladder:5/10/20@16", "w=grid:0.5@-1", {"name": "a=b"}]),
        minimal(cut="gain", cut_budget_s=2, interval_style="bounds", retrieval="scatter"),
    ],
)
def test_round_trip_through_json(mapping: dict[str, Any]) -> None:
    job = Job.from_dict(mapping)
    assert Job.from_dict(json.loads(json.dumps(job.to_dict()))) == job


def test_to_dict_leaves_out_what_was_not_asked_for() -> None:
    assert Job.from_dict(minimal()).to_dict() == {
        "input": "in.csv",
        "output": "out",
        "k": 5,
        "l": None,
        "identifiers": [],
        "quasi_identifiers": [{"name": "age"}],
        "sensitive": [],
        "unlisted": "drop",
        "algorithm": "mondrian",
        "cut": "auto",
        "partitioning": {
            "strategy": "multidimensional",
            "fragments": 8,
            "sample": 0.001,
            "seed": 0,
            "min_sample": 1000,
            "max_rows": 10_000_000,
        },
        "retrieval": "auto",
        "engine": "local",
    }


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("age", QuasiIdentifier("age")),
        ("zip=prefix", QuasiIdentifier("zip", "prefix")),
        (" zip = prefix ", QuasiIdentifier("zip", "prefix")),
        (
            "native-country=hierarchy:countries.csv",
            QuasiIdentifier("native-country", "hierarchy", "countries.csv"),
        ),
        (
            "x=hierarchy:s3://bucket/day=1/x.csv",
            QuasiIdentifier("x", "hierarchy", "s3://bucket/day=1/x.csv"),
        ),
        ("age=ladder:5/10/20", QuasiIdentifier("age", "hierarchy", ladder=(5, 10, 20))),
        (
            "age=ladder:5/10/20@16",
            QuasiIdentifier("age", "hierarchy", ladder=(5, 10, 20), origin=16),
        ),
        ("age=grid:5", QuasiIdentifier("age", "interval", grid=5)),
        ("t=grid:0.5@-40", QuasiIdentifier("t", "interval", grid=0.5, origin=-40)),
        ({"name": "a=b", "generalization": "set"}, QuasiIdentifier("a=b", "set")),
        ({"name": "c", "hierarchy": "c.csv"}, QuasiIdentifier("c", "hierarchy", "c.csv")),
        (
            {"name": "age", "generalization": "hierarchy", "ladder": [5, 10, 20], "origin": 16},
            QuasiIdentifier("age", "hierarchy", ladder=(5, 10, 20), origin=16),
        ),
        ({"name": "w", "ladder": [0.1, 0.3]}, QuasiIdentifier("w", "hierarchy", ladder=(0.1, 0.3))),
        ({"name": "age", "generalization": None}, QuasiIdentifier("age")),
    ],
)
def test_forms_of_a_quasi_identifier(item: object, expected: QuasiIdentifier) -> None:
    assert one(item) == expected
    assert one(expected.to_dict()) == expected


def test_the_values_of_a_form_mean_what_they_show() -> None:
    form = {
        "input": "in.csv",
        "output": "out",
        "k": "5",
        "l": None,
        "t": "",
        "identifiers": [],
        "quasi_identifiers": ["age", "zip=prefix"],
        "sensitive": None,
        "relaxed": "false",
        "cut": "",
        "partitioning": {"fragments": "4", "sample": "1e-2", "seed": None},
    }
    job = Job.from_dict(form)
    assert (job.k, job.l, job.t, job.relaxed, job.cut) == (5, None, None, False, "auto")
    assert job.quasi_identifier_names == ("age", "zip")
    assert job.partitioning == Partitioning(fragments=4, sample=0.01)


def test_a_column_may_have_an_empty_name() -> None:
    for item in ("", {"name": ""}):
        assert one(item) == QuasiIdentifier("")
        assert one(QuasiIdentifier("").to_dict()) == QuasiIdentifier("")
    assert one("=prefix") == QuasiIdentifier("", "prefix")
    assert one(" = hierarchy:c.csv") == QuasiIdentifier("", "hierarchy", "c.csv")
    for role in ("identifiers", "sensitive"):
        job = Job.from_dict(minimal(**{role: ["", "b"]}))
        assert getattr(job, role) == ("", "b")
        assert Job.from_dict(job.to_dict()) == job
        with pytest.raises(JobError, match=rf"{role}\[1\]: column '' is listed twice"):
            Job.from_dict(minimal(**{role: ["", ""]}))
    with pytest.raises(JobError, match=r"column '' is listed already, at identifiers\[0\]"):
        Job.from_dict(minimal(identifiers=[""], quasi_identifiers=["=set"]))


def test_blanks_between_commas_name_nothing() -> None:
    job = Job.from_dict(minimal(identifiers="a, ,b,", sensitive="", quasi_identifiers="c,,d=set"))
    assert job.identifiers == ("a", "b")
    assert job.sensitive == ()
    assert job.quasi_identifier_names == ("c", "d")


@pytest.mark.parametrize(
    ("key", "limit"),
    [
        ("quasi_identifiers", "quasi_identifiers"),
        ("sensitive", "sensitive"),
        ("identifiers", "columns"),
    ],
)
def test_lists_have_a_limit(key: str, limit: str) -> None:
    most = limits.LIMITS[limit].default
    names = [f"c{at}" for at in range(most + 1)]
    assert Job.from_dict(minimal(**{key: names[:-1]}))
    for listed in (names, ",".join(names)):
        with pytest.raises(
            JobError, match=f"^{key}: lists {most + 1:,} of them; the limit '{limit}' is {most:,}: "
        ):
            Job.from_dict(minimal(**{key: listed}))
    with limits.changed(**{limit: most + 1}):
        assert Job.from_dict(minimal(**{key: names}))


def test_what_makes_tasks_has_a_limit() -> None:
    for section, key in (("partitioning", "fragments"), ("tds", "partitions")):
        assert Job.from_dict(minimal(**{section: {key: 10_000}}))
        with pytest.raises(JobError, match=f"^{section}.{key}: asks for 10,001; the limit 'frag"):
            Job.from_dict(minimal(**{section: {key: 10_001}}))


def test_a_ladder_has_a_limit() -> None:
    with limits.changed(hierarchy_levels=3):
        assert one({"name": "a", "ladder": [1, 2, 4]})
        with pytest.raises(
            JobError, match=r"ladder: lists 4 of them; the limit 'hierarchy_levels'"
        ):
            one({"name": "a", "ladder": [1, 2, 4, 8]})


def test_values_of_any_depth_are_refused_in_a_few_words() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    for key in ("quasi_identifiers", "identifiers", "k", "partitioning", "algorithm", "ladder"):
        with pytest.raises(JobError) as caught:
            Job.from_dict(minimal(**{key: deep}))
        assert len(str(caught.value)) < 400


def test_a_text_is_a_list_separated_by_commas() -> None:
    job = Job.from_dict(with_sensitive(sensitive="income, wealth", quasi_identifiers="a, b=set"))
    assert job.sensitive == ("income", "wealth")
    assert job.quasi_identifiers == (QuasiIdentifier("a"), QuasiIdentifier("b", "set"))


def test_paths_and_numbers_of_other_libraries_are_taken() -> None:
    job = Job.from_dict(minimal(input=Path("in.csv"), k=np.int64(7)))
    assert (job.input, job.k, type(job.k)) == ("in.csv", 7, int)


def test_paths_may_be_absent_for_tables_in_memory() -> None:
    job = Job.from_dict({"k": 2, "quasi_identifiers": ["age"]}, paths_required=False)
    assert (job.input, job.output) == (None, None)
    assert Job.from_dict(job.to_dict(), paths_required=False) == job


WRONG = [
    # what is wrong, start of the message, other parts of the message
    ({"input": None}, "input: is required", []),
    ({"output": ""}, "output: is required", []),
    ({"input": 7}, "input: must be text, not 7", ["quotes"]),
    ({"sensitiv": ["x"]}, "sensitiv: unknown option", ["did you mean 'sensitive'?"]),
    ({"zzz": 1}, "zzz: unknown option", ["known here: input, output, k"]),
    ({"fragments": 8}, "fragments: does not stand here", ["partitioning.fragments"]),
    ({"k": None}, "k: is required", []),
    ({"k": 1}, "k: must be a whole number of at least 2, not 1", []),
    ({"k": 2.5}, "k: must be a whole number", ["2.5"]),
    ({"k": True}, "k: must be a whole number", ["True"]),
    ({"k": "five"}, "k: must be a whole number", ["'five'"]),
    ({"k": float("nan")}, "k: must be a whole number", ["nan"]),
    ({"k": 10**400}, "k: must be a whole number", []),
    ({"k": "1" * 400}, "k: must be a whole number", []),
    ({"k": [5]}, "k: must be a whole number", ["[5]"]),
    ({"l": 2}, "l: needs sensitive", []),
    ({"l": 1, "sensitive": ["s"]}, "l: must be at least 2, not 1", ["leave it out"]),
    ({"l": 2.5, "sensitive": ["s"]}, "l: must be a whole number", ["2.5", "entropy"]),
    ({"l": "many", "sensitive": ["s"]}, "l: must be a number, not 'many'", []),
    ({"diversity": "entropy"}, "diversity: entropy diversity needs l", []),
    (
        {"l": 2, "sensitive": ["s"], "diversity": "distnct"},
        "diversity: 'distnct' is not one of distinct, entropy, recursive",
        ["did you mean 'distinct'?"],
    ),
    (
        {"l": 2, "sensitive": ["s"], "diversity": "recursive"},
        "c: is required by recursive diversity",
        [],
    ),
    ({"l": 2, "sensitive": ["s"], "c": 3}, "c: goes with diversity: recursive", []),
    (
        {"l": 2, "sensitive": ["s"], "diversity": "recursive", "c": 0},
        "c: must be above 0, not 0",
        [],
    ),
    (
        {"missing_sensitive": "none"},
        "missing_sensitive: 'none' is not one of no_value, value",
        [],
    ),
    ({"t": 0.2}, "t: needs sensitive", []),
    ({"t": 1.5, "sensitive": ["s"]}, "t: must be above 0 and at most 1, not 1.5", []),
    ({"t_distance": "ordered"}, "t_distance: the ordered distance needs t", []),
    (
        {"t": 0.2, "t_distance": "hierarchical", "sensitive": ["s"]},
        "sensitive_hierarchy.s: is required",
        [],
    ),
    (
        {"t": 0.2, "sensitive": ["s"], "sensitive_hierarchy": {"s": "s.csv"}},
        "sensitive_hierarchy: goes with t_distance: hierarchical, not equal",
        [],
    ),
    (
        {"sensitive": ["salary"], "sensitive_hierarchy": {"salry": "s.csv"}},
        "sensitive_hierarchy.salry: unknown option",
        ["did you mean 'salary'?"],
    ),
    ({"identifiers": ["n", "n"]}, "identifiers[1]: column 'n' is listed twice", []),
    ({"identifiers": [True]}, "identifiers[0]: must be a column name, not True", ["quotes"]),
    ({"identifiers": 3}, "identifiers: must be a list, not 3", []),
    ({"identifiers": "['a', 'b']"}, "identifiers: ", ["the text of a list"]),
    ({"quasi_identifiers": []}, "quasi_identifiers: is required", []),
    ({"quasi_identifiers": {"a": 1}}, "quasi_identifiers: must be a list", []),
    (
        {"quasi_identifiers": ["a", "b", "a=set"]},
        "quasi_identifiers[2]: column 'a' is listed twice",
        [],
    ),
    ({"identifiers": ["age"]}, "quasi_identifiers[0]: column 'age' is listed already", []),
    (
        {"sensitive": ["age"]},
        "sensitive[0]: column 'age' is listed already, at quasi_identifiers[0]",
        ["remove it"],
    ),
    (
        {"sensitive": ["s"], "identifiers": ["n", "s"]},
        "sensitive[0]: column 's' is listed already, at identifiers[1]",
        [],
    ),
    ({"identifier_policy": "hide"}, "identifier_policy: 'hide' is not one of drop, redact", []),
    ({"unlisted": "keep"}, "unlisted: 'keep' is not one of drop, publish", []),
    ({"replace": "all"}, "replace: 'all' is not one of same, any", []),
    ({"algorithm": "datafly"}, "algorithm: 'datafly' is not one of", ["tds"]),
    ({"algorithm": "samarati", "cut": "gain"}, "cut: goes with algorithm: mondrian", ["samarati"]),
    ({"algorithm": "tds", "relaxed": True}, "relaxed: goes with algorithm: mondrian", ["tds"]),
    ({"algorithm": "tds", "interval_style": "bounds"}, "interval_style: bounds cannot", ["tds"]),
    (
        {"algorithm": "tds", "quasi_identifiers": ["zip=prefix", "age=grid:5"]},
        "quasi_identifiers[1]: a grid cannot be had",
        ["use a ladder"],
    ),
    ({"samarati": {"max_suppressed": 2.5}}, "samarati.max_suppressed: must be", ["2.5"]),
    ({"algorithm": "mondrain"}, "algorithm: 'mondrain' is not one of", ["mean 'mondrian'?"]),
    ({"cut": "medain"}, "cut: 'medain' is not one of", ["did you mean 'median'?"]),
    ({"cut": 1}, "cut: 1 is not one of", []),
    ({"cut_budget_s": 0}, "cut_budget_s: must be seconds above 0, not 0", []),
    ({"relaxed": "perhaps"}, "relaxed: must be true or false, not 'perhaps'", []),
    ({"interval_style": "pair"}, "interval_style: 'pair' is not one of text, bounds", []),
    ({"retrieval": "push"}, "retrieval: 'push' is not one of auto, pushdown, scatter", []),
    ({"partitioning": "quantile"}, "partitioning: must be a mapping", ["'quantile'"]),
    ({"partitioning": {"fragment": 2}}, "partitioning.fragment: unknown", ["'fragments'?"]),
    ({"partitioning": {"fragments": 0}}, "partitioning.fragments: must be a whole", []),
    ({"partitioning": {"sample": 0}}, "partitioning.sample: must be a rate", ["not 0"]),
    ({"partitioning": {"sample": 1.1}}, "partitioning.sample: must be a rate", ["1.1"]),
    ({"partitioning": {"seed": -1}}, "partitioning.seed: must be a whole number", ["-1"]),
    ({"partitioning": {"min_sample": -1}}, "partitioning.min_sample: must be", []),
    ({"partitioning": {"strategy": "random"}}, "partitioning.strategy: 'random'", []),
    ({"samarati": {"choice": "best"}}, "samarati.choice: 'best' is not one of", []),
    ({"samarati": {"max_suppressed": -1}}, "samarati.max_suppressed: must be", []),
    ({"max_gcp": 1.5}, "max_gcp: must be a share from 0 to 1, not 1.5", ["leave it out"]),
    ({"max_risk": -0.1}, "max_risk: must be a share from 0 to 1", []),
    ({"max_risk": "low"}, "max_risk: must be a number", ["'low'"]),
    ({"max_suppressed": -1}, "max_suppressed: must be a number of rows, or a share", ["-1"]),
    ({"max_suppressed": 2.5}, "max_suppressed: must be a number of rows, or a share", []),
    ({"approval_hours": 0}, "approval_hours: must be hours above 0", ["not 0"]),
    ({"approval_hours": 8761}, "approval_hours: must be hours above 0 and at most 8760", ["8761"]),
    ({"approval_hours": 1e11}, "approval_hours: must be hours above 0", ["a year"]),
    ({"require_approval": "maybe"}, "require_approval: must be true or false", []),
    ({"max_gcp": 0.1, "on_exceeded": "warn"}, "on_exceeded: 'warn' is not one of", ["refuse"]),
    ({"overlap": "refuse"}, "overlap: needs ledger: name the directory", []),
    ({"ledger": "l", "overlap": "ask"}, "overlap: 'ask' is not one of", ["warn"]),
    ({"on_exceeded": "ask"}, "on_exceeded: ask needs a limit; set max_gcp, max_risk", []),
    (
        {
            "algorithm": "samarati",
            "samarati": {"max_suppressed": 5},
            "sensitive": ["income"],
            "t": 0.2,
        },
        "samarati.max_suppressed: cannot be had with t",
        ["set 0, or remove t"],
    ),
    ({"tds": {"partitions": 0}}, "tds.partitions: must be a whole number", []),
    ({"tds": {"k_intermediate": 4}}, "tds.k_intermediate: must be", ["at least 5"]),
    ({"di_mondrian": {"cut_points": 0}}, "di_mondrian.cut_points: must be", []),
    ({"di_mondrian": {"cut_points": 101}}, "di_mondrian.cut_points: must be at most 100", []),
    (
        {"di_mondrian_cut_points": 3},
        "di_mondrian_cut_points: does not stand here",
        ["di_mondrian.cut_points"],
    ),
    (
        {"algorithm": "di_mondrian", "cut": "median"},
        "cut: goes with algorithm: mondrian, not di_mondrian",
        ["remove it"],
    ),
    (
        {"algorithm": "di_mondrian", "relaxed": True},
        "relaxed: goes with algorithm: mondrian, not di_mondrian",
        ["remove it"],
    ),
]


@pytest.mark.parametrize(("change", "start", "parts"), WRONG, ids=[row[1] for row in WRONG])
def test_a_wrong_job_is_refused(change: dict[str, Any], start: str, parts: list[str]) -> None:
    with pytest.raises(JobError) as caught:
        Job.from_dict(minimal(**change))
    message = str(caught.value)
    assert message.startswith(start)
    assert all(part in message for part in parts), message


WRONG_ATTRIBUTES = [
    (7, "quasi_identifiers[0]: must be a mapping", []),
    (None, "quasi_identifiers[0]: must be a mapping", []),
    ({}, "quasi_identifiers[0].name: is required", []),
    ({"name": 7}, "quasi_identifiers[0].name: must be text, not 7", []),
    ("zip=", "quasi_identifiers[0]: 'zip=' is no short form", ["NAME=prefix"]),
    ("zip=prefx", "quasi_identifiers[0]: 'zip=prefx'", ["did you mean 'prefix'?"]),
    ("zip=hierarchy", "quasi_identifiers[0].hierarchy: is required", ["name a file"]),
    ("zip=hierarchy:", "quasi_identifiers[0]: 'zip=hierarchy:' is no short form", ["FILE"]),
    ("zip=prefix:2", "quasi_identifiers[0]: 'zip=prefix:2' is no short form", []),
    ("age=ladder:5/x", "quasi_identifiers[0].ladder[1]: must be a width above 0, not 'x'", []),
    ("age=grid:x", "quasi_identifiers[0].grid: must be a number, not 'x'", []),
    ("age=grid:5@x", "quasi_identifiers[0].origin: must be a number, not 'x'", []),
    ({"name": "a", "generalisation": "set"}, "quasi_identifiers[0].generalisation", ["mean"]),
    ({"name": "a", "generalization": "sett"}, "quasi_identifiers[0].generalization", ["'set'?"]),
    (
        {"name": "a", "generalization": "hierarchy"},
        "quasi_identifiers[0].hierarchy: is required",
        ["'a'", "ladder"],
    ),
    (
        {"name": "a", "generalization": "set", "hierarchy": "a.csv"},
        "quasi_identifiers[0].hierarchy: goes with generalization: hierarchy, not set",
        [],
    ),
    (
        {"name": "a", "hierarchy": "a.csv", "ladder": [5]},
        "quasi_identifiers[0].ladder: stands in for a hierarchy file",
        [],
    ),
    (
        {"name": "a", "generalization": "interval", "ladder": [5]},
        "quasi_identifiers[0].ladder: goes with generalization: hierarchy, not interval",
        [],
    ),
    ({"name": "a", "ladder": [5, 12]}, "quasi_identifiers[0].ladder[1]: 12 is not a", ["nest"]),
    ({"name": "a", "ladder": [0.1, 0.25]}, "quasi_identifiers[0].ladder[1]: 0.25 is not", []),
    ({"name": "a", "ladder": [5, 5]}, "quasi_identifiers[0].ladder[1]: 5 is not", []),
    ({"name": "a", "ladder": [10, 5]}, "quasi_identifiers[0].ladder[1]: 5 is not", []),
    ({"name": "a", "ladder": [0, 5]}, "quasi_identifiers[0].ladder[0]: must be", ["not 0"]),
    ({"name": "a", "ladder": 5}, "quasi_identifiers[0].ladder: must be a list", []),
    (
        {"name": "a", "generalization": "set", "grid": 5},
        "quasi_identifiers[0].grid: goes with generalization: interval, not set",
        [],
    ),
    ({"name": "a", "grid": 0}, "quasi_identifiers[0].grid: must be a step above 0, not 0", []),
    ({"name": "a", "origin": 5}, "quasi_identifiers[0].origin: says where", ["grid"]),
]


@pytest.mark.parametrize(("item", "start", "parts"), WRONG_ATTRIBUTES)
def test_a_wrong_quasi_identifier_is_refused(item: object, start: str, parts: list[str]) -> None:
    with pytest.raises(JobError) as caught:
        one(item)
    message = str(caught.value)
    assert message.startswith(start), message
    assert all(part in message for part in parts), message


@pytest.mark.parametrize("mapping", [None, [], "job.yaml", 3])
def test_a_job_is_a_mapping(mapping: Any) -> None:
    with pytest.raises(JobError, match=r"^job: must be a mapping of options"):
        Job.from_dict(mapping)


def test_the_file_is_named_when_it_is_known() -> None:
    with pytest.raises(JobError, match=r"^partitioning\.seed: .* \(in adult\.yaml\)$"):
        Job.from_dict(minimal(partitioning={"seed": -1}), where="adult.yaml")


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(JobError) as caught:
        Job.from_dict(minimal(cut="x" * 5000))
    assert len(str(caught.value)) < 200


def test_a_dag_file_can_import_the_job_cheaply() -> None:
    code = (
        "import sys, mondrian_ops.core.job;"
        "print({'numpy', 'pandas', 'pyarrow', 'numba', 'yaml', 'airflow'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "set()"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(sorted(Job.__dataclass_fields__)), ANYTHING, max_size=4))
def test_whatever_is_given_is_read_or_refused(changes: dict[str, Any]) -> None:
    try:
        job = Job.from_dict(with_sensitive(**changes))
    except JobError as error:
        assert ": " in str(error)
        return
    assert Job.from_dict(json.loads(json.dumps(job.to_dict()))) == job


def test_the_limits_of_a_release_are_read_and_described() -> None:
    limits = {
        "require_approval": True,
        "approval_hours": 4,
        "max_gcp": 0.3,
        "max_risk": 0.1,
        "max_suppressed": 0,
        "on_exceeded": "ask",
    }
    job = Job.from_dict(minimal(**limits))
    assert {key: getattr(job, key) for key in limits} == limits
    assert limits.items() <= job.to_dict().items()
    assert Job.from_dict(job.to_dict()) == job
    assert limits.keys().isdisjoint(Job.from_dict(minimal()).to_dict())


@pytest.mark.parametrize(
    ("asked", "may_ask"),
    [
        ({}, False),
        ({"max_gcp": 0.3}, False),
        ({"max_gcp": 0.3, "on_exceeded": "ask"}, True),
        ({"require_approval": True}, True),
    ],
)
def test_a_job_knows_whether_it_may_ask(asked: dict[str, Any], may_ask: bool) -> None:
    assert Job.from_dict(minimal(**asked)).may_ask is may_ask


@pytest.mark.parametrize(("limit", "rows"), [(0, 0), (0.25, 2), (0.99, 9), (1, 1), (20, 20)])
def test_a_limit_is_a_number_of_rows_or_a_share_of_them(limit: float, rows: int) -> None:
    assert rows_of(limit, 10) == rows


@pytest.mark.parametrize(
    ("asked", "rows"), [(0.29, 29), (0.57, 57), (0.2, 20), (0.999, 99), (0, 0), (7, 7)]
)
def test_a_share_of_rows_is_not_one_row_short(asked: float, rows: int) -> None:
    keys = {"algorithm": "samarati", "samarati": {"max_suppressed": asked}}
    assert Job.from_dict(minimal(**keys)).suppressible(100) == rows


def test_only_samarati_suppresses() -> None:
    assert Job.from_dict(minimal(samarati={"max_suppressed": 7})).suppressible(100) == 0
