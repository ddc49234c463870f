"""``verify --series``: a series attacked from outside, and what was changed after its nights."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from kept_folder import KeptFolder
from mondrian_ops import catalogue, cli, pipeline
from mondrian_ops.catalogue import signatures, tables
from mondrian_ops.datasets import Population, nights
from mondrian_ops.errors import JobError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.series import nights as nights_of_series
from nights import silent
from tiers import one_in
from town import PROTECTED, Town

PEOPLE = Population(300, 3, kind="snapshots", leave=0.1, come=0.1, back=0.4, move=0.05, change=0.02)


def town_of(folder: Path, **series: Any) -> Town:
    town = Town(folder, **series)
    for _, drop in nights(PEOPLE):
        town.run(drop)
    return town


def attacked(town: Town) -> dict[str, Any]:
    """The verdict on the series, by the job and the output of any of its nights."""
    return pipeline.verify_series(town.job(0), str(town.job(1).output))


@pytest.fixture(scope="module")
def three_nights(tmp_path_factory: pytest.TempPathFactory) -> KeptFolder:
    return KeptFolder(tmp_path_factory.mktemp("series"), lambda at: town_of(at, **PROTECTED))


@pytest.fixture
def protected(three_nights: KeptFolder, monkeypatch: pytest.MonkeyPatch) -> Town:
    town = Town(three_nights.brought_back(monkeypatch), **PROTECTED)
    town.drops = [pq.read_table(str(town.job(day).input)) for day in range(PEOPLE.nights)]
    return town


def test_nobody_falls_below_in_a_protected_series(protected: Town) -> None:
    verdict = attacked(protected)
    assert verdict["passed"]
    assert [night["rows"] for night in verdict["nights"]] == [
        pq.read_table(str(protected.job(day).output)).num_rows for day in range(3)
    ]
    last = verdict["nights"][-1]
    assert last["persons"] > 300
    assert last["below_l"] == last["given_away"] == last["below_k"] == 0


def test_of_a_series_without_protection_the_people_given_away_are_counted(tmp_path: Path) -> None:
    town = town_of(tmp_path, kind="snapshots")
    verdict = attacked(town)
    fallen = town.fallen()
    assert fallen
    assert verdict["nights"][-1]["below_l"] == verdict["nights"][-1]["given_away"] == len(fallen)
    assert f"{len(fallen)} person(s) are left with fewer than l = 2" in verdict["failures"][0]
    assert not verdict["passed"]
    without_l = pipeline.verify_series(replace(town.job(0), l=None), str(town.job(0).output))
    assert without_l["failures"] == verdict["failures"]


@pytest.mark.servers
def test_rows_that_waited_are_found_in_the_night_that_published_them(tmp_path: Path) -> None:
    """The first night is held; the rows of people who are there twice wait."""
    town = Town(tmp_path, protect="intersection", hold_nights=3, hold_above=0.2)
    drops = [drop for _, drop in nights(replace(PEOPLE, kind="increments"))]
    town.run(drops[0].slice(0, 4))
    for drop in (drops[0].slice(4), *drops[1:]):
        report = town.run(pa.concat_tables([drop, drop.slice(0, 10)]))
        assert report["rows"]["waiting"] >= 10
    verdict = attacked(town)
    assert verdict["passed"]
    assert [night["label"] for night in verdict["nights"]] == [
        "2025-01-02", "2025-01-03", "2025-01-04"
    ]  # fmt: skip


@pytest.mark.servers
def test_without_protection_rows_that_waited_are_looked_for_in_later_nights(tmp_path: Path) -> None:
    town = Town(tmp_path, hold_nights=3)
    drop = next(drop for _, drop in nights(PEOPLE))
    town.run(drop.slice(0, 4))
    town.run(drop.slice(4))
    (night,) = attacked(town)["nights"]
    assert night["persons"] == 300
    assert not night["below_k"]


@pytest.mark.servers
def test_rows_that_waited_although_classes_cover_them_are_nobody_strange(tmp_path: Path) -> None:
    town = Town(tmp_path, hold_nights=3, hold_above=0.25)
    for _, drop in nights(replace(PEOPLE, kind="increments")):
        town.run(drop)
    verdict = attacked(town)
    assert len(verdict["nights"]) == 3
    assert not any("no person of the drop" in each for each in verdict["failures"])


def swap_values(town: Town) -> None:
    """All values stay, in other classes."""
    (part,) = Path(str(town.job(1).output)).glob("part-*")
    table = pq.read_table(part)
    at = table.column_names.index("diagnosis")
    pq.write_table(table.set_column(at, "diagnosis", table["diagnosis"][::-1]), part)


def drop_rows(town: Town) -> None:
    (part,) = Path(str(town.job(1).output)).glob("part-*")
    pq.write_table(pq.read_table(part).slice(3), part)


def change_drop(town: Town) -> None:
    path = str(town.job(1).input)
    table = pq.read_table(path)
    at = table.column_names.index("age")
    pq.write_table(table.set_column(at, "age", pc.add(table["age"], 40)), path)


def widen_state(_: Town) -> None:
    """Everybody has all values left, says the catalogue of the last release."""
    table = tables.night_persons
    with catalogue.current().writing() as connection:
        of_last = table.c.night == sa.select(sa.func.max(table.c.night)).scalar_subquery()
        stream = connection.execute(sa.select(table.c.content).where(of_last)).scalar_one()
        rows = pa.ipc.open_stream(stream).read_all()
        at = rows.column_names.index("common")
        wide = rows.set_column(at, "common", pa.array([b"\xff" * 8] * len(rows), pa.binary(8)))
        connection.execute(table.update().where(of_last).values(content=signatures.packed(wide)))


def widen_earlier(_: Town) -> None:
    """Who is in no release after the first ones has all values left."""
    with catalogue.current().writing() as connection:
        connection.execute(tables.person.update().values(common=b"\xff" * 8))


def forget_persons(_: Town) -> None:
    with catalogue.current().writing() as connection:
        connection.execute(tables.person.delete().where(tables.person.c.hash > 0))


def mix_classes(_: Town) -> None:
    """Each person is in another's class, says the catalogue."""
    table = tables.night_persons
    with catalogue.current().writing() as connection:
        of_night = signatures.classes_in(connection, 2)
        assert of_night is not None
        mixed = {"hash": list(of_night), "published": list(of_night.values())[::-1]}
        content = signatures.packed(pa.table(mixed))
        connection.execute(table.update().where(table.c.night == 2).values(content=content))


