"""What a policy requires, and which jobs ask less."""

from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from added_criteria import added
from jobs import minimal, with_sensitive
from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.job.policy import Arrival, Policies, Policy, Required, misused, shortfalls


def policy(**keys) -> Policy:
    return Policy.read({"name": "people", "inputs": ["/in"], **keys})


def short(floor: dict, job: dict) -> str:
    """The options in which a job falls short of a policy; people are told apart by ``age``."""
    if "overlap" in floor:
        floor = {"people_by": ["age"], **floor}
    sentences = list(shortfalls(policy(**floor), Job.from_dict(job)))
    assert all("the policy 'people' requires" in each for each in sentences)
    return " ".join(each.partition(":")[0] for each in sentences)


ENTROPY = {"min_l": 2, "diversity": "entropy"}
RECURSIVE = {"min_l": 2, "diversity": "recursive", "max_c": 3}
WIDE = {"min_l": 2, "l_width": {"inc*": "10 %"}}


@pytest.mark.parametrize(
    ("floor", "job", "options"),
    [
        ({"min_k": 5}, minimal(), ""),
        ({"min_k": 6}, minimal(), "k"),
        ({"min_k": 5}, minimal(k=6), ""),
        # k counts persons: never fewer rows
        ({"min_k": 5}, minimal(entity_id="id"), ""),
        ({"min_l": 2}, minimal(), "l"),
        ({"min_l": 2}, with_sensitive(), "l"),
        ({"min_l": 3}, with_sensitive(l=2), "l"),
        ({"min_l": 2}, with_sensitive(l=2), ""),
        ({"min_l": 2}, with_sensitive(l=2, diversity="entropy"), ""),
        ({"min_l": 2}, with_sensitive(l=2, diversity="recursive", c=9), ""),
        ({"min_l": 2}, with_sensitive(l=2, missing_sensitive="value"), "missing_sensitive"),
        (ENTROPY, with_sensitive(l=9), "diversity"),
        (ENTROPY, with_sensitive(l=9, diversity="recursive", c=1), "diversity"),
        (ENTROPY, with_sensitive(l=2, diversity="entropy"), ""),
        (RECURSIVE, with_sensitive(l=2, diversity="recursive", c=3), ""),
        (RECURSIVE, with_sensitive(l=2, diversity="recursive", c=3.1), "c"),
        (RECURSIVE, with_sensitive(l=2, diversity="recursive", c=2.5), ""),
        (RECURSIVE, with_sensitive(l=2, diversity="entropy"), "diversity"),
        (WIDE, with_sensitive(l=2), "l_width.income"),
        (WIDE, with_sensitive(l=2, l_width={"income": "9 %"}), "l_width.income"),
        (WIDE, with_sensitive(l=2, l_width={"income": "500"}), "l_width.income"),
        (WIDE, with_sensitive(l=2, l_width={"income": "10 %"}), ""),
        (WIDE, with_sensitive(l=2, l_width={"income": "20 %"}), ""),
        (WIDE, minimal(), "l"),
        (
            WIDE,
            minimal(sensitive=["income", "incentive"], l=2, l_width={"income": "10 %"}),
            "l_width.incentive",
        ),
        (WIDE, with_sensitive(), "l l_width.income"),
        # Neither a quasi-identifier nor a column published as it is has a width.
        (WIDE, minimal(quasi_identifiers=["income"], sensitive=["x"], l=2), "quasi_identifiers"),
        (WIDE, minimal(identifiers=["income"], sensitive=["x"], l=2), ""),
        (
            {"min_l": 2, "l_width": {"IN*": "1 day", "income": "500"}},
            with_sensitive(l=2, l_width={"income": "36 hours"}),
            "l_width.income",
        ),
        ({"max_t": 0.2}, with_sensitive(), "t"),
        ({"max_t": 0.2}, with_sensitive(t=0.3), "t"),
        ({"max_t": 0.2}, with_sensitive(t=0.2), ""),
        ({"max_t": 0.2}, with_sensitive(t=0.1), ""),
        ({"max_t": 0.2}, with_sensitive(t=0.2, t_distance="ordered"), "t_distance"),
        (
            {"max_t": 0.2, "t_distance": "ordered"},
            with_sensitive(t=0.2, t_distance="ordered"),
            "",
        ),
        ({"max_t": 0.2, "t_distance": "ordered"}, with_sensitive(t=0.2), ""),
        ({"max_gcp": 0.3}, minimal(), "max_gcp"),
        ({"max_gcp": 0.3}, minimal(max_gcp=0.4), "max_gcp"),
        ({"max_gcp": 0.3}, minimal(max_gcp=0.3), ""),
        ({"max_gcp": 0.3}, minimal(max_gcp=0.3, on_exceeded="ask"), "on_exceeded"),
        ({"max_risk": 0.1}, minimal(max_gcp=0.1), "max_risk"),
        ({"max_suppressed": 20}, minimal(max_suppressed=20), ""),
        ({"max_suppressed": 20}, minimal(max_suppressed=0), ""),
        ({"max_suppressed": 20}, minimal(max_suppressed=0.0), ""),
        ({"max_suppressed": 20}, minimal(max_suppressed=1), ""),
        ({"max_suppressed": 20}, minimal(max_suppressed=0.01), "max_suppressed"),
        ({"max_suppressed": 1}, minimal(max_suppressed=0.01), "max_suppressed"),
        ({"max_suppressed": 0.5}, minimal(max_suppressed=0.4), ""),
        ({"max_query_error": 2}, minimal(max_query_error=0.5), ""),
        ({"max_suppressed": 0.01}, minimal(max_suppressed=1), "max_suppressed"),
        ({"entity_id": "id"}, minimal(), "entity_id"),
        ({"entity_id": "id"}, minimal(entity_id="row"), "entity_id"),
        ({"entity_id": "id"}, minimal(entity_id="ID"), ""),
        ({"unlisted": "drop"}, minimal(unlisted="publish"), "unlisted"),
        ({"unlisted": "drop"}, minimal(), ""),
        ({"unlisted": "publish"}, minimal(unlisted="publish"), ""),
        ({"overlap": "refuse"}, minimal(), "overlap"),
        ({"overlap": "refuse"}, minimal(overlap="warn"), "overlap"),
        ({"overlap": "refuse"}, minimal(overlap="refuse"), ""),
        ({"overlap": "warn"}, minimal(), "overlap"),
        ({"overlap": "warn"}, minimal(overlap="refuse"), ""),
        ({"overlap": "warn"}, minimal(overlap="warn", population="own"), "population"),
        ({"overlap": "warn", "population": "p"}, minimal(overlap="warn"), "population"),
        (
            {"overlap": "warn", "population": "p"},
            minimal(overlap="warn", population="q"),
            "population",
        ),
        ({"overlap": "warn", "population": "p"}, minimal(overlap="warn", population="p"), ""),
        ({}, minimal(overlap="warn", population="own"), ""),
        ({"overlap": "warn", "people_by": ["ssn", "zip"]}, minimal(overlap="warn"), "identifiers"),
        (
            {"overlap": "warn", "people_by": ["ssn", "zip"]},
            minimal(overlap="warn", identifiers=["SSN"], quasi_identifiers=["zip"]),
            "",
        ),
        (
            {"overlap": "warn", "people_by": ["ssn"]},
            minimal(overlap="warn", identifiers=["ssn", "name"], entity_id="ssn"),
            "",
        ),
        ({"engines": ["local"]}, minimal(engine="spark"), "engine"),
        ({"engines": ["local", "spark"]}, minimal(engine="spark"), ""),
        ({"min_k": 9, "max_t": 0.1}, minimal(), "k t"),
    ],
)
def test_a_job_may_ask_for_more_and_never_for_less(floor, job, options):
    assert short(floor, job) == options


