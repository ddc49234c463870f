"""What `verify` says of a release that was published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ill_people import JOB, ROWS, people
from mondrian_ops import anonymize, pipeline, publish, series
from mondrian_ops.errors import InputError
from mondrian_ops.job.job import Job

# verify


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Two files; the class of age 3 has one of its rows in the second."""
    whole = people().set_column(0, "age", pa.array([str(at // 3) for at in range(ROWS)]))
    for at, part in enumerate((whole[:11], whole[11:])):
        pq.write_table(part, tmp_path / f"part-{at}.parquet")
    return tmp_path


def verified(release: Path, **keys: Any) -> dict[str, Any]:
    return pipeline.verify(Job.from_dict({**JOB, **keys}, paths_required=False), str(release))


def test_classes_are_counted_over_all_files_of_a_release(release):
    assert verified(release, l=2, sensitive=["ill"]) == {
        "passed": True,
        "rows": ROWS,
        "equivalence_classes": 8,
        "achieved": {"k": 3, "l": 2},
        "checked": ["k-anonymity, k = 3", "distinct l-diversity of ill, l = 2"],
        "failures": [],
        "notes": [],
    }


@pytest.mark.parametrize(
    ("keys", "criterion"), [({"k": 4}, "k-anonymity"), ({"l": 3}, "l-diversity")]
)
def test_a_release_that_fails_is_told_with_what_failed(release, keys, criterion):
    verdict = verified(release, **{"l": 2, "sensitive": ["ill"], **keys})
    assert verdict["passed"] is False
    (failure,) = verdict["failures"]
    assert criterion in failure


def test_the_distance_between_sensitive_values_is_that_of_their_hierarchy(tmp_path, monkeypatch):
    monkeypatch.setenv("MONDRIAN_OPS_HIERARCHIES", str(tmp_path))
    (tmp_path / "ills.csv").write_text("flu;lungs;*\ncold;lungs;*\n")
    (tmp_path / "release").mkdir()
    ages = pa.array(["0"] * 12 + ["1"] * 12)
    pq.write_table(people(age=ages), tmp_path / "release" / "part-0.parquet")
    keys = {"sensitive": ["ill"], "t": 0.2, "t_distance": "hierarchical"}
    keys["sensitive_hierarchy"] = {"ill": "ills.csv"}
    assert verified(tmp_path / "release", **keys)["passed"]
    assert anonymize(people(), {**JOB, **keys})[1]["verification"]["passed"]


def test_a_release_does_not_say_whose_rows_its_rows_are(release):
    verdict = verified(release, entity_id="person")
    assert verdict["passed"]
    (note,) = verdict["notes"]
    assert note.startswith("k counts rows here")
    verdict = verified(release, entity_id="person", sensitive=["ill"], l=2)
    (note,) = verdict["notes"]
    assert note.startswith("k and l count rows here")
    assert verdict["checked"][1] == "distinct l-diversity of ill, l = 2 in rows, not persons"


def test_where_nothing_lies_nothing_is_checked(tmp_path, monkeypatch):
    with pytest.raises(InputError):
        verified(tmp_path)
    monkeypatch.setattr("mondrian_ops.publish.release_files", lambda _: iter([]))
    with pytest.raises(InputError, match=f"^{tmp_path}: there is no data file to check$"):
        verified(tmp_path)


def test_no_hierarchy_is_needed_to_count_classes(release):
    assert verified(release, quasi_identifiers=["age=hierarchy:gone.csv"])["passed"]


def test_columns_that_are_not_counted_are_not_read(tmp_path, monkeypatch):
    table = {"age": ["[1, 2]", "[1, 2]"], "note": ["a", "b"], "diagnosis": ["a", "b"]}
    pq.write_table(pa.table(table), tmp_path / "part-0.parquet")
    names = []
    original = publish.ReleaseFile.batches

    def reading(file, columns=None):
        for batch in original(file, columns):
            names.append(batch.schema.names)
            yield batch

    monkeypatch.setattr(publish.ReleaseFile, "batches", reading)
    job = {"k": 2, "quasi_identifiers": ["age"], "sensitive": ["diagnosis"]}
    verdict = pipeline.verify(Job.from_dict(job, paths_required=False), str(tmp_path))
    assert names == [["age", "diagnosis"]]
    assert any("note" in failure for failure in verdict["failures"])  # its name is read


IN_SERIES = {"input": "in/2025-01-01", "output": "out/2025-01-01", "series": {}}


@pytest.mark.parametrize("fitted", [True, False])
def test_intervals_are_compared_with_the_boundaries_of_a_series_that_shares_them(
    release, monkeypatch, fitted
):
    columns = {"age": {"values": list(range(8)), "closed": True}}
    known = {"night": 3, "columns": columns} if fitted else None
    asked = []
    monkeypatch.setattr(series, "boundaries_of", lambda output: asked.append(output) or known)
    shares = IN_SERIES | {"series": {"boundaries": "stable"}}
    verdict = verified(release, **shares)
    assert asked == [str(release)]
    assert ("boundaries of the series, fitted in night 3" in verdict["checked"]) is fitted
    assert [note[:37] for note in verdict["notes"]] == ["the catalogue does not know this rele"] * (
        not fitted
    )
    columns["age"]["values"].pop()  # no cell begins there, so 6 goes on without end
    assert verified(release, **shares)["passed"] is not fitted
    assert verified(release, **IN_SERIES)["notes"] == []
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("report", "number"),
    [
        (None, None),
        ({"series": {"people": {"counterfeits": 3}}}, 3),
        ({"series": {"people": {}}}, 0),
        ({"series": {"people": {"counterfeits": "many"}}}, 0),
        ({"series": None}, 0),
        ({}, 0),
    ],
)
def test_rows_that_are_made_up_are_those_of_the_report(release, monkeypatch, report, number):
    given = []

    def without(job, output, verdict, counterfeits):
        given.append((output, counterfeits))
        return replace(verdict, passed=False, failures=("it has too many",))

    monkeypatch.setattr(publish, "report_of", lambda _: report)
    monkeypatch.setattr(series, "without_counterfeits", without)
    verdict = verified(release)
    assert (verdict["passed"], verdict["failures"]) == (False, ["it has too many"])
    makes_up = {"protect": "intersection", "unmatched": "counterfeit", "kind": "snapshots"}
    verified(release, **IN_SERIES | {"series": makes_up}, entity_id="person", l=2,
             sensitive=["ill"])  # fmt: skip
    assert given == [(str(release), number or 0), (str(release), number)]