DIFFERENT = r"the catalogue and the releases differ in the values left for \d+ person\(s\)"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (swap_values, r"2025-01-02: \d+ row\(s\) of the release do not match"),
        (drop_rows, r"2025-01-02: the release has \d+ rows of persons, but \d+ were published"),
        (change_drop, r"2025-01-02: \d+ row\(s\) of the release do not match"),
        (widen_state, DIFFERENT),
        (widen_earlier, DIFFERENT),
        (forget_persons, DIFFERENT),
        (mix_classes, r"2025-01-02: \d+ row\(s\) of the release do not match"),
    ],
)
def test_what_was_changed_afterwards_is_found(
    protected: Town, change: Callable[[Town], None], problem: str
) -> None:
    change(protected)
    verdict = attacked(protected)
    assert not verdict["passed"]
    assert any(re.match(problem, each) for each in verdict["failures"])


def empty_drop(town: Town) -> None:
    path = str(town.job(1).input)
    pq.write_table(pq.read_table(path).slice(0, 0), path)


@pytest.mark.parametrize("change", one_in(3, [swap_values, change_drop, empty_drop]))
def test_without_protection_rows_of_nobody_are_found(
    tmp_path: Path, change: Callable[[Town], None]
) -> None:
    town = town_of(tmp_path, kind="snapshots")
    pattern = r"2025-01-02: no person of the drop has the values of \d+ row\(s\) of the release"
    assert not any(re.match(pattern, each) for each in attacked(town)["failures"])
    change(town)
    assert any(re.match(pattern, each) for each in attacked(town)["failures"])