@pytest.mark.parametrize(
    ("floor", "job", "remedy"),
    [
        ({"max_gcp": 0.3}, minimal(), "set 0.3 or less"),
        ({"max_suppressed": 20}, minimal(max_suppressed=30), "set 20 or less"),
        (
            {"max_suppressed": 20},
            minimal(max_suppressed=0.01),
            "set 20 or less, as a number of rows",
        ),
        ({"overlap": "warn"}, minimal(overlap="warn", population="own"), "remove it"),
        ({"overlap": "warn", "population": "p"}, minimal(overlap="warn"), "set p"),
    ],
)
def test_a_job_that_follows_the_remedy_meets_the_policy(floor, job, remedy):
    (sentence,) = shortfalls(policy(people_by=["age"], **floor) if "overlap" in floor else
                             policy(**floor), Job.from_dict(job))  # fmt: skip
    assert sentence.rpartition("; ")[2] == remedy


ROLES = {"ssn": "identifier", "zip*": "quasi_identifier", "income": "sensitive"}


@pytest.mark.parametrize(
    ("job", "option"),
    [
        (minimal(), ""),
        (minimal(identifiers=["ssn", "zip", "income"]), ""),
        (minimal(identifiers=["ssn"], identifier_policy="redact"), ""),
        (minimal(identifiers=["ssn"], unlisted="publish"), ""),
        (minimal(quasi_identifiers=["zip=prefix"], sensitive=["income"]), ""),
        (minimal(quasi_identifiers=["ssn"]), "quasi_identifiers"),
        (minimal(sensitive=["ssn"]), "sensitive"),
        # The same column by other letters, and blanks that nobody sees.
        (minimal(sensitive=["SSN"]), "sensitive"),
        (minimal(sensitive=["\uff33\uff33\uff2e "]), "sensitive"),
        (minimal(sensitive=["zip"]), "sensitive"),
        (minimal(sensitive=["Zip_of_birth"]), "sensitive"),
        # Neither l nor t protects a quasi-identifier.
        (minimal(quasi_identifiers=["income"]), "quasi_identifiers"),
    ],
)
def test_a_column_is_published_by_its_role_or_not_at_all(job, option):
    assert short({"roles": ROLES}, job) == option


