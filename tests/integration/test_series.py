"""A series of nights: each row is published once, or waits, or is suppressed and counted."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline, publish
from mondrian_ops.errors import InputError, JobError, PrivacyError, StorageError
from mondrian_ops.report import render_html, render_text
from mondrian_ops.tables.discovery import data_files
from nights import Nights, silent
from tiers import one_in

HOLDING = {"hold_nights": 3, "hold_above": 0.06}
PERSONS = {"entity_id": "row", "identifiers": ["row"]}


@pytest.mark.servers
def test_small_and_uneven_nights_lose_no_row(tmp_path: Path) -> None:
    nights = Nights(tmp_path, series=HOLDING)
    reports = [nights.run(day, rows) for day, rows in enumerate([3, 400, 250, 2, 300, 120, 180])]
    nights.check_each_row_once()
    assert reports[0]["series"] == {
        "name": f"{tmp_path}/out/*",
        "night": 1,
        "waited": [],
        "waiting": [[1, 5]],  # 3 of them
    }
    assert reports[0]["outcome"]["state"] == "held"
    assert "fewer than k" in reports[0]["outcome"]["reason"]
    assert not nights.output(0).exists()
    for number, report in enumerate(reports, 1):
        rows, night = report["rows"], report["series"]
        assert night["night"] == number
        shown = [rows["waiting"], rows["waited"], *(count for _, count in night["waiting"])]
        assert not [count for count in shown if 0 < count < 5]
        for which in ("waiting", "waited"):  # nothing is left that a difference would tell
            assert sum(count for _, count in night[which]) == rows[which]
        assert rows["input"] + rows["waited"] == rows["published"] + rows["waiting"]
        assert all(number - origin < 3 for origin, _ in night["waiting"])  # none is overdue
    for day in range(1, 7):
        verdict = pipeline.verify(nights.job(day), str(nights.output(day)))
        assert verdict["passed"]
        assert not any("mondrian" in name for name in _columns(nights.output(day)))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_night_without_rows_is_a_night(tmp_path: Path, kind: str) -> None:
    nights = Nights(tmp_path, series=HOLDING)
    for day, (rows, shown) in enumerate([(0, 0), (3, 5), (0, 0), (200, 198)]):
        drop = nights.deliver(day, rows or 5)
        table = pq.read_table(drop)
        if not rows:
            nights.rows -= 5
            table = table.slice(0, 0)
            pq.write_table(table, drop)
        if kind == "csv":
            pa.csv.write_csv(table, drop.with_suffix(".csv"))
        changes = {"input": str(drop.with_suffix(f".{kind}"))}
        report = pipeline.run(replace(nights.job(day), **changes), silent)
        assert report["rows"]["input"] == shown  # of 3 rows that wait, 5 are shown
        assert report["series"]["night"] == day + 1
    nights.check_each_row_once()


def test_rows_that_wait_are_private(tmp_path: Path) -> None:
    nights = Nights(tmp_path, series=HOLDING)
    nights.run(0, 3)
    (file,) = nights.waiting_files()
    modes = [path.stat().st_mode & 0o777 for path in (file, file.parent, nights.waiting)]
    assert modes == [0o600, 0o700, 0o700]


def test_a_night_is_published_once(tmp_path: Path) -> None:
    nights = Nights(tmp_path, series=HOLDING)
    nights.run(0, 3)
    nights.run(1, 100)
    for day in (0, 1):
        with pytest.raises(StorageError, match=r"is in the series already .*drop of another day"):
            pipeline.run(nights.job(day), silent)
    nights.check_each_row_once()


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"series": {"kind": "snapshots", "hold_nights": 0}}, "series.kind"),
        ({"series": {"protect": "intersection", "unmatched": "suppress"}}, "series.protect"),
    ],
)
def test_nights_that_promise_something_else_are_refused(
    tmp_path: Path, changes: dict[str, Any], option: str
) -> None:
    nights = Nights(tmp_path, series={"hold_nights": 0}, **PERSONS)
    nights.run(0, 200)
    nights.deliver(1, 200)
    with pytest.raises(JobError, match=f"{option}: .* in the nights before"):
        pipeline.run(nights.job(1, **changes), silent)
    pipeline.run(nights.job(1), silent)


def test_a_catalogue_that_forgot_nights_is_refused(tmp_path: Path) -> None:
    """A backup is older than the last nights: rows that waited then are in their releases."""
    nights = Nights(tmp_path, series=HOLDING)
    nights.run(0, 200)
    backup = tmp_path / "backup"
    backup.mkdir()
    place = Path(os.environ["MONDRIAN_OPS_CATALOGUE"])
    shutil.copy(place, backup)
    shutil.copytree(nights.waiting, backup / "waiting")
    nights.run(1, 200)
    shutil.copy(backup / place.name, place)
    for file in (f"{place}-wal", f"{place}-shm"):
        Path(file).unlink(missing_ok=True)
    shutil.rmtree(nights.waiting)
    shutil.copytree(backup / "waiting", nights.waiting)
    nights.deliver(2, 200)
    with pytest.raises(StorageError, match=r"one of 1 release\(s\) of nights that the"):
        pipeline.run(nights.job(2), silent)


@pytest.mark.servers
def test_of_two_runs_at_once_one_has_to_begin_anew(tmp_path: Path) -> None:
    nights = Nights(tmp_path, series=HOLDING)
    nights.run(0, 50)
    nights.deliver(1, 200)
    nights.deliver(2, 200)
    works = [str(nights.output(day).with_name(f".run-{day}")) for day in (1, 2)]
    jobs = [nights.job(day) for day in (1, 2)]
    for job, work in zip(jobs, works, strict=True):
        pipeline.partition(job, work=work, progress=silent)
    summaries = [pipeline.anonymize_all(work, progress=silent) for work in works]
    pipeline.wrap_up(jobs[1], work=works[1], summaries=summaries[1], progress=silent)
    with pytest.raises(StorageError, match="run again from the partition task"):
        pipeline.wrap_up(jobs[0], work=works[0], summaries=summaries[0], progress=silent)
    assert not nights.output(1).exists()
    pipeline.run(jobs[0], silent)
    nights.check_each_row_once()


def test_the_last_night_of_a_series_publishes_all_that_waits(tmp_path: Path) -> None:
    nights = Nights(tmp_path, series=HOLDING)
    nights.run(0, 300)
    report = nights.run(1, 100, series={"hold_nights": 0, "hold_above": None})
    assert report["rows"]["published"] == report["rows"]["input"] + report["rows"]["waited"] > 100
    nights.check_each_row_once()
    assert not list(nights.waiting_files())


@pytest.mark.servers
def test_overdue_rows_are_suppressed_where_the_job_says_so(tmp_path: Path) -> None:
    nights = Nights(tmp_path, series={"hold_nights": 1, "hold_above": 0.02, "overdue": "suppress"})
    suppressed = sum(nights.run(day, 150)["rows"]["suppressed"] for day in range(4))
    assert suppressed
    nights.check_each_row_once(suppressed)


def test_overdue_rows_that_cannot_be_published_are_suppressed(tmp_path: Path) -> None:
    nights = Nights(tmp_path, series={"hold_nights": 1})
    reports = [nights.run(day, 2) for day in range(2)]
    assert [report["rows"]["suppressed"] for report in reports] == [0, 2]
    nights.check_each_row_once(suppressed=2)


def test_nothing_published_shows_a_value_of_a_row_that_waits(tmp_path: Path) -> None:
    nights = Nights(tmp_path, series=HOLDING)
    drop = nights.deliver(0, 400)
    rows = pq.read_table(drop)
    secret = {"age": 17, "zip": "98765", "sex": "male", "diagnosis": "canary", "row": 400}
    strangers = pa.Table.from_pylist([secret] * 3, rows.schema)
    pq.write_table(pa.concat_tables([rows, strangers]), drop)
    report = pipeline.run(nights.job(0), silent)
    assert 400 in nights.held()
    told = [json.dumps(report), render_text(report), render_html(report)]
    told += [str(pq.read_table(part).to_pydict()) for part in nights.output(0).glob("*.parquet")]
    for text in told:
        assert "98765" not in text
        assert "canary" not in text


def test_rows_that_wait_are_no_input_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights = Nights(tmp_path, series=HOLDING)
    nights.run(0, 400)
    (file,) = nights.waiting_files()
    for place in (file, file.parent, nights.waiting, f"{nights.waiting}/*/*.parquet"):
        with pytest.raises(JobError, match="rows that wait"):
            publish.check_job(replace(nights.job(0), input=str(place)))
    for pattern in (nights.releases, f"{nights.releases}/**", f"{nights.releases}/*/*"):
        read = [each.url for each in data_files(str(pattern))]
        assert read
        assert not any("mondrian_waiting" in each for each in read)


def test_a_column_of_another_type_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    nights = Nights(tmp_path, series=HOLDING)
    nights.run(0, 100)
    drop = nights.deliver(1, 100)
    rows = pq.read_table(drop)
    good = drop.read_bytes()
    ages = pa.array([f"{age} years" for age in rows["age"].to_pylist()])
    pq.write_table(rows.set_column(0, "age", ages), drop)
    with pytest.raises(PrivacyError, match=r"column 'age' is text, .* and was int"):
        pipeline.run(nights.job(1), silent)
    with pytest.raises(InputError, match="column 'age' has another type than in the rows that"):
        pipeline.run(nights.job(1, schema="evolve"), silent)
    drop.write_bytes(good)
    pipeline.run(nights.job(1), silent)
    nights.check_each_row_once()


@pytest.mark.servers
def test_a_column_without_values_has_any_type(tmp_path: Path) -> None:
    """As text is what CSV is read, where it has no values: before, and after others wait."""
    nights = Nights(tmp_path, series=HOLDING)
    for day, rows in enumerate([3, 4, 3, 200]):
        drop = nights.deliver(day, rows)
        if day in (0, 2):
            nothing = pa.nulls(rows, pa.string())
            pq.write_table(pq.read_table(drop).set_column(0, "age", nothing), drop)
        pipeline.run(nights.job(day), silent)
    nights.check_each_row_once()


def test_a_column_with_a_name_of_the_series_is_refused(tmp_path: Path) -> None:
    nights = Nights(tmp_path, series=HOLDING)
    drop = nights.deliver(0, 100)
    rows = pq.read_table(drop)
    pq.write_table(rows.append_column("mondrian_ops_night", rows["row"]), drop)
    with pytest.raises(InputError, match="a name that a series reserves for itself"):
        pipeline.run(nights.job(0), silent)


def _columns(release: Path) -> list[str]:
    (part, *_) = release.glob("part-*.parquet")
    return list(pq.read_schema(part).names)


@pytest.mark.parametrize(
    "series", one_in(2, [HOLDING, {"boundaries": "stable"}]), ids=["holding", "stable"]
)
def test_numbers_are_kept_apart_in_each_night(tmp_path: Path, series: dict[str, Any]) -> None:
    """What waits comes to nights in which no interval of the width has half of a class."""
    nights = Nights(tmp_path, series=series)
    keys = {
        "quasi_identifiers": ["zip=prefix", "sex", "row=interval"],
        "sensitive": ["diagnosis", "age"],
        "l": 2,
        "l_width": {"age": "5"},
        "unlisted": "drop",
    }
    for day, rows in enumerate([300, 4 if series is HOLDING else 120, 200]):
        report = nights.run(day, rows, **keys)
        if report["outcome"]["state"] == "held":
            continue
        assert report["achieved"]["l"] >= 2
        assert report["sensitive"]["age"]["narrow"] == 0
        assert pipeline.verify(nights.job(day, **keys), str(nights.output(day)))["passed"]
    assert report["outcome"]["state"] == "published"
