from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import minimal, with_sensitive
from mondrian_ops.errors import JobError
from mondrian_ops.job import limits as resource_limits
from mondrian_ops.job.job import Job
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.job.sections import DiMondrian, Partitioning, Samarati, Tds

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


def test_who_has_several_rows_is_named_by_an_identifier() -> None:
    job = Job.from_dict(minimal(entity_id="person", identifiers=["name"]))
    assert (job.entity_id, job.identifiers) == ("person", ("name", "person"))
    assert Job.from_dict(job.to_dict()) == job
    assert Job.from_dict(minimal(entity_id="name", identifiers=["name"])).identifiers == ("name",)
    assert "entity_id" not in Job.from_dict(minimal()).to_dict()


@pytest.mark.parametrize(
    ("changes", "where"),
    [({"input": "in/{{ ds }}.csv"}, "input"),
     ({"output": "out/{{ ds_nodash }}"}, "output"),
     ({"quasi_identifiers": ["age", "zip=hierarchy:{{ params.file }}"]},
      "quasi_identifiers[1].hierarchy"),
     ({"sensitive": ["ill"], "sensitive_hierarchy": {"ill": "{{\nx}}.csv"}},
      "sensitive_hierarchy.ill")],
)  # fmt: skip
def test_a_template_that_was_not_rendered_is_no_location(changes: Any, where: str) -> None:
    with pytest.raises(JobError) as caught:
        Job.from_dict(minimal(**changes))
    assert str(caught.value).startswith(f"{where}: holds the template '{{{{")
    assert "render it in the task that returns the job" in str(caught.value)
    assert Job.from_dict(minimal(input="in/{day}.csv", output="out/}}{{"))


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
            "fragments": "auto",
            "sample": 0.001,
            "seed": 0,
            "min_sample": 1000,
            "max_rows": 10_000_000,
        },
        "retrieval": "auto",
        "engine": "local",
    }


