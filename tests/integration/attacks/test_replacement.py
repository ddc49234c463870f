"""Replacement: a release that others rely on becomes one that gives people away.

Somebody who may start a job, in another DAG or with other parameters, names the output of a release
that is there: its readers get whatever that job asks for, under the same path.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from adversary import population
from mondrian_ops import pipeline, publish, tables
from mondrian_ops.errors import StorageError
from mondrian_ops.publish import work_path
from mondrian_ops.stores import load_job
from tiers import one_in

PEOPLE = population(500, 7, "occupation", "income").drop_columns(["row"])
STRONG: dict[str, Any] = {
    "k": 5,
    "l": 2,
    "identifiers": ["name"],
    "quasi_identifiers": ["age", "sex", "zip=prefix"],
    "sensitive": ["diagnosis"],
    "cut": "median",
    "partitioning": {"fragments": 2},
}
NIGHTLY, OTHER = "hospital_nightly", "somebody_elses"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with people to anonymize."""
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    return tmp_path


def made(site: Path, made_by: str | None = NIGHTLY, **changed: Any) -> dict[str, Any]:
    """The report of a release that the strong job, changed, makes in the three phases of a DAG."""
    job = load_job(
        {
            "input": str(site / "people.parquet"),
            "output": str(site / "release"),
            **{key: value for key, value in (STRONG | changed).items() if value is not None},
        }
    )
    work = work_path(str(job.output), "a night")
    try:
        fragments = pipeline.partition(job, work=work, made_by=made_by)
        summaries = [pipeline.anonymize_fragment(each) for each in fragments]
        return pipeline.wrap_up(job, work=work, summaries=summaries)
    finally:
        pipeline.discard(work)


def refusal(site: Path, made_by: str | None = NIGHTLY, **changed: Any) -> str:
    """Why such a release is refused; the one that is there is as it was, and nothing else is."""
    before = {path.name: path.read_bytes() for path in (site / "release").iterdir()}
    with pytest.raises(StorageError) as refused:
        made(site, made_by, **changed)
    assert {path.name: path.read_bytes() for path in (site / "release").iterdir()} == before
    assert sorted(each.name for each in site.iterdir()) == ["people.parquet", "release"]
    return str(refused.value)


def published(site: Path) -> list[dict[str, Any]]:
    """The rows that a reader of the output gets."""
    rows: list[dict[str, Any]] = pq.read_table(site / "release").to_pylist()
    return rows


def test_names_and_diagnoses_do_not_take_the_place_of_a_release(site):
    """Anybody's job, from the command line, that calls names sensitive and asks for little."""
    assert made(site)["made_by"] == NIGHTLY
    raw = {"k": 2, "l": None, "identifiers": None, "quasi_identifiers": ["sex"],
           "sensitive": ["name", "diagnosis"]}  # fmt: skip
    told = refusal(site, None, **raw)
    assert "of the DAG 'hospital_nightly' with k = 5, l = 2" in told
    assert "a release of the command line or Python with k = 2, no l" in told
    assert "'name'" in told and "replace: any" in told
    for value in (PEOPLE["name"][0].as_py(), PEOPLE["diagnosis"][0].as_py()):
        assert value not in told
    assert "name" not in published(site)[0]
    made(site, None, replace="any", **raw)  # for who says so
    assert "name" in published(site)[0]


WEAKER: dict[str, tuple[dict[str, Any], str]] = {
    "k": ({"k": 4}, "k is 4, and was 5"),
    "no l": ({"l": None, "c": None, "diversity": None}, "l is not set, and was 3"),
    "l": ({"l": 2, "c": None, "diversity": None}, "l is 2, and was 3"),
    "diversity": ({"c": None, "diversity": None}, "diversity is distinct, and was recursive"),
    "other diversity": ({"c": None, "diversity": "entropy"}, "diversity is entropy"),
    "missing values": ({"missing_sensitive": "value"}, "missing sensitive values count towards l"),
    "c": ({"c": 9}, "c is 9, and was 5"),
    "no t": ({"t": None, "t_distance": None}, "t is not set, and was 0.9"),
    "t": ({"t": 0.95}, "t is 0.95, and was 0.9"),
    "distance": (
        {"t_distance": "hierarchical", "sensitive_hierarchy": {"diagnosis": "diagnoses.csv"}},
        "t_distance is hierarchical, and was ordered",
    ),
    "persons": ({"entity_id": None}, "k counts rows, and counted persons by 'name'"),
    "other persons": (
        {"entity_id": "country", "identifiers": ["name"]},
        "k counts persons by 'country', and counted persons by 'name'",
    ),
    "unlisted": ({"unlisted": "publish"}, "columns that the job does not name are published"),
    "left out before": ({"sensitive": ["diagnosis", "country"]}, "'country': published raw"),
    "identifier as sensitive": (
        {"entity_id": None, "identifiers": None, "sensitive": ["diagnosis", "name"], "l": 3},
        "'name': published raw",
    ),
    "identifier as quasi-identifier": (
        {"entity_id": None, "identifiers": None, "quasi_identifiers": [*STRONG["quasi_identifiers"], "name"]},  # noqa: E501
        "'name': an identifier before",
    ),
    "quasi-identifier as sensitive": (
        {"quasi_identifiers": ["age", "sex"], "sensitive": ["diagnosis", "zip"]},
        "'zip': published raw",
    ),
    "quasi-identifier unlisted": (
        {"quasi_identifiers": ["age", "sex"], "unlisted": "publish"},
        "'zip': published raw",
    ),
    "sensitive unlisted": (
        {"sensitive": ["income"], "unlisted": "publish", "l": 3},
        "'diagnosis', 'income', 'occupation': published raw",
    ),
    "sensitive as quasi-identifier": (
        {"sensitive": ["income"], "quasi_identifiers": [*STRONG["quasi_identifiers"], "diagnosis"]},
        "'diagnosis': no longer sensitive",
    ),
}  # fmt: skip
STRONGEST = {
    "l": 3,
    "diversity": "recursive",
    "c": 5,
    "t": 0.9,
    "t_distance": "ordered",
    "entity_id": "name",
}