def run_elsewhere(job: Job) -> None:
    """Run a job with a catalogue that does not know the series."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MONDRIAN_OPS_CATALOGUE", str(Path(str(job.output)).with_name("other.db")))
        pipeline.run(job, silent)


@pytest.mark.servers
def test_a_release_of_no_night_is_attacked_as_well(protected: Town) -> None:
    """A job without the series publishes beside its nights, and in the place of one."""
    outside = replace(protected.job(1), series=None)
    beside = replace(outside, output=str(protected.folder / "out/2025-01-09"))
    run_elsewhere(beside)
    verdict = attacked(protected)
    assert "2025-01-09: a release that does not belong to the series" in verdict["failures"][0]
    assert [night["label"] for night in verdict["nights"]][-1] == "2025-01-09"
    assert verdict["nights"][-1]["below_l"] > 0

    run_elsewhere(replace(outside, replace="any"))
    verdict = attacked(protected)
    assert verdict["not_looked_at"] == ["2025-01-02: another release was published in its place"]
    assert "2025-01-02: a release that does not belong to the series" in verdict["failures"][0]


def test_a_night_that_cannot_be_looked_at_is_told(
    protected: Town, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.json"
    job.write_text(json.dumps(protected.job(0).to_dict()))
    args = ["verify", str(protected.job(0).output), "--job", str(job), "--series"]
    assert cli.main(args) == 0
    assert capsys.readouterr().out.endswith("PASSED\n")
    shutil.rmtree(str(protected.job(0).output))
    Path(str(protected.job(1).input)).unlink()
    assert cli.main(args) == 1
    out = capsys.readouterr().out
    assert "unseen    2025-01-01: its release is not there any more\n" in out
    assert "unseen    2025-01-02: " in out
    assert out.endswith("INCOMPLETE\n")
    assert "2025-01-03" in out
    Path(str(protected.job(2).input)).unlink()
    assert cli.main(args) == 1
    assert capsys.readouterr().out.endswith("FAILED\n")


def test_what_says_not_enough_is_told(protected: Town) -> None:
    """A drop without a column, and a release from outside whose report is none."""
    drop = str(protected.job(1).input)
    pq.write_table(pq.read_table(drop).drop_columns(["zip"]), drop)
    beside = replace(protected.job(0), series=None, output=str(protected.folder / "out/2025-01-09"))
    run_elsewhere(beside)
    Path(str(beside.output), "_report.json").write_text("[" * 10_000)
    verdict = attacked(protected)
    lacking, unsaid = verdict["not_looked_at"]
    assert re.match("2025-01-02: .*zip", lacking)
    assert unsaid == "2025-01-09: its report does not say what it was made from"


def test_who_is_followed_and_through_what_must_be_said(protected: Town) -> None:
    job, output = protected.job(0), str(protected.job(0).output)
    lacking = [{"series": None}, {"entity_id": None}, {"sensitive": ()}, {"sensitive": ("a", "b")}]
    for changes in lacking:
        with pytest.raises(JobError, match="verify --series: it follows persons"):
            pipeline.verify_series(replace(job, **changes), output)
    with pytest.raises(StorageError, match="the catalogue has no series with the output"):
        pipeline.verify_series(job, str(protected.folder / "other/2025-01-01"))
    other = Town(protected.folder, kind="snapshots").job(0)
    with pytest.raises(JobError, match=r"series.protect: release, but intersection in the nights"):
        pipeline.verify_series(other, output)


def test_what_is_asked_is_what_the_job_says(protected: Town) -> None:
    job, output = protected.job(0), str(protected.job(0).output)
    verdict = pipeline.verify_series(replace(job, k=100), output)
    last = verdict["nights"][-1]
    assert last["below_k"] > 0
    assert verdict["failures"] == [
        f"{last['below_k']} person(s) were in a class of fewer than k = 100 persons"
    ]
    verdict = pipeline.verify_series(replace(job, l=12), output)
    assert "with fewer than l = 12 values of diagnosis" in verdict["failures"][0]
    with pytest.raises(JobError, match="l: not set, but 2 in the nights before"):
        pipeline.verify_series(replace(job, l=None), output)


def test_rows_that_wait_in_a_night_that_covers_them_count_as_published(tmp_path: Path) -> None:
    """A row without a person is company, but nobody is followed by it."""
    town = Town(tmp_path, hold_nights=3, hold_above=0.25)
    drop = next(drop for _, drop in nights(PEOPLE))
    persons = pa.array([None, *drop["person"].to_pylist()[1:]], pa.int64())
    report = town.run(drop.set_column(drop.schema.get_field_index("person"), "person", persons))
    verdict = attacked(town)
    (night,), (note,) = verdict["nights"], verdict["notes"]
    assert night["rows"] == report["rows"]["published"] < 300
    lacking = night["persons"] + 1 - night["rows"]
    assert 0 < lacking < 5
    assert note.startswith("fewer than k = 5 row(s) that waited or were suppressed")
    assert verdict["passed"]


@pytest.mark.servers
def test_a_night_that_is_not_current_is_not_looked_at(
    protected: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(nights_of_series, "conclude", killed)
        protected.run(protected.drops[-1])
    verdict = attacked(protected)
    assert len(verdict["nights"]) == 3
    assert verdict["not_looked_at"] == [
        "2025-01-04: it is being published, or its run was killed; clear its failed tasks, or run "
        "the next night"
    ]
    assert not verdict["failures"]


def test_a_catalogue_without_the_classes_is_told(protected: Town) -> None:
    with catalogue.current().writing() as connection:
        connection.execute(tables.night_persons.delete().where(tables.night_persons.c.night == 2))
    verdict = attacked(protected)
    assert verdict["not_looked_at"] == [
        "2025-01-02: the catalogue lost the persons of this night; restore a backup of it"
    ]
    assert [night["label"] for night in verdict["nights"]] == ["2025-01-01", "2025-01-03"]
    assert not verdict["failures"]


@pytest.mark.servers
def test_rows_of_a_drop_that_is_gone_are_no_changed_rows(tmp_path: Path) -> None:
    """The second night publishes rows of both drops; where none is gone, all must be found."""
    town = Town(tmp_path, protect="intersection", hold_nights=3)
    drop = next(drop for _, drop in nights(PEOPLE))
    for rows in (drop.slice(0, 4), drop.slice(4)):
        town.run(rows)
    path = Path(str(town.job(0).input))
    first = pq.read_table(path)
    pq.write_table(first.slice(1), path)
    verdict = attacked(town)
    assert "2025-01-02: 1 row(s) of the release do not match" in verdict["failures"][0]
    path.unlink()
    verdict = attacked(town)
    assert not verdict["failures"]
    assert verdict["not_looked_at"][0].startswith("2025-01-01: ")
    assert verdict["nights"][0]["persons"] == 296


@pytest.mark.servers
def test_a_release_in_the_place_of_a_night_that_was_held(tmp_path: Path) -> None:
    town = Town(tmp_path, protect="intersection", hold_nights=3)
    drop = next(drop for _, drop in nights(PEOPLE))
    for rows in (drop.slice(0, 4), drop.slice(4)):
        town.run(rows)
    assert attacked(town)["passed"]
    run_elsewhere(replace(town.job(0), series=None, k=2))
    verdict = attacked(town)
    assert verdict["failures"][0].startswith(
        "2025-01-01: a release that does not belong to the series"
    )
    assert [night["label"] for night in verdict["nights"]] == ["2025-01-02", "2025-01-01"]