@pytest.mark.parametrize("column", ["ssn", "SSN", "zip2", "income"])
def test_a_column_that_the_job_does_not_name_may_have_a_role_too(column):
    floor = policy(roles=ROLES)
    dropping, publishing = (Job.from_dict(minimal(unlisted=how)) for how in ("drop", "publish"))
    assert list(misused(floor, dropping, column)) == []
    (sentence,) = misused(floor, publishing, column)
    assert sentence.startswith("unlisted: ")
    assert list(misused(floor, publishing, "colour")) == []


ALLOWED = {"roles": {**ROLES, "ag*": "any", "person": "any"}, "others": "drop"}


@pytest.mark.parametrize(
    ("job", "options"),
    [
        (minimal(), ""),
        (minimal(sensitive=["income"]), ""),
        (minimal(quasi_identifiers=["zip"], sensitive=["age"]), ""),
        (minimal(identifiers=["name"]), ""),
        (minimal(sensitive=["note"]), "sensitive"),
        (minimal(quasi_identifiers=["age", "street"]), "quasi_identifiers"),
        (minimal(quasi_identifiers=["town"], sensitive=["note"]), "quasi_identifiers sensitive"),
        (minimal(sensitive=["ssn"]), "sensitive"),
    ],
)
def test_of_other_columns_none_is_published(job, options):
    assert short(ALLOWED, job) == options


def test_other_columns_that_the_job_does_not_name_are_not_published_either():
    floor, publishing = policy(**ALLOWED), Job.from_dict(minimal(unlisted="publish"))
    assert list(misused(floor, publishing, "agency", within="agency")) == []
    (sentence,) = misused(floor, publishing, "note", within="note")
    assert sentence == (
        "unlisted: publishes a column as it is, and the policy 'people' requires others: drop; "
        "leave the column out, or list it under identifiers"
    )
    assert list(misused(floor, Job.from_dict(minimal()), "note", within="note")) == []
    # A field of a column that may be published is a part of it.
    assert list(misused(floor, publishing, "note", within="person")) == []
    assert len(list(misused(floor, publishing, "ssn", within="person"))) == 1


