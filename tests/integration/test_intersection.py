"""``series.protect: intersection``: whoever holds all nights is left with l values per person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from mondrian_ops import catalogue, pipeline, publish, series
from mondrian_ops.catalogue import signatures, tables
from mondrian_ops.datasets import nights
from mondrian_ops.errors import InputError, JobError, PrivacyError, StorageError
from mondrian_ops.series import nights as nights_of_series
from mondrian_ops.series.intersection import night as intersection
from nights import silent
from tiers import one_in
from town import POPULATION, PROTECTED, K, L, Town


def drops(**changes: float) -> list[pa.Table]:
    return [drop for _, drop in nights(replace(POPULATION, **changes))]


@pytest.mark.servers  # test_verify_series.py has a shorter series
def test_nobody_falls_below_l_over_all_nights_and_without_protection_many_do(
    tmp_path: Path,
) -> None:
    below = {}
    for name, options in (("alone", {"kind": "snapshots"}), ("series", PROTECTED)):
        folder = tmp_path / name
        folder.mkdir()
        town = Town(folder, **options)
        reports = [town.run(drop) for drop in drops(change=0.0, nights=4)]
        left = town.left()
        below[name] = sum(len(values) < L for values in left.values())
    assert below["alone"] > 20
    assert below["series"] == 0
    assert all(report["series"]["people"]["least_common"] >= L for report in reports)
    assert reports[-1]["series"]["people"]["known_before"] > 500
    assert sum(report["rows"]["suppressed"] for report in reports) < 10
    assert all(report["achieved"]["k"] >= K for report in reports)


@pytest.mark.servers
def test_people_who_come_back_keep_what_was_left_for_them(tmp_path: Path) -> None:
    everybody = drops()[0]
    town = Town(tmp_path, **PROTECTED)
    town.run(everybody)
    town.run(everybody.filter(pa.array(np.arange(len(everybody)) % 3 > 0)))
    report = town.run(everybody)
    assert report["series"]["people"]["known_before"] == len(everybody)
    left = known_by(tmp_path)
    assert len(left) == len(everybody)
    assert min(map(len, left.values())) >= L


@pytest.mark.parametrize("step", one_in(2, ["file_away", "make_current"]))
def test_killed_while_persons_are_written_the_next_night_knows_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Nobody is known by a part of a night that was not written whole."""
    monkeypatch.setattr(signatures, "_AT_ONCE", 20)
    town, (first, second, *_) = Town(tmp_path, **PROTECTED), drops()
    town.run(first)
    before, calls, function = known_by(tmp_path), [], getattr(signatures, step)

    def killed(*given: Any) -> None:
        calls.append(given)
        if len(calls) == 2 or step == "make_current":
            raise KeyboardInterrupt
        function(*given)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(signatures, step, killed)
        town.run(second)
    assert known_by(tmp_path) == before
    nights_of_series.settle(town.deliver(first))
    by_releases = known_by(tmp_path)
    assert by_releases != before
    assert len(by_releases) > len(before)
    with catalogue.current().reading() as connection:
        states = connection.execute(sa.select(tables.night.c.state)).scalars().all()
        token = connection.scalar(sa.select(tables.night.c.token).where(tables.night.c.number == 2))
    assert states == ["published", "published"]
    assert nights_of_series.conclude(token)  # the retry
    assert known_by(tmp_path) == by_releases


def known_by(folder: Path) -> dict[int, list[int]]:
    """The values left for each person, as the next night reads them."""
    with catalogue.current().reading() as connection:
        left = signatures.left(connection, f"{folder}/out/*")
    return {key: sorted(values) for key, values in left.items()}


def test_a_part_changed_by_hand_is_not_published(tmp_path: Path) -> None:
    town = Town(tmp_path, **PROTECTED)
    job, work = town.deliver(drops()[0]), str(tmp_path / "out/.run-1")
    pipeline.partition(job, work=work, progress=silent)
    summaries = pipeline.anonymize_all(work, progress=silent)
    path = publish.WorkDir.attach(work).part_path(summaries[0].id)
    table = pq.read_table(path)
    values = table["diagnosis"].to_pylist()
    at = table.column_names.index("diagnosis")
    pq.write_table(table.set_column(at, "diagnosis", pa.array(values[::-1])), path)
    with pytest.raises(StorageError, match="run again from the partition task"):
        pipeline.wrap_up(job, work=work, summaries=summaries, progress=silent)
    assert not Path(str(job.output)).exists()


