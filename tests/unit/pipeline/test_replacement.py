"""What decides that a release may replace another; the cases come from mutation testing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from added_criteria import added
from mondrian_ops import publish, stores
from mondrian_ops.errors import JobError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.pipeline import frontier
from mondrian_ops.pipeline.checks import column_roles
from mondrian_ops.pipeline.replacement import (
    refuse_replacing,
    replaced_by,
    weaknesses,
)

NAMES = ["age", "zip", "ill", "name", "note"]
KEYS: dict[str, Any] = {
    "k": 5,
    "identifiers": ["name"],
    "quasi_identifiers": ["age", "zip"],
    "sensitive": ["ill"],
}


def a_job(**keys: Any) -> Job:
    return Job.from_dict({"input": "in", "output": "out", **KEYS, **keys})


def report_of(job: Job, **more: Any) -> dict[str, Any]:
    """As much of its report as counts; the source has an index, and a column nobody names."""
    columns = column_roles(job, NAMES, ["i"])
    return {"job": job.to_dict(), "columns": columns, "equivalence_classes": 1, **more}


def weaker(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return weaknesses(a_job(**after), report_of(a_job(**before)))


SAME = [
    {},
    {"l": 2},
    {"l": 3, "diversity": "entropy"},
    {"l": 3, "diversity": "recursive", "c": 2},
    {"t": 0.25},
    {"t": 0.25, "t_distance": "ordered"},
    {"t": 0.25, "t_distance": "hierarchical", "sensitive_hierarchy": {"ill": "ills.csv"}},
    {"l": 2, "l_width": {"ill": "10 %"}},
    {"entity_id": "name"},
    {"unlisted": "publish"},
    {"l": 2, "missing_sensitive": "value"},
    {"identifier_policy": "redact"},
    {"interval_style": "bounds"},
    {"algorithm": "samarati"},
]


@pytest.mark.parametrize("keys", SAME, ids=str)
def test_a_job_is_no_weaker_than_itself(keys):
    assert weaker(keys, keys) == []


NO_WEAKER = [
    ({}, {"k": 6}),
    ({}, {"l": 2}),
    ({"l": 2}, {"l": 3}),
    ({"l": 2}, {"l": 2, "diversity": "entropy"}),
    ({"l": 2}, {"l": 2, "diversity": "recursive", "c": 9}),
    ({"l": 2, "diversity": "recursive", "c": 3}, {"l": 2, "diversity": "recursive", "c": 2.5}),
    ({"l": 2, "missing_sensitive": "value"}, {"l": 2}),
    ({"l": 2}, {"l": 2, "l_width": {"ill": "10 %"}}),
    ({"l": 2, "l_width": {"ill": "1 day"}}, {"l": 2, "l_width": {"ill": "36 hours"}}),
    ({"l": 2, "l_width": {"ill": "5"}}, {"l": 2, "sensitive": ["new"], "identifiers": ["ill"]}),
    ({}, {"t": 0.9}),
    ({"t": 0.5}, {"t": 0.4}),
    ({"t": 0.5, "t_distance": "ordered"}, {"t": 0.5}),
    (SAME[6], {"t": 0.25}),
    ({}, {"entity_id": "name"}),
    ({"unlisted": "publish"}, {}),
    ({}, {"identifiers": ["name", "note"]}),
    ({}, {"quasi_identifiers": ["age", "zip", "note"]}),
    ({}, {"quasi_identifiers": ["age", "zip", "i"]}),
    ({}, {"quasi_identifiers": ["age", "zip", "new"]}),
    ({}, {"quasi_identifiers": ["age"]}),
    ({}, {"quasi_identifiers": ["age"], "identifiers": ["name", "zip"]}),
    ({}, {"sensitive": ["new", "ill"]}),
    ({"l": 2}, {"l": 2, "sensitive": ["new"]}),
    ({"l": 2}, {"l": 2, "sensitive": ["new"], "identifiers": ["name", "ill"]}),
    ({}, {"sensitive": [], "quasi_identifiers": ["age", "zip", "ill"]}),
    ({"unlisted": "publish"}, {"unlisted": "publish", "sensitive": ["ill", "note"]}),
]


@pytest.mark.parametrize(("before", "after"), NO_WEAKER, ids=str)
def test_what_is_no_weaker(before, after):
    assert weaker(before, after) == []


RECURSIVE = {"l": 2, "diversity": "recursive", "c": 3}
WEAKER = [
    ({}, {"k": 4}, "k is 4, and was 5"),
    ({"l": 2}, {}, "l is not set, and was 2"),
    ({"l": 3}, {"l": 2}, "l is 2, and was 3"),
    ({"l": 3}, {"l": 2.5, "diversity": "entropy"}, "l is 2.5, and was 3"),
    ({"l": 2}, {"l": 2, "missing_sensitive": "value"},
     "missing sensitive values count towards l, and did not before"),
    (RECURSIVE, {"l": 2}, "diversity is distinct, and was recursive"),
    (RECURSIVE, {"l": 2, "diversity": "entropy"}, "diversity is entropy, and was recursive"),
    (RECURSIVE, {**RECURSIVE, "c": 3.5}, "c is 3.5, and was 3"),
    ({"l": 2, "l_width": {"ill": "5"}}, {"l": 2}, "l_width of 'ill' is not set, and was 5"),
    ({"l": 2, "l_width": {"ill": "5"}}, {"l": 2, "l_width": {"ill": "4"}},
     "l_width of 'ill' is 4, and was 5"),
    ({"l": 2, "l_width": {"ill": "5"}}, {"l": 2, "l_width": {"ill": "50 %"}},
     "l_width of 'ill' is 50 %, and was 5"),
    ({"t": 0.5}, {}, "t is not set, and was 0.5"),
    ({"t": 0.5}, {"t": 0.6}, "t is 0.6, and was 0.5"),
    ({"t": 0.25}, SAME[5], "t_distance is ordered, and was equal"),
    ({"t": 0.25}, SAME[6], "t_distance is hierarchical, and was equal"),
    (SAME[5], SAME[6], "t_distance is hierarchical, and was ordered"),
    (SAME[6], {**SAME[6], "sensitive_hierarchy": {"ill": "other.csv"}},
     "t is measured by other hierarchies"),
    ({"entity_id": "name"}, {}, "k counts rows, and counted persons by 'name'"),
    ({"entity_id": "name"}, {"entity_id": "note"},
     "k counts persons by 'note', and counted persons by 'name'"),
    ({}, {"sensitive": ["ill", "note"]}, "'note': published raw, and protected before"),
    ({}, {"sensitive": ["ill", "i"]}, "'i': published raw, and protected before"),
    ({}, {"quasi_identifiers": ["age"], "sensitive": ["ill", "zip"]},
     "'zip': published raw, and protected before"),
    ({}, {"identifiers": [], "sensitive": ["ill", "name"]},
     "'name': published raw, and protected before"),
    ({}, {"identifiers": [], "quasi_identifiers": ["age", "zip", "name"]},
     "'name': an identifier before, and now published as a quasi-identifier"),
    ({"l": 2}, {"l": 2, "sensitive": ["new"], "quasi_identifiers": ["age", "zip", "ill"]},
     "'ill': no longer sensitive, so neither l nor t protects it"),
    ({"t": 0.5}, {"t": 0.5, "sensitive": ["new"], "quasi_identifiers": ["age", "zip", "ill"]},
     "'ill': no longer sensitive, so neither l nor t protects it"),
    ({"unlisted": "publish"}, {"unlisted": "publish", "quasi_identifiers": ["age"]},
     "'zip': published raw, and protected before"),
    ({"unlisted": "publish"}, {"unlisted": "publish", "sensitive": []},
     "'ill': published raw, and protected before"),
    ({"unlisted": "publish"}, {"unlisted": "publish", "identifiers": []},
     "'name': published raw, and protected before"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "reason"), WEAKER, ids=str)
def test_what_is_weaker(before, after, reason):
    assert weaker(before, after) == [reason]


def test_all_that_is_weaker_is_said_in_order():
    after = {"k": 2, "unlisted": "publish", "identifiers": [], "quasi_identifiers": ["age"]}
    assert weaker({"l": 2}, after) == [
        "k is 2, and was 5",
        "l is not set, and was 2",
        "columns that the job does not name are published, and were dropped",
        "'name', 'note', 'zip': published raw, and protected before",
    ]


def test_very_many_columns_are_counted():
    names = [f"c{at:02}" for at in range(23)]
    columns = column_roles(a_job(), [*NAMES, *names])
    standing = {**report_of(a_job()), "columns": columns}
    (text,) = weaknesses(a_job(sensitive=["ill", *names]), standing)
    assert text.startswith("'c00', 'c01', ")
    assert text.endswith("'c19' and 3 more: published raw, and protected before")
    (text,) = weaknesses(a_job(sensitive=["ill", *names[:20]]), standing)
    assert "more" not in text


@pytest.mark.parametrize(
    "standing",
    [
        {},
        {"job": None, "columns": 7},
        {"job": {"k": "9", "l": True, "t": None, "diversity": 4}, "columns": {"sensitive": "age"}},
        {"job": {"sensitive_hierarchy": 3}, "columns": {"identifiers": [1, None, ["age"]]}},
    ],
)
def test_what_makes_no_sense_in_a_report_says_nothing(standing):
    assert weaknesses(a_job(unlisted="publish"), standing) == []


@pytest.mark.parametrize(
    ("before", "is_weaker"),
    [
        ({"beta": 2}, False),
        ({"beta": "2"}, False),  # as a job may say it, too
        ({"beta": 1.5}, True),
        ({"beta": "many"}, True),
        ({"beta": [2]}, True),
        ({"beta": 2, "gamma": 1}, True),  # of another version of the package
        ({}, True),
        ("2", True),
        (None, True),
    ],
    ids=str,
)
def test_options_of_a_criterion_that_make_no_sense_in_a_report_promise_more(before, is_weaker):
    with added():
        job = a_job(beta_likeness={"beta": 2})
        standing = report_of(job, criteria=[{"key": "beta_likeness"}])
        standing["job"]["beta_likeness"] = before
        found = weaknesses(job, standing)
    assert found == ["beta_likeness has other options, which promise less"] * is_weaker


def test_a_criterion_that_is_asked_for_no_longer_was_promised():
    with added():
        standing = report_of(a_job(beta_likeness={"beta": 2}), criteria=[{"key": "beta_likeness"}])
        assert weaknesses(a_job(), standing) == ["beta_likeness is not set, and was"]
        for damaged in ([{"key": 7}], [7], "beta_likeness", None):
            assert weaknesses(a_job(), {**standing, "criteria": damaged}) == []


@pytest.mark.parametrize(("risk", "is_weaker"), [(2, False), (1, True), (3, True)])
def test_a_criterion_promises_as_much_only_by_the_same_options(risk, is_weaker):
    with added({"given": "added_criteria:Given"}):
        job = a_job(given={"risk": 2})
        standing = report_of(a_job(given={"risk": risk}), criteria=[{"key": "given"}])
        assert bool(weaknesses(job, standing)) is is_weaker


# The release at the output


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """The output of a job, where a release with l = 2 of a DAG is."""
    write(tmp_path, report_of(a_job(l=2), made_by="a_dag", created="2025-06-01T10:00:00+00:00"))
    return tmp_path


def write(folder: Path, report: Any) -> None:
    (folder / "_report.json").write_text(json.dumps(report), encoding="utf-8")


def refusal(output: Path, made_by: str | None, **keys: Any) -> str:
    with pytest.raises(StorageError) as refused:
        refuse_replacing(a_job(output=str(output), **keys), made_by)
    return str(refused.value)


def test_its_maker_may_replace_it_by_one_that_promises_no_less(output):
    refuse_replacing(a_job(output=str(output), l=2), "a_dag")
    text = refusal(output, "a_dag", k=4)
    assert text == (
        f"output: {output} holds a release of the DAG 'a_dag' with k = 5, l = 2, which a release "
        "of the DAG 'a_dag' with k = 4, no l may not replace: k is 4, and was 5; l is not set, and "
        "was 2; choose another `output`, or set replace: any"
    )


@pytest.mark.parametrize("made_by", [None, "another", "a_dag/group"])
def test_another_may_not(output, made_by):
    assert "may not replace: the two have different makers; choose" in refusal(output, made_by, l=2)
    assert "replace: the two have different makers; k is 4, and was 5; l is" in refusal(
        output, made_by, k=4
    )
    refuse_replacing(a_job(output=str(output), k=2, replace="any"), made_by)


@pytest.fixture
def rules(tmp_path):
    """Set the rules about outputs of a policy file."""

    def decree(*rules):
        (tmp_path / "policies.json").write_text(json.dumps({"outputs": rules}))
        stores.use_policies(str(tmp_path / "policies.json"))

    yield decree
    stores.use_policies(None)


@pytest.mark.parametrize("made_by", ["patients_daily", "patients_daily/group"])
def test_an_output_belongs_to_the_dags_of_its_rule(output, rules, made_by):
    write(output, report_of(a_job(), made_by=made_by))
    rules({"location": str(output.parent), "dags": ["staff", "patients_*"]})
    refuse_replacing(a_job(output=str(output)), made_by)


@pytest.mark.parametrize("made_by", [None, "another", "patients", "group/patients_daily"])
def test_others_do_not_write_there(output, rules, made_by):
    """Also not where there is no release yet, nor beside it by another name."""
    rules({"location": str(output.parent), "dags": ["patients_*"]})
    for place in (output, output / "new", output.parent / "x" / ".." / "new"):
        for job in (a_job(output=str(place)), a_job(output=str(place), replace="any")):
            with pytest.raises(JobError, match=r"belongs to the DAGs patients_\* by the policies"):
                refuse_replacing(job, made_by)


def test_nor_do_they_write_a_frontier_there(output, rules):
    rules({"location": str(output.parent), "dags": ["patients_*"]})
    job = a_job(output=str(output / "new"))
    assert frontier.folder_of(job, None, "patients_daily").endswith("new_frontier")
    for folder in (None, str(output.parent / "figures")):
        with pytest.raises(JobError, match="belongs to the DAGs"):
            frontier.folder_of(job, folder, "another")


def test_with_policies_any_replacement_is_theirs_to_allow(output, rules):
    job = a_job(output=str(output), k=2, replace="any")
    for some in ([], [{"location": str(output)}]):
        rules(*some)
        with pytest.raises(JobError, match="replace: any is not allowed at"):
            refuse_replacing(job, "a_dag")
        assert "or set replace: any" not in refusal(output, "a_dag", k=2)
    rules({"location": str(output), "replace": "any"})
    refuse_replacing(job, "a_dag")
    # The strictest rule holds.
    rules({"location": str(output), "replace": "any"}, {"location": str(output.parent)})
    with pytest.raises(JobError, match="replace: any is not allowed at"):
        refuse_replacing(job, "a_dag")


def test_a_rule_may_let_no_release_be_replaced(output, rules):
    rules({"location": str(output.parent), "replace": "never"})
    assert "the policies let none be replaced there" in refusal(output, "a_dag", l=2)
    refuse_replacing(a_job(output=str(output.parent / "new")), "a_dag")


def test_of_the_command_line_is_not_of_nobody(output):
    write(output, report_of(a_job(), made_by=None))
    refuse_replacing(a_job(output=str(output)), None)
    text = refusal(output, "a_dag")
    assert "holds a release of the command line or Python with k = 5, no l, which" in text


def test_of_nobody_it_is_only_compared(output):
    write(output, report_of(a_job()))
    for made_by in (None, "a_dag"):
        refuse_replacing(a_job(output=str(output)), made_by)
        assert f"{output} holds a release with k = 5, no l, which" in refusal(output, made_by, k=4)


@pytest.mark.parametrize("content", [None, "", "[]", "7", "{", '"job"'])
def test_where_there_is_no_release_there_is_none_to_replace(tmp_path, content):
    if content is not None:
        (tmp_path / "_report.json").write_text(content)
    assert publish.report_of(str(tmp_path)) is None
    refuse_replacing(a_job(output=str(tmp_path)), "a_dag")
    assert replaced_by(a_job(output=str(tmp_path))) == {}
    assert publish.report_of(str(tmp_path / "_report.json")) is None
    assert publish.report_of(f"{tmp_path}/nowhere") is None


def test_an_approver_is_told_what_it_would_replace(output):
    assert replaced_by(a_job(output=str(output))) == {
        "made_by": "a_dag",
        "created": "2025-06-01T10:00:00+00:00",
        "k": 5,
        "l": 2,
    }
    write(output, report_of(a_job(t=0.5)))
    assert replaced_by(a_job(output=str(output))) == {"k": 5, "t": 0.5}
    write(output, {"job": None, "made_by": None})
    assert replaced_by(a_job(output=str(output))) == {"made_by": None}