def test_a_field_has_a_role_inside_a_column_too():
    floor = policy(roles=ROLES)
    job = Job.from_dict(minimal(sensitive=["person"]))
    (sentence,) = misused(floor, job, "ssn", within="person")
    assert sentence.startswith("sensitive: has 'person'")


def test_a_column_whose_width_is_required_is_not_published_without_one():
    floor = policy(**WIDE)
    publishing = Job.from_dict(minimal(unlisted="publish", sensitive=["x"], l=2))
    (sentence,) = misused(floor, publishing, "income")
    assert sentence == (
        "unlisted: publishes a column as it is, and the policy 'people' requires l_width, and so "
        "the role inc*: sensitive; list the column under sensitive, or leave it out"
    )
    job = Job.from_dict(with_sensitive(l=2, l_width={"income": "5 %"}))
    (sentence,) = shortfalls(floor, job)
    assert sentence == (
        "l_width.income: is 5 %, and the policy 'people' requires l_width of inc*: 10 %; set 10 % "
        "or a wider one"
    )


def test_of_two_roles_both_hold():
    both = {"*_id": "identifier", "patient_id": "quasi_identifier"}
    assert short({"roles": both}, minimal(quasi_identifiers=["patient_id"])) == "quasi_identifiers"
    assert short({"roles": both}, minimal(identifiers=["patient_id"])) == ""


def test_a_name_with_the_characters_of_a_pattern_is_a_name_too():
    roles = {"income [EUR]": "identifier"}
    assert short({"roles": roles}, minimal(sensitive=["income [EUR]"])) == "sensitive"


def test_a_shortfall_names_policy_key_value_and_remedy():
    (sentence,) = shortfalls(policy(min_k=10), Job.from_dict(minimal()))
    assert sentence == "k: is 5, and the policy 'people' requires min_k: 10; set 10 or more"


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ([{"inputs": ["/in"]}], r"policies\[0\].name: is required"),
        ([{"name": "a"}], r"policies\[0\].inputs: is required"),
        ([{"name": "a", "inputs": ["/in"], "min_k": 1}], r"policies\[0\].min_k: .*at least 2"),
        ([{"name": "a", "inputs": ["/in"], "mink": 3}], r"policies\[0\].mink: unknown .*'min_k'"),
        ([{"name": "a", "inputs": ["/in"], "diversity": "entropy"}], "diversity: needs min_l"),
        (
            [{"name": "a", "inputs": ["/in"], "min_l": 2, "diversity": "recursive"}],
            r"policies\[0\].max_c: is required",
        ),
        (
            [{"name": "a", "inputs": ["/in"], "roles": {"ssn": "identifiers"}}],
            r"policies\[0\].roles.ssn: 'identifiers' is not one of",
        ),
        (
            [{"name": "a", "inputs": ["/in"], "l_width": {"pay": "10 %"}}],
            r"policies\[0\].l_width: needs min_l",
        ),
        (
            [{"name": "a", "inputs": ["/in"], "min_l": 2, "l_width": {"pay": "wide"}}],
            r"policies\[0\].l_width.pay: must be a width, such as 10 %",
        ),
        (
            [
                {
                    "name": "a",
                    "inputs": ["/in"],
                    "min_l": 2,
                    "l_width": {"pay": "5"},
                    "roles": {"pay": "quasi_identifier"},
                }
            ],
            r"policies\[0\].l_width.pay: is for sensitive columns, .* role is quasi_identifier",
        ),
        ([{"name": "a", "inputs": ["/in"], "engines": ["dask"]}], r"engines\[0\]: 'dask'"),
        ([{"name": "a", "inputs": ["/in"], "others": "drop"}], r"\[0\].others: needs roles"),
        (
            [{"name": "a", "inputs": ["/in"], "overlap": "warn"}],
            r"policies\[0\].people_by: is required by overlap: warn",
        ),
        (
            [{"name": "a", "inputs": ["/in"], "people_by": ["ssn"]}],
            "people_by: applies only to overlap: warn or refuse, not ignore",
        ),
        (
            [
                {"name": "a", "inputs": ["/in"], "overlap": "warn", "people_by": ["ssn"]},
                {"name": "b", "inputs": ["/else"]},
                {"name": "c", "inputs": ["/more"], "overlap": "warn", "people_by": ["zip"]},
            ],
            r"policies\[2\].people_by: tells people apart by other columns than the policy 'a'",
        ),
        (
            [
                {"name": "a", "inputs": ["/in"], "overlap": "warn", "people_by": ["ssn"]},
                {"name": "b", "inputs": ["/more"], "overlap": "warn", "people_by": ["name"]},
            ],
            r"policies\[1\].people_by: tells people apart by other columns than the policy 'a'",
        ),
        (
            [{"name": "a", "inputs": ["/in"]}, {"name": "a", "inputs": ["/more"]}],
            r"policies\[1\].name: 'a' is the name of two policies",
        ),
        (
            [{"name": "a", "inputs": ["/in"], "entity_id": "id", "max_t": 0.2}],
            "max_t: counts rows, while entity_id requires that persons are counted; remove one",
        ),
    ],
)
def test_a_wrong_policy_is_named(policies, message):
    with pytest.raises(JobError, match=message):
        Policies.read({"policies": policies})


