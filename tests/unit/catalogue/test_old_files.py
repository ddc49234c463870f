"""The import of what older versions kept in files, which their own code made (``old_files``).

The archive: 34 nights, one of which was refused later; two with reports; a frontier; a segment
beside loose entries. The ledger: two nights of 60 people who share 30; the second was killed before
it was marked as published.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mondrian_ops import catalogue, cli
from mondrian_ops.catalogue import Catalogue, Place, people
from mondrian_ops.catalogue.old_files import Imported, import_ledger, import_reports
from mondrian_ops.catalogue.tables import FIGURES, document, release
from mondrian_ops.core.errors import StorageError
from releases import entry, entry_id, keep_entry, recorded_releases

OLD = Path(__file__).with_name("old_files")
REPORTS, LEDGER = str(OLD / "reports"), str(OLD / "ledger")


@pytest.fixture
def opened(tmp_path: Path) -> Catalogue:
    return Catalogue(Place.of(str(tmp_path / "catalogue.db")))


def rows(of: Catalogue) -> dict[str, dict]:
    with of.reading() as connection:
        found = connection.execute(release.select()).mappings()
        return {row["id"]: dict(row) for row in found}


def test_an_archive_is_imported_with_its_ids_and_reports(opened):
    assert import_reports(opened, REPORTS) == Imported(37, 0, [])
    imported = rows(opened)
    for number in (0, 33, 40):
        expected = entry(number)
        assert {name: imported[entry_id(number)][name] for name in expected} == expected
    assert imported[entry_id(33)]["GCP"] == pytest.approx(0.133)
    assert imported[entry_id(3)]["series"] == "out/people/*"
    assert (imported[entry_id(41)]["map_index"], imported[entry_id(41)]["rows_published"]) == (
        3,
        110,
    )
    with opened.reading() as connection:
        documents = {
            (row.release, row.name): row.content for row in connection.execute(document.select())
        }
    kept = OLD / "reports" / "reports"
    assert documents == {
        (path.parent.name, path.name): path.read_bytes() for path in kept.glob("*/*")
    }
    assert len(documents) == 3


def test_an_import_may_be_repeated_and_overwrites_nothing_newer(opened):
    newer = entry(1, state="refused", time="2027-01-01T00:00:00.000000+00:00")
    keep_entry(opened, newer)
    import_reports(opened, REPORTS)
    before = rows(opened)
    assert before[entry_id(1)]["state"] == "refused"
    assert before[entry_id(3)]["state"] == "refused"
    assert import_reports(opened, REPORTS) == Imported(0, 37, [])
    assert rows(opened) == before


def test_a_damaged_file_is_named_and_the_rest_imported(opened, tmp_path):
    shutil.copytree(REPORTS, tmp_path / "reports")
    loose = sorted((tmp_path / "reports" / "index").glob("0000001-*"))
    loose[0].write_text("{")
    (tmp_path / "reports" / "reports" / entry_id(40) / "_report.json").unlink(missing_ok=True)
    done = import_reports(opened, str(tmp_path / "reports"))
    assert done.imported == 36 - (entry_id(40) in loose[0].read_text())
    assert str(loose[0]) in done.damaged


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.dictionaries(
        st.sampled_from([*(name for name in entry(1) if name != "id"), *FIGURES, "files"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
    )
)
@example({"k": 10**400, "map_index": 10**400, "dataset": "\0\ud800", "files": ["../../key"]})
def test_an_entry_with_any_values_is_imported(tmp_path_factory, changed):
    place = tmp_path_factory.mktemp("any")
    (place / "reports" / "index").mkdir(parents=True)
    line = json.dumps({**entry(1), **changed})
    (place / "reports" / "index" / "0000001-a.jsonl").write_text(line)
    of = Catalogue(Place.of(str(place / "catalogue.db")))
    done = import_reports(of, str(place / "reports"))
    assert (done.imported, len(rows(of))) == (
        (1, 1) if isinstance(changed.get("time", ""), str) else (0, 0)
    )


def test_a_ledger_is_imported_with_its_key(opened, tmp_path):
    assert import_ledger(opened, LEDGER, "patients") == Imported(2, 0, [])
    assert opened.key == (OLD / "ledger" / "key").read_bytes()
    assert (tmp_path / "catalogue.key").read_text().strip() == opened.key.hex()
    with opened.reading() as connection:
        first, second = people.of_others(connection, "patients", "/another/run", 0)
        assert [*people.of_others(connection, "", "/another/run", 0)] == []
    assert (first.published, second.published) == (True, False)
    assert first.intention.output == "/srv/old/out/2025-01-01"
    assert (first.by, first.sketch.persons, first.sketch.rows) == (["name"], 60, 60)
    assert second.sketch.shared_with(first.sketch) == (0.5, 0.0)
    assert import_ledger(opened, LEDGER, "patients") == Imported(0, 2, [])


def test_a_mark_that_came_since_is_imported(opened, tmp_path):
    import_ledger(opened, LEDGER)
    shutil.copytree(LEDGER, tmp_path / "ledger")
    for path in (tmp_path / "ledger" / "releases").glob("*.json"):
        path.with_suffix(".sure").write_text("published\n")
    assert import_ledger(opened, str(tmp_path / "ledger")) == Imported(0, 2, [])
    with opened.reading() as connection:
        assert {each.published for each in people.of_others(connection, "", "", 0)} == {True}


def test_a_ledger_of_another_key_is_refused(opened):
    assert opened.key
    with pytest.raises(StorageError, match="import the ledger into a new catalogue"):
        import_ledger(opened, LEDGER)
    with opened.reading() as connection:
        assert [*people.of_others(connection, "", "", 0)] == []


def test_the_command_imports_both_and_says_how_much(capsys):
    assert cli.main(["import", "--reports", REPORTS, "--ledger", LEDGER]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ledger: 2 imported, 0 there already",
        "archive of reports: 37 imported, 0 there already",
    ]
    assert cli.main(["import"]) == 1
    assert "--reports, --ledger or both" in capsys.readouterr().err
    assert len(recorded_releases()) == 37
    assert catalogue.current().key == (OLD / "ledger" / "key").read_bytes()
