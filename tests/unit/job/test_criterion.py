"""Criteria of installed packages, as sections of a job."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from jsonschema import Draft7Validator

from added_criteria import Given, added
from mondrian_ops.errors import JobError
from mondrian_ops.job import criterion
from mondrian_ops.job.job import Job
from mondrian_ops.job.options import flat_options
from mondrian_ops.job.schema import job_schema

SECTION = {"beta_likeness": {"beta": 2}}


def read(**keys: Any) -> Job:
    job = {"k": 2, "quasi_identifiers": ["q"], "sensitive": ["s"], **keys}
    return Job.from_dict(job, paths_required=False)


def refused(**keys: Any) -> str:
    with pytest.raises(JobError) as caught:
        read(**keys)
    return str(caught.value)


def test_a_section_is_read_as_the_options_of_the_job_are():
    with added():
        job = read(**SECTION)
        (asked,) = job.criteria.values()
        assert (asked.level, asked.says("s")) == (2, "β-likeness of s, β = 2")
        assert job.to_dict()["beta_likeness"] == {"beta": 2}
        assert Job.from_dict(job.to_dict(), paths_required=False) == job
        assert read(beta_likeness={"beta": "2"}) == job
        assert read() != job
        assert "beta_likeness.beta: must be a number above 0, not 0" in refused(
            beta_likeness={"beta": 0}
        )
        assert "beta_likeness.beta: is required" in refused(beta_likeness={})
        assert "beta_likeness.gamma: unknown option" in refused(beta_likeness={"gamma": 1})
        assert "beta_likness: unknown option (did you mean 'beta_likeness'?)" in refused(
            beta_likness={"beta": 2}
        )
        assert "use beta_likeness.beta" in refused(beta_likeness_beta=2)


def test_without_the_package_the_section_is_unknown():
    assert "beta_likeness: unknown option" in refused(**SECTION)
    assert refused(**SECTION).endswith("; if it is the section of a package, install that here")
    assert "install" not in refused(beta=2)


@pytest.mark.parametrize("empty", [None, "", {"beta": None}, {"beta": " "}])
def test_a_section_that_is_left_empty_in_a_form_asks_for_nothing(empty):
    with added():
        assert not read(beta_likeness=empty).criteria


def test_it_is_in_the_schema_and_in_the_form():
    with added():
        schema = job_schema()
        Draft7Validator.check_schema(schema)
        assert schema["properties"]["beta_likeness"]["required"] == ["beta"]
        path, option = flat_options(Job)["beta_likeness_beta"]
        assert path == "beta_likeness.beta"
        assert (option.required, option.nullable, option.default) == (False, True, None)
        assert option.form == "More on privacy"
    assert "beta_likeness" not in job_schema()["properties"]
    assert "beta_likeness_beta" not in flat_options(Job)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"sensitive": []}, "beta_likeness: needs sensitive"),
        (
            {"algorithm": "samarati", "samarati": {"max_suppressed": 0.1}},
            "samarati.max_suppressed: cannot be combined with beta_likeness: beta_likeness",
        ),
        (
            {"series": {"hold_nights": 2, "hold_above": 0.5}},
            "series.hold_above: cannot be combined with beta_likeness: beta_likeness compares",
        ),
        (
            {"series": {"protect": "intersection"}, "entity_id": "e", "l": 2},
            "series.protect: intersection needs no beta_likeness, which its classes",
        ),
    ],
)
def test_what_cannot_hold_together_is_refused(keys, message):
    with added():
        assert message in refused(**SECTION, **keys)


@pytest.mark.parametrize(
    "keys",
    [
        {"algorithm": "samarati", "samarati": {"max_suppressed": 0.1}},
        {"series": {"hold_nights": 2, "hold_above": 0.5}},
    ],
)
def test_rows_may_be_left_out_by_a_criterion_that_looks_at_each_class_by_itself(keys):
    with added({"given": "added_criteria:ByItself"}):
        job = read(given={"risk": 2}, **keys)
    assert job.criteria["given"].needs_all_rows is False


class Incomplete(criterion.Criterion):
    __slots__ = ()
    title = "incomplete"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("no_such_module:Criterion", "cannot be imported (ModuleNotFoundError in no_such_module"),
        ("beta_likeness:option", "beta_likeness:option is not a subclass of mondrian_ops.job"),
        (f"{__name__}:Incomplete", "lacks holds, level, means, measure, says; add it"),
    ],
)
def test_a_package_that_is_broken_is_named(entry, message):
    with added({"beta_likeness": entry}):
        assert message in refused(**SECTION)
        assert not read().criteria  # whoever does not ask for it is not hindered


def test_a_criterion_cannot_take_the_name_of_an_option():
    with added({"t": "beta_likeness:BetaLikeness"}):
        with pytest.raises(
            JobError, match="t: a package adds a criterion by the name of an option"
        ):
            job_schema()
        assert not read(t=0.5).criteria


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["max"], "max.risk: would be max_risk in a form, which max_risk is; rename the entry"),
        (["a", "a_like"], "a_like.risk: would be a_like_risk in a form, which a.like_risk is;"),
    ],
)
def test_a_section_cannot_take_a_field_of_a_form(names, message):
    """The limit of a steward would be read as the option of a package, and hold no longer."""
    with added(dict.fromkeys(names, "added_criteria:Given")):
        with pytest.raises(JobError) as caught:
            flat_options(Job)
        assert message in str(caught.value)
        assert read(max_risk=0.5).max_risk == 0.5


@pytest.mark.parametrize("level", [None, "2", True, float("nan"), float("inf")])
def test_a_level_that_is_no_number_is_refused(level, monkeypatch):
    monkeypatch.setattr(Given, "level", level)
    with added({"given": "added_criteria:Given"}):
        message = refused(given={"risk": 1})
    assert message.startswith("given: level of Given must be a finite number, not ")
    assert message.endswith("; correct the criterion of the package")


@pytest.mark.parametrize("least", [None, 0, 2.5, "3", True])
def test_a_minimum_size_that_is_no_number_of_rows_is_refused(least, monkeypatch):
    monkeypatch.setattr(Given, "min_class_size", least)
    with added({"given": "added_criteria:Given"}):
        message = refused(given={"risk": 1})
    assert message.startswith("given: min_class_size of Given must be a whole number of at least 1")


def test_two_packages_cannot_give_one_name_to_different_criteria(tmp_path, monkeypatch):
    for name, value in (("one", "one:A"), ("two", "two:B")):
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        folder.joinpath("METADATA").write_text(f"Name: {name}\nVersion: 1\n")
        text = f"[{criterion.GROUP}]\nbeta_likeness = {value}\n"
        folder.joinpath("entry_points.txt").write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    criterion.criteria.cache_clear()
    criterion.sections.cache_clear()
    try:
        assert "two packages add a criterion of this name, " in refused(**SECTION)
    finally:
        criterion.criteria.cache_clear()