BOUNDS = [
    ("min_k", 1, 2),
    ("min_l", 1.5, 2),
    ("max_c", 0, 0.5),
    ("max_t", 0, 0.5),
    ("max_t", 1.5, 1),
    *((name, *each) for name in ("max_gcp", "max_risk") for each in ((-0.5, 0), (1.5, 1))),
    *((name, -0.5, 0) for name in ("max_query_error", "max_suppressed")),
]


@pytest.mark.parametrize(("option", "wrong", "right"), BOUNDS)
def test_a_policy_requires_what_a_job_can_ask(option, wrong, right):
    """Less would be no floor, and what no job can ask would keep all from running."""
    policy = {"name": "a", "inputs": ["/in"]}
    if option == "max_c":
        policy |= {"min_l": 2, "diversity": "recursive"}
    with pytest.raises(JobError, match=rf"policies\[0\].{option}: "):
        Policies.read({"policies": [{**policy, option: wrong}]})
    (read,) = Policies.read({"policies": [{**policy, option: right}]}).policies
    assert getattr(read, option) == right


@pytest.mark.parametrize(
    "other",
    [
        {"people_by": ["SSN "]},
        {"entity_id": "ssn"},
        {"people_by": ["name"], "population": "staff"},
        {"overlap": "ignore"},
    ],
)
def test_policies_of_one_population_tell_people_apart_alike(other):
    refusing = {"inputs": ["/in"], "overlap": "refuse"}
    both = [
        {"name": "a", **refusing, "people_by": ["ssn"]},
        {"name": "b", **refusing, **other},
    ]
    assert len(Policies.read({"policies": both}).policies) == 2


def test_a_policy_that_was_kept_is_the_same():
    said = {
        "min_k": 50,
        "min_l": 2,
        "l_width": {"income": "10 %"},
        "roles": ROLES,
        "others": "drop",
        "engines": ["local"],
        "approval": {"required": True, "approvers": ["7=grace"], "four_eyes": True},
    }
    for policies in ((), (policy(), policy(**said))):
        arrival = Arrival("2025-01-01", "s3://raw/patients", policies)
        assert Arrival.from_json(json.loads(json.dumps(arrival.to_json()))) == arrival


def test_a_policy_of_a_newer_version_is_not_taken_for_less():
    kept = {"name": "people", "inputs": ["/in"], "min_m": 3}
    with pytest.raises(JobError, match=r"rows that wait since 2025-01-01\.min_m: unknown"):
        Arrival.from_json({"since": "2025-01-01", "input": "/in", "policies": [kept]})


def approval(**keys) -> Policy:
    return policy(approval=keys)