def test_the_persons_who_would_fall_below_are_counted_and_nothing_is_published(
    tmp_path: Path,
) -> None:
    """The classes are those of a night that protects nobody."""
    town = Town(tmp_path, **PROTECTED)
    first, second, *_ = drops()
    town.run(first)
    before = known_by(tmp_path)
    unprotected = Town(tmp_path, kind="snapshots")
    unprotected.drops = town.drops
    job, work = unprotected.deliver(second), str(tmp_path / "out/.run-2")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nights_of_series, "check_new", lambda _job: None)
        patched.setattr(series, "check_new", lambda _job: None)
        pipeline.partition(job, work=work, progress=silent)
    summaries = pipeline.anonymize_all(work, progress=silent)
    town.drops = unprotected.drops
    protected = town.job(1)
    directory = publish.WorkDir.attach(work)
    source = pq.read_table(str(job.input))
    intersection.signed(protected, f"{tmp_path}/out/*", source, directory)
    with pytest.raises(PrivacyError, match=r"person\(s\) are left with fewer than l = 2"):
        pipeline.wrap_up(protected, work=work, summaries=summaries, progress=silent)
    assert not Path(str(protected.output)).exists()
    assert known_by(tmp_path) == before


@pytest.mark.servers
def test_a_series_of_increments_that_brings_people_again_is_told(tmp_path: Path) -> None:
    town = Town(tmp_path, protect="intersection", unmatched="suppress")
    first, second, *_ = drops()
    town.run(first)
    report = town.run(second)
    assert any("series.kind is increments" in note for note in report["notes"])


def test_rows_of_a_person_who_is_there_twice_are_published_one_a_night(tmp_path: Path) -> None:
    town = Town(tmp_path, protect="intersection", hold_nights=3)
    first = drops()[0]
    report = town.run(pa.concat_tables([first, first.slice(0, 20)]))
    assert report["rows"]["waiting"] == 20
    report = town.run(drops()[1].slice(0, 200))
    assert report["rows"]["waited"] == 20
    assert report["rows"]["waiting"] < 40