@pytest.mark.parametrize(
    ("key", "limit"),
    [
        ("quasi_identifiers", "quasi_identifiers"),
        ("sensitive", "sensitive"),
        ("identifiers", "columns"),
    ],
)
def test_lists_have_a_limit(key: str, limit: str) -> None:
    most = resource_limits.LIMITS[limit].default
    names = [f"c{at}" for at in range(most + 1)]
    assert Job.from_dict(minimal(**{key: names[:-1]}))
    for listed in (names, ",".join(names)):
        with pytest.raises(
            JobError, match=f"^{key}: lists {most + 1:,} entries; the limit '{limit}' is {most:,}: "
        ):
            Job.from_dict(minimal(**{key: listed}))
    with resource_limits.changed(**{limit: most + 1}):
        assert Job.from_dict(minimal(**{key: names}))


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
    ({"fragments": 8}, "fragments: is not a top-level option", ["use partitioning.fragments"]),
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
    ({"l": 1, "sensitive": ["s"]}, "l: must be a number of at least 2, not 1", ["leave it out"]),
    ({"l": 2.5, "sensitive": ["s"]}, "l: must be a whole number", ["2.5", "entropy"]),
    ({"l": "many", "sensitive": ["s"]}, "l: must be a number of at least 2, not 'many'", []),
    ({"diversity": "entropy"}, "diversity: needs l; set it, such as l: 2, or remove", []),
    (
        {"l": 2, "sensitive": ["s"], "diversity": "distnct"},
        "diversity: 'distnct' is not one of distinct, entropy, recursive",
        ["did you mean 'distinct'?"],
    ),
    (
        {"l": 2, "sensitive": ["s"], "diversity": "recursive"},
        "c: is required by diversity: recursive",
        [],
    ),
    ({"l": 2, "sensitive": ["s"], "c": 3}, "c: applies only to diversity: recursive", []),
    (
        {"l": 2, "sensitive": ["s"], "diversity": "recursive", "c": 0},
        "c: must be a number above 0, not 0",
        [],
    ),
    (
        {"missing_sensitive": "none"},
        "missing_sensitive: 'none' is not one of no_value, value",
        [],
    ),
    ({"t": 0.2}, "t: needs sensitive", []),
    ({"t": 1.5, "sensitive": ["s"]}, "t: must be a number above 0 and at most 1, not 1.5", []),
    ({"t_distance": "ordered"}, "t_distance: needs t", []),
    (
        {"t": 0.2, "t_distance": "hierarchical", "sensitive": ["s"]},
        "sensitive_hierarchy.s: is required",
        [],
    ),
    (
        {"t": 0.2, "sensitive": ["s"], "sensitive_hierarchy": {"s": "s.csv"}},
        "sensitive_hierarchy: applies only to t_distance: hierarchical, not equal",
        [],
    ),
    (
        {"sensitive": ["salary"], "sensitive_hierarchy": {"salry": "s.csv"}},
        "sensitive_hierarchy.salry: is not a sensitive column",
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
    (
        {"algorithm": "tds", "relaxed": True},
        "relaxed: applies only to algorithm: mondrian",
        ["tds"],
    ),
    (
        {"algorithm": "tds", "interval_style": "bounds"},
        "interval_style: applies only to algorithm: mondrian or di_mondrian, not tds",
        ["or remove interval_style"],
    ),
    (
        {"algorithm": "tds", "quasi_identifiers": ["zip=prefix", "age=grid:5"]},
        "quasi_identifiers[1]: a grid is not available",
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
    ({"spark": {"conf": ["a"]}}, "spark.conf[0]: must be a property, name=value, not 'a'", []),
    ({"spark": {"conf": ["=1"]}}, "spark.conf[0]: must be a property", []),
    ({"spark": {"conf": {"a": [1]}}}, "spark.conf.a: must be text, not [1]", ["quotes"]),
    ({"spark": {"conf": 3}}, "spark.conf: must be a mapping, not 3", ["{NAME: VALUE}"]),
    ({"partitioning": "quantile"}, "partitioning: must be a mapping", ["'quantile'"]),
    ({"partitioning": {"fragment": 2}}, "partitioning.fragment: unknown", ["'fragments'?"]),
    ({"partitioning": {"fragments": 0}}, "partitioning.fragments: must be a whole", ["`auto`"]),
    ({"partitioning": {"fragments": "all"}}, "partitioning.fragments: must be a whole", ["`auto`"]),
    ({"partitioning": {"sample": 0}}, "partitioning.sample: must be a rate", ["not 0"]),
    ({"partitioning": {"sample": 1.1}}, "partitioning.sample: must be a rate", ["1.1"]),
    ({"partitioning": {"seed": -1}}, "partitioning.seed: must be a whole number", ["-1"]),
    ({"partitioning": {"min_sample": -1}}, "partitioning.min_sample: must be", []),
    ({"partitioning": {"strategy": "random"}}, "partitioning.strategy: 'random'", []),
    ({"samarati": {"choice": "best"}}, "samarati.choice: 'best' is not one of", []),
    ({"samarati": {"max_suppressed": -1}}, "samarati.max_suppressed: must be", []),
    ({"max_gcp": 1.5}, "max_gcp: must be a share from 0 to 1, not 1.5", ["leave it out"]),
    ({"max_risk": -0.1}, "max_risk: must be a share from 0 to 1", []),
    ({"max_risk": "low"}, "max_risk: must be a share from 0 to 1, not 'low'", []),
    ({"max_suppressed": -1}, "max_suppressed: must be a number of rows, or a share", ["-1"]),
    ({"max_suppressed": 2.5}, "max_suppressed: must be a number of rows, or a share", []),
    ({"approval_hours": 0}, "approval_hours: must be hours above 0", ["not 0"]),
    ({"approval_hours": 8761}, "approval_hours: must be hours above 0 and at most 8760", ["8761"]),
    ({"approval_hours": 1e11}, "approval_hours: must be hours above 0", ["a year"]),
    ({"require_approval": "maybe"}, "require_approval: must be true or false", []),
    ({"max_gcp": 0.1, "on_exceeded": "warn"}, "on_exceeded: 'warn' is not one of", ["refuse"]),
    ({"overlap": "ask"}, "overlap: 'ask' is not one of", ["ignore", "warn", "refuse"]),
    ({"population": "staff"}, "population: applies only to overlap: warn or refuse", ["remove"]),
    (
        {"set_style": "list", "output": "iceberg://lake/a.b"},
        "set_style: a table of Iceberg has",
        [],
    ),
    ({"on_exceeded": "ask"}, "on_exceeded: ask needs a limit; set max_gcp, max_risk", []),
    (
        {
            "algorithm": "samarati",
            "samarati": {"max_suppressed": 5},
            "sensitive": ["income"],
            "t": 0.2,
        },
        "samarati.max_suppressed: cannot be combined with t",
        ["set 0, or remove t"],
    ),
    ({"tds": {"partitions": 0}}, "tds.partitions: must be a whole number", []),
    ({"tds": {"k_intermediate": 4}}, "tds.k_intermediate: must be", ["at least 5"]),
    ({"di_mondrian": {"cut_points": 0}}, "di_mondrian.cut_points: must be", []),
    (
        {"di_mondrian": {"cut_points": 101}},
        "di_mondrian.cut_points: must be",
        ["1 to 100, not 101"],
    ),
    (
        {"di_mondrian_cut_points": 3},
        "di_mondrian_cut_points: is not a top-level option",
        ["di_mondrian.cut_points"],
    ),
    (
        {"algorithm": "di_mondrian", "cut": "median"},
        "cut: applies only to algorithm: mondrian, not di_mondrian",
        ["remove cut"],
    ),
    (
        {"cut": "gain", "relaxed": True},
        "relaxed: applies only to cut: median or auto, not gain",
        ["remove relaxed"],
    ),
]


@pytest.mark.parametrize(("change", "start", "parts"), WRONG, ids=[row[1] for row in WRONG])
def test_a_wrong_job_is_refused(change: dict[str, Any], start: str, parts: list[str]) -> None:
    with pytest.raises(JobError) as caught:
        Job.from_dict(minimal(**change))
    message = str(caught.value)
    assert message.startswith(start)
    assert all(part in message for part in parts), message


@pytest.mark.parametrize("mapping", [None, [], "job.yaml", 3])
def test_a_job_is_a_mapping(mapping: Any) -> None:
    with pytest.raises(JobError, match=r"^job: must be a mapping of options"):
        Job.from_dict(mapping)


def test_the_file_is_named_when_it_is_known() -> None:
    with pytest.raises(JobError, match=r"^partitioning\.seed: .* \(in adult\.yaml\)$"):
        Job.from_dict(minimal(partitioning={"seed": -1}), where="adult.yaml")


def test_a_dag_file_can_import_the_job_cheaply() -> None:
    code = (
        "import sys, mondrian_ops.job.job;"
        "print({'numpy', 'pandas', 'pyarrow', 'yaml', 'airflow'} & set(sys.modules))"
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


def test_what_makes_tasks_has_a_limit() -> None:
    for section, key in (("partitioning", "fragments"), ("tds", "partitions")):
        assert Job.from_dict(minimal(**{section: {key: 10_000}}))
        with pytest.raises(JobError, match=f"^{section}.{key}: asks for 10,001; the limit 'frag"):
            Job.from_dict(minimal(**{section: {key: 10_001}}))


def test_only_samarati_suppresses() -> None:
    limit = {"samarati": {"max_suppressed": 0.29}}
    assert Job.from_dict(minimal(**limit)).suppressible(100) == 0
    assert Job.from_dict(minimal(algorithm="samarati", **limit)).suppressible(100) == 29