def test_who_approves_is_who_all_policies_let():
    nobody_named = Required.by([approval(required=True), policy()])
    assert (nobody_named.approval, nobody_named.approvers) == (True, None)
    both = Required.by(
        [approval(approvers=["ada", "7=grace"]), approval(approvers=["7"], four_eyes=True)]
    )
    assert (both.approval, both.approvers, both.four_eyes) == (False, {"7": "grace"}, True)
    none = Required.by([approval(approvers=["ada"]), approval(approvers=["grace"])])
    assert none.approvers == {}


def test_what_one_policy_refuses_is_refused():
    both = (policy(), policy(dependencies="refuse"))
    assert Required.by(each for each in both).dependencies == "refuse"
    assert Required.by(both[:1]).dependencies == "warn"
    assert Required.by([]).dependencies == "warn"


FLOORS = st.fixed_dictionaries(
    {},
    optional={
        "min_k": st.integers(2, 9),
        "min_l": st.sampled_from([2, 2.5, 3]),
        "max_t": st.sampled_from([0.1, 0.2, 0.4]),
        "max_gcp": st.sampled_from([0, 0.2, 0.5]),
        "unlisted": st.sampled_from(["drop", "publish"]),
        "roles": st.dictionaries(
            st.sampled_from(["age", "income", "a*", "*"]),
            st.sampled_from(["identifier", "quasi_identifier", "sensitive"]),
            max_size=2,
        ),
    },
)
JOBS = st.fixed_dictionaries(
    {
        "k": st.integers(2, 9),
        "l": st.sampled_from([None, 2, 3]),
        "diversity": st.sampled_from(["distinct", "entropy"]),
        "t": st.sampled_from([None, 0.1, 0.3]),
        "max_gcp": st.sampled_from([None, 0.1, 0.5]),
        "unlisted": st.sampled_from(["drop", "publish"]),
    }
)


@given(floors=st.lists(FLOORS, min_size=1, max_size=3), asked=JOBS)
def test_a_job_that_passes_is_nowhere_below_the_strictest_policy(floors, asked):
    if asked["l"] is None:
        asked = {**asked, "diversity": "distinct"}
    job = Job.from_dict(with_sensitive(**asked))
    if any(list(shortfalls(policy(**floor), job)) for floor in floors):
        return
    assert job.k >= max(floor.get("min_k", 2) for floor in floors)
    assert (job.l or 1) >= max(floor.get("min_l", 1) for floor in floors)
    assert (job.t or 1) <= min(floor.get("max_t", 1) for floor in floors)
    assert (1 if job.max_gcp is None else job.max_gcp) <= min(
        floor.get("max_gcp", 1) for floor in floors
    )
    assert job.unlisted == "drop" or all(floor.get("unlisted") != "drop" for floor in floors)
    roles = {pair for floor in floors for pair in floor.get("roles", {}).items()}
    assert roles.isdisjoint(product(["age", "a*", "*"], ["identifier", "sensitive"]))
    assert roles.isdisjoint(product(["income", "*"], ["identifier", "quasi_identifier"]))


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({}, "beta_likeness: is not set, and the policy 'people' requires"),
        ({"beta_likeness": {"beta": 3}}, "beta_likeness: is {'beta': 3}, and the policy"),
        ({"beta_likeness": {"beta": 2}}, ""),
        ({"beta_likeness": {"beta": 1}}, ""),
    ],
)
def test_a_policy_requires_the_criterion_of_a_package(asked, problem):
    with added():
        floor = policy(beta_likeness={"beta": 2})
        assert Policy.read(floor.to_dict()) == floor
        found = " ".join(shortfalls(floor, Job.from_dict(with_sensitive(**asked))))
    assert found.startswith(problem)
    assert bool(found) is bool(problem)


def test_a_policy_that_counts_persons_does_not_require_what_counts_rows():
    with added(), pytest.raises(JobError, match="beta_likeness: counts rows, while entity_id"):
        policy(beta_likeness={"beta": 2}, entity_id="id")