@pytest.mark.servers
def test_persons_of_a_killed_night_become_current_with_its_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends between the publication and the transaction that makes it current."""
    first, second, *_ = drops()
    town = Town(tmp_path, **PROTECTED)
    job = town.deliver(first)
    with monkeypatch.context() as patched:
        patched.setattr(nights_of_series, "conclude", killed)
        with pytest.raises(Killed):
            pipeline.run(job, silent)
    assert Path(str(job.output)).exists()
    report = town.run(second)
    assert report["series"]["night"] == 2
    assert report["series"]["people"]["known_before"] > 500


def test_of_two_nights_computed_side_by_side_one_is_not_published(tmp_path: Path) -> None:
    """Each by itself keeps l values; together they would not."""
    first, second, third, *_ = drops()
    town = Town(tmp_path, **PROTECTED)
    town.run(first)
    jobs = [town.deliver(second), town.deliver(third)]
    works = [str(tmp_path / f"out/.run-{day}") for day in (1, 2)]
    for job, work in zip(jobs, works, strict=True):
        pipeline.partition(job, work=work, progress=silent)
    summaries = [pipeline.anonymize_all(work, progress=silent) for work in works]
    pipeline.wrap_up(jobs[1], work=works[1], summaries=summaries[1], progress=silent)
    after = known_by(tmp_path)
    with pytest.raises(PrivacyError, match="run again from the partition task"):
        pipeline.wrap_up(jobs[0], work=works[0], summaries=summaries[0], progress=silent)
    assert not Path(str(jobs[0].output)).exists()
    assert known_by(tmp_path) == after


class Killed(BaseException):
    """A process that ends here."""


def killed(*_: Any) -> None:
    raise Killed


@pytest.mark.parametrize(
    ("column", "otherwise", "problem"),
    [
        (
            "person",
            (10**6).__add__,
            "fewer than half of the persons were in a night before; deliver person as",
        ),
        ("diagnosis", "no. {}".format, "have another value of diagnosis than before"),
    ],
)
def test_people_or_values_written_otherwise_are_no_new_people(
    tmp_path: Path, column: str, otherwise: Callable[[Any], Any], problem: str
) -> None:
    """Everybody would be followed anew, and the nights before be forgotten."""
    drop = drops()[0]
    town = Town(tmp_path, **PROTECTED)
    town.run(drop)
    with pytest.raises(PrivacyError, match=problem):
        town.run(changed(drop, column, otherwise))


def changed(drop: pa.Table, column: str, change: Callable[[Any], Any]) -> pa.Table:
    """The drop with another column in place of one; missing values stay."""
    values = [None if value is None else change(value) for value in drop[column].to_pylist()]
    return drop.set_column(drop.schema.get_field_index(column), column, pa.array(values))


@pytest.mark.servers
@pytest.mark.parametrize(
    "spelled", one_in(2, [float, Decimal, lambda number: Decimal(f"{number}.00")])
)
def test_a_number_is_the_same_person_in_each_type_of_numbers(
    tmp_path: Path, spelled: Callable[[int], Any]
) -> None:
    """Arrow writes the same large number otherwise where it is no whole one: 1.2e+14."""
    drop = changed(drops()[0], "person", (123_456_789_000_000).__add__)
    town = Town(tmp_path, **PROTECTED)
    town.run(drop)
    report = town.run(changed(drop, "person", spelled))
    assert report["series"]["people"]["known_before"] == len(drop)
    assert report["series"]["people"]["value_changed"] == 0


@pytest.mark.parametrize(
    ("column", "change", "problem"),
    one_in(
        2,
        [
            ("person", str, "column 'person': text, but numbers in the nights before.* as numbers"),
            ("diagnosis", hash, "column 'diagnosis': numbers, but text in the nights before"),
            ("diagnosis", str.encode, "column 'diagnosis': binary, but text in the nights before"),
        ],
    ),
)
def test_persons_and_values_of_another_type_are_refused(
    tmp_path: Path, column: str, change: Callable[[Any], Any], problem: str
) -> None:
    """Increments bring new people each night, so nobody else would notice."""
    town = Town(tmp_path, protect="intersection", unmatched="suppress")
    first, second, *_ = drops()
    town.run(first)
    with pytest.raises(InputError, match=problem):
        town.run(changed(second, column, change))
    town.drops.pop()
    town.run(second)


@pytest.mark.servers
def test_a_column_without_values_has_no_type_yet(tmp_path: Path) -> None:
    town = Town(tmp_path, protect="intersection", unmatched="suppress", hold_nights=3)
    first, second, third, *_ = drops()
    town.run(changed(first, "diagnosis", lambda _: None))
    town.run(second)
    with pytest.raises(InputError, match="column 'diagnosis': numbers, but text"):
        town.run(changed(third, "diagnosis", hash))


@pytest.mark.servers
def test_a_first_night_that_was_not_published_leaves_no_types_and_terms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = Town(tmp_path, **PROTECTED)
    town.options = {"k": 3 * K}
    first = drops()[0]

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space left"):
        patched.setattr(publish, "publish", full)
        town.run(changed(first, "person", str))
    town.drops.pop()
    town.options = {}
    assert town.run(first)["series"]["people"]["persons"] == len(first)


@pytest.mark.parametrize("option", one_in(2, ["k", "l"]))
def test_a_later_night_may_promise_more_and_never_less_than_the_first(
    tmp_path: Path, option: str
) -> None:
    """Whoever may trigger a run could else undo what all nights before have promised."""
    first, second, *_ = drops()
    town = Town(tmp_path, **PROTECTED)
    promised = {"k": K, "l": L + 1}[option]
    town.options = {option: promised}
    town.run(first)
    town.options = {option: promised - 1}
    with pytest.raises(JobError, match=f"^{option}: {promised - 1}, but {promised} in the nights"):
        town.run(second)
    with pytest.raises(JobError, match="ask for no less"):
        pipeline.verify_series(town.job(1), str(town.job(0).output))
    town.drops.pop()
    town.options = {option: promised + 1}
    assert town.run(second)["achieved"][option] > promised
    town.options = {option: promised}
    town.run(second)


def test_no_job_without_the_series_publishes_beside_its_nights(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever may trigger a run could else publish the same people unprotected."""
    first, second, *_ = drops()
    town = Town(tmp_path, **PROTECTED)
    town.run(first)
    job = replace(town.deliver(second), series=None)
    with pytest.raises(JobError, match=r"^output: it lies beside the nights of a series that pro"):
        pipeline.run(job, silent)
    pipeline.run(replace(job, output=str(tmp_path / "other/2025-01-02")), silent)
    with mock.patch.object(series, "refuse_beside"):  # it began before the first night
        work = str(tmp_path / "out/.run")
        pipeline.partition(job, work=work, progress=silent)
    summaries = pipeline.anonymize_all(work, progress=silent)
    with pytest.raises(JobError, match=r"^output: it lies beside"):
        pipeline.wrap_up(job, work=work, summaries=summaries, progress=silent)
    away = mock.patch.object(catalogue.current(), "reading", side_effect=OSError("it is away"))
    with away, caplog.at_level("WARNING"):
        series.refuse_beside(job)
    assert "may lie beside a series that protects its people" in caplog.text


def test_the_quasi_identifiers_of_the_nights_are_the_same(tmp_path: Path) -> None:
    first, second, *_ = drops()
    town = Town(tmp_path, **PROTECTED)
    town.run(first)
    town.options = {"quasi_identifiers": ["age", "zip=prefix"]}
    with pytest.raises(JobError, match=r"^quasi_identifiers: age, zip, but age, sex, zip in the"):
        town.run(second)


def test_a_new_value_is_one_of_l_that_were_excluded_before(tmp_path: Path) -> None:
    """The attacker knows that the value changed, and so that it is none of those left before."""
    town = Town(tmp_path, **PROTECTED)
    drop = drops()[0]
    town.run(drop)
    values = drop["diagnosis"].drop_null().unique().to_pylist()
    generator = np.random.default_rng(0)
    for _ in range(3):
        others = generator.choice(values, len(drop)).tolist()
        changes = (generator.random(len(drop)) < 0.3).tolist()
        new = map(lambda old, other, is_new: other if is_new else old,
                  drop["diagnosis"].to_pylist(), others, changes)  # fmt: skip
        at = drop.schema.get_field_index("diagnosis")
        drop = drop.set_column(at, "diagnosis", pa.array(list(new)))
        assert town.run(drop)["series"]["people"]["value_changed"] > 50
    checked = pipeline.verify_series(town.job(0), str(town.job(0).output))
    assert checked["passed"]
