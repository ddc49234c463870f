"""OpenLineage in a real Airflow: what it hears of a release, and of one that is refused."""

from __future__ import annotations

import csv
import json
from contextlib import suppress

import pytest

from dag_runs import form

pytestmark = pytest.mark.airflow


@pytest.fixture(scope="module")
def runs(project):
    """Start both; run id by name."""

    def start(name, **changed):
        asked = form(project.job(name, **changed), fragments=1)
        return project.airflow.trigger("mondrian_anonymize", asked)

    return {
        "lineage_published": start("lineage_published"),
        "lineage_refused": start("lineage_refused", max_gcp=0.01),
    }


def names(datasets):
    return [each["name"] for each in datasets]


def texts(project):
    """What OpenLineage wrote, of every run."""
    return [path.read_text() for path in (project.root / "airflow" / "lineage").iterdir()]


def heard(project, runs, kind, name):
    """The events of a kind that a run of `mondrian_anonymize` makes."""
    project.airflow.finish("mondrian_anonymize", runs[name])
    events = []

    def written():
        for text in texts(project):
            with suppress(ValueError):  # one of another run may be half written
                events.append(json.loads(text))
        events[:] = [
            event
            for event in events
            if event["eventType"] == kind
            and event["run"]["facets"]["airflow"]["dagRun"]["run_id"] == runs[name]
        ]
        return events != []

    assert project.airflow.comes_true(written)
    return events


def test_a_catalogue_learns_how_a_release_was_anonymized(project, runs):
    (event,) = heard(project, runs, "COMPLETE", "lineage_published")
    (source,), (release,) = event["inputs"], event["outputs"]
    assert source["name"] == str(project.root / "include" / "examples" / "people.csv")
    assert release["name"] == str(project.output("lineage_published"))
    report = json.loads((project.output("lineage_published") / "_report.json").read_text())
    facet = release["facets"]["mondrian_ops_anonymization"]
    assert facet["privacyModel"] == {"k": 5, "l": 2}
    assert facet["metrics"] == report["metrics"]
    assert facet["columns"]["direct identifier"] == ["name"]
    assert release["outputFacets"]["outputStatistics"]["rowCount"] == 2000


@pytest.mark.parametrize("name", ["lineage_published", "lineage_refused"])
def test_a_catalogue_learns_what_begins(project, runs, name):
    (event,) = heard(project, runs, "START", name)
    assert names(event["inputs"]) == [str(project.root / "include" / "examples" / "people.csv")]
    assert names(event["outputs"]) == [str(project.output(name))]


def test_a_refused_release_is_no_output(project, runs):
    (event,) = heard(project, runs, "FAIL", "lineage_refused")
    assert names(event["inputs"]) == [str(project.root / "include" / "examples" / "people.csv")]
    assert str(project.output("lineage_refused")) not in names(event["outputs"])


def test_no_name_of_a_person_is_told(project, runs):
    assert heard(project, runs, "COMPLETE", "lineage_published")
    assert heard(project, runs, "FAIL", "lineage_refused")
    with (project.root / "include" / "examples" / "people.csv").open() as file:
        names = {row["name"] for row in csv.DictReader(file)}
    told = texts(project)
    assert not [name for name in names if any(name in text for text in told)]