@pytest.fixture(scope="module")
def strongest(tmp_path_factory) -> Path:
    """A folder with the release of a job that asks for all there is."""
    site = tmp_path_factory.mktemp("strongest")
    pq.write_table(PEOPLE, site / "people.parquet")
    made(site, **STRONGEST)
    return site


@pytest.mark.parametrize("way", WEAKER)
def test_each_way_of_being_weaker_is_refused(strongest, way):
    changed, reason = WEAKER[way]
    told = refusal(strongest, **{**STRONGEST, **changed})
    assert reason in told
    assert told.startswith("output: ") and told.endswith("set replace: any")


@pytest.mark.parametrize(
    "changed",
    one_in(
        2,
        [
            {},
            {"k": 6, "l": 4, "c": 4, "t": 0.8},
            {"t_distance": "equal"},  # no two distributions are closer by it
            {"quasi_identifiers": [*STRONG["quasi_identifiers"], "country"]},  # left out before
            {"quasi_identifiers": ["age", "sex"], "identifiers": ["name", "zip"]},
            {"quasi_identifiers": ["age", "sex"]},  # left out now
            {"identifier_policy": "redact"},
            {"algorithm": "di_mondrian", "cut": None},
        ],
    ),
    ids=str,
)
def test_a_release_that_promises_no_less_replaces_it(site, changed):
    made(site, **STRONGEST)
    assert made(site, **{**STRONGEST, **changed})["rows"]["input"] == 500


@pytest.mark.parametrize("made_by", [OTHER, f"{NIGHTLY}/another_group", None])
def test_a_release_of_another_is_refused_however_strong(site, made_by):
    made(site)
    told = refusal(site, made_by, k=50)
    assert "of the DAG 'hospital_nightly' with k = 5, l = 2" in told
    assert "the two have different makers" in told
    assert made(site, made_by, k=50, replace="any")["made_by"] == made_by
    assert "holds a release of " in refusal(site)  # now it is the other's


def test_the_maker_is_the_same_every_night(site):
    for night in ("hospital", "hospital/anonymize"):
        made(site, night, replace="any")
        made(site, night)


def test_a_release_of_a_version_that_named_no_maker_may_be_anybodys(site):
    made(site)
    path = site / "release" / "_report.json"
    report = json.loads(path.read_text())
    del report["made_by"]
    path.write_text(json.dumps(report))
    told = refusal(site, OTHER, k=4)
    assert "holds a release with k = 5, l = 2" in told
    made(site, OTHER)
    assert "'somebody_elses'" in refusal(site)


def test_what_is_published_in_the_meantime_is_not_replaced_either(site):
    """A run begins while nothing is there, and is slow: a stronger release comes first."""
    job = load_job(
        {"input": str(site / "people.parquet"), "output": str(site / "release"), **STRONG, "k": 3}
    )
    work = work_path(str(job.output), "slow")
    fragments = pipeline.partition(job, work=work, made_by=NIGHTLY)
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]
    pipeline.check(job, work=work, summaries=summaries)
    made(site)
    noted = publish.WorkDir.attach(work)
    noted.note_replaced(
        publish.current_token(str(job.output)), made_by=NIGHTLY
    )  # as if it had known
    with pytest.raises(StorageError, match="k is 3, and was 5"):
        pipeline.publish(job, work=work)
    assert json.loads((site / "release" / "_report.json").read_text())["job"]["k"] == 5


def test_no_work_is_done_for_what_is_refused(site, monkeypatch):
    made(site)
    monkeypatch.setattr(tables, "open_table", None)
    assert "may not replace" in refusal(site, k=2)


def test_who_is_asked_for_an_approval_sees_what_it_replaces(site):
    made(site)
    asked: list[dict[str, Any]] = []

    def approve(report: dict[str, Any]) -> str:
        asked.append(report)
        return "ada"

    job = load_job(
        {
            "input": str(site / "people.parquet"),
            "output": str(site / "release"),
            **STRONG,
            "require_approval": True,
            "replace": "any",
        }
    )
    pipeline.run(job, approve=approve)
    from mondrian_ops.report import render_markdown

    assert asked[0]["replaces"].items() >= {"made_by": NIGHTLY, "k": 5, "l": 2}.items()
    assert "hospital\\_nightly" in render_markdown(asked[0])
