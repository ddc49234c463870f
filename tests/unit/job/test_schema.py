"""The schema agrees with what a job takes, and what is committed is what is written anew."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

import job_docs
from jobs import minimal, with_sensitive
from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.job.options import Option, Options, flat_options, options_of
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.job.schema import job_schema

SCHEMA = Draft7Validator(job_schema())
EXAMPLES = sorted(job_docs.DOCS.parent.glob("examples/*.yaml"))


def options(model: type[Options]) -> list[Option]:
    """The options of a model and of all that it holds."""
    found = []
    for each in options_of(model).values():
        found += [each, *(options(each.model) if each.model else ())]
    return found


def taken(mapping: dict[str, Any]) -> bool:
    """Whether a job takes it."""
    try:
        Job.from_dict(mapping)
    except JobError:
        return False
    return True


def test_the_schema_is_one() -> None:
    Draft7Validator.check_schema(job_schema())


@pytest.mark.parametrize(("path", "text"), job_docs.written().items(), ids=lambda of: str(of)[-20:])
def test_what_is_committed_is_current(path: Any, text: str) -> None:
    assert path.read_text("utf-8") == text, "run `make docs`"


def test_every_model_has_a_table() -> None:
    models = [name for name, each in options_of(Job).items() if each.model]
    text = (job_docs.DOCS / "job.md").read_text("utf-8")
    tables = re.findall(r"<!-- options of (\w+) -->", text)
    assert sorted(tables) == sorted(["job", *models])


def test_every_option_is_explained() -> None:
    for each in options(Job):
        assert each.text.endswith("."), each.name
        assert set(each.choices) == set(each.words), each.name
        assert not each.details or each.details.endswith("."), each.name
    for name, (_path, each) in flat_options(Job).items():
        assert each.title or each.form is None, name


GOOD = [
    minimal(),
    minimal(identifiers="a, b", quasi_identifiers="age, zip=prefix"),
    minimal(k=5.0, identifiers=[], partitioning={}, spark={"conf": ["a=b"]}),
    with_sensitive(l=2.5, diversity="entropy", t=0.2, max_gcp=0, max_suppressed=0.3),
    with_sensitive(t=1, t_distance="hierarchical", sensitive_hierarchy={"income": "i.csv"}),
    minimal(partitioning={"fragments": 3, "sample": 1, "seed": 0, "min_sample": 0}),
    minimal(
        partitioning={"fragments": "auto"}, max_suppressed=20, samarati={"max_suppressed": 0.1}
    ),
    minimal(spark={"conf": {"spark.a": True, "spark.b": 3}}, di_mondrian={"cut_points": 100}),
    minimal(
        quasi_identifiers=[
            {"name": "age", "ladder": [5, 10], "origin": 16},
            {"name": "", "generalization": "set"},
            "w=grid:0.5",
        ]
    ),
]


@pytest.mark.parametrize("mapping", GOOD)
def test_the_schema_accepts_what_a_job_takes(mapping: dict[str, Any]) -> None:
    assert taken(mapping)
    assert not list(SCHEMA.iter_errors(mapping))


BROKEN: list[dict[str, Any]] = [
    {"sensitiv": ["s"]},
    {"partitioning": {"fragment": 2}},
    {"partitioning": "quantile"},
    {"partitioning": {"fragments": 0}},
    {"partitioning": {"fragments": "all"}},
    {"partitioning": {"sample": 0}},
    {"partitioning": {"sample": 1.5}},
    {"partitioning": {"seed": -1}},
    {"input": ""},
    {"input": 7},
    {"k": 1},
    {"k": 2.5},
    {"k": True},
    {"k": [5]},
    {"cut": "medain"},
    {"relaxed": "perhaps"},
    {"l": 1, "sensitive": ["s"]},
    {"approval_hours": 8761},
    {"max_risk": -0.1},
    {"max_suppressed": -1},
    {"max_suppressed": 2.5},
    {"identifiers": 3},
    {"identifiers": [True]},
    {"quasi_identifiers": []},
    {"quasi_identifiers": {"a": 1}},
    {"quasi_identifiers": [{"generalization": "set"}]},
    {"quasi_identifiers": [{"name": "a", "generalisation": "set"}]},
    {"quasi_identifiers": [{"name": "a", "ladder": [0]}]},
    {"quasi_identifiers": [{"name": "a", "grid": 0}]},
    {"spark": {"conf": ["a"]}},
    {"spark": {"conf": {"a": [1]}}},
    {"spark": {"shape": "stage"}},
    {"tds": {"partitions": 0}},
    {"di_mondrian": {"cut_points": 101}},
]


@pytest.mark.parametrize("change", BROKEN, ids=str)
def test_the_schema_refuses_what_a_job_refuses(change: dict[str, Any]) -> None:
    mapping = minimal(**change)
    assert not taken(mapping)
    assert list(SCHEMA.iter_errors(mapping))


@pytest.mark.parametrize("key", ["input", "output", "k", "quasi_identifiers"])
def test_what_is_required_may_be_added_to_a_file_only_where_it_is_a_path(key: str) -> None:
    mapping = minimal()
    del mapping[key]
    with pytest.raises(JobError, match=f"^{key}: is required; set it, such as {key}: "):
        Job.from_dict(mapping)
    assert SCHEMA.is_valid(mapping) == (key in ("input", "output"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_schema_accepts_the_examples(path: Path) -> None:
    SCHEMA.validate(yaml.safe_load(path.read_text("utf-8")))


NEEDED: dict[str, dict[str, Any]] = {
    "series.hold_above": {"series": {"hold_nights": 7}},
    "series.refit_above": {"series": {"boundaries": "stable"}},
    "c": {"diversity": "recursive", "l": 2},
    "population": {"overlap": "warn"},
    "l_width": {"l": 2, "sensitive": ["income"]},
    "sensitive_hierarchy": {"t": 0.3, "t_distance": "hierarchical"},
}


@pytest.mark.parametrize(("path", "option"), flat_options(Job).values(), ids=str)
def test_the_examples_of_an_option_are_taken(path: str, option: Option) -> None:
    section, _, key = path.rpartition(".")
    for example in option.examples:
        value = list(example) if isinstance(example, tuple) else example
        needed = NEEDED.get(path, {})
        changes = {section: {**needed.get(section, {}), key: value}} if section else {key: value}
        mapping = {**minimal(sensitive=["diagnosis"]), **needed, **changes}
        assert taken(mapping)
        SCHEMA.validate(mapping)


@pytest.mark.parametrize("option", options_of(QuasiIdentifier).values(), ids=lambda of: of.name)
def test_the_examples_of_a_quasi_identifier_are_taken(option: Option) -> None:
    for example in option.examples:
        assert QuasiIdentifier.read({"name": "age", option.name: example}, "item")
