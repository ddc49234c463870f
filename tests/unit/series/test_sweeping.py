"""Rows that wait are never swept; what killed nights have left is."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from kept_folder import KeptFolder
from mondrian_ops import catalogue, series
from mondrian_ops.catalogue.tables import night
from mondrian_ops.catalogue.tables import series as series_table
from mondrian_ops.series import sweeping
from mondrian_ops.series.waiting import directory_of
from nights import Nights

HOUR = timedelta(hours=1)


def swept(folder: Path) -> dict[str, str]:
    return {Path(each.work).name: each.state for each in series.sweep(str(folder), HOUR)}


def aged(*files: Path, hours: float = 2) -> None:
    """The files were written two hours ago, by the clock of the system that they lie on."""
    then = time.time() - hours * HOUR.total_seconds()
    for file in files:
        os.utime(file, (then, then))


def left_by_a_killed_night(nights: Nights) -> Path:
    (file,) = nights.waiting_files()
    left = file.with_name(f"000002-{'a' * 32}.parquet")
    left.write_bytes(b"rows")
    return left


@pytest.fixture(scope="module")
def kept_nights(tmp_path_factory: pytest.TempPathFactory) -> KeptFolder:
    return KeptFolder(tmp_path_factory.mktemp("nights"), lambda at: _nights(at).run(0, 3))


def _nights(folder: Path) -> Nights:
    return Nights(folder, series={"hold_nights": 3})


@pytest.fixture
def nights(kept_nights: KeptFolder, monkeypatch: pytest.MonkeyPatch) -> Nights:
    """A series with a row that waits; the time of the last change of a file can be set."""
    found = sweeping.data_file
    monkeypatch.setattr(sweeping, "data_file", lambda file: _Settable(found(file).modified))
    nights = _nights(kept_nights.brought_back(monkeypatch))
    nights.rows = 3
    return nights


class _Settable:
    def __init__(self, modified: int) -> None:
        self.changed = modified


def test_rows_that_wait_stay_for_ever(nights: Nights) -> None:
    (file,) = nights.waiting_files()
    aged(file)
    assert swept(nights.folder) == {}
    assert nights.held() == [0, 1, 2]


def test_what_killed_nights_have_left_is_removed_in_time(nights: Nights) -> None:
    (file,) = nights.waiting_files()
    name = f"000002-{'a' * 32}.parquet"
    left = [file.with_name(name), file.with_name(f".{name}.0123abcd.tmp")]
    for each in left:
        each.write_bytes(b"rows")
    assert set(swept(nights.folder).values()) == {"kept"}
    aged(*left)
    assert swept(nights.folder) == {each.name: "removed" for each in left}
    nights.check_each_row_once()


def test_the_files_of_another_catalogue_stay(
    nights: Nights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = nights.waiting_files()
    aged(file)
    monkeypatch.setenv("MONDRIAN_OPS_CATALOGUE", str(tmp_path / "other" / "catalogue.db"))
    monkeypatch.setenv("MONDRIAN_OPS_CATALOGUE_KEY", str(tmp_path / "other" / "key"))
    catalogue.use(None)
    assert swept(nights.folder) == {file.parent.name: "kept"}
    assert file.exists()


def test_those_of_other_series_are_swept_all_the_same(nights: Nights) -> None:
    left = left_by_a_killed_night(nights)
    aged(left)
    for name in ("0" * 24, "f" * 24):
        (nights.waiting / name).mkdir(mode=0o700)
    told = {each.work: each.reason for each in series.sweep(str(nights.folder), HOUR)}
    assert told == {
        str(nights.waiting / ("0" * 24)): "of another catalogue",
        str(nights.waiting / ("f" * 24)): "of another catalogue",
        str(left): "unchanged for 2.0 hours",
    }


@pytest.mark.parametrize(("hours", "state"), [(0.7, "kept"), (1.5, "removed")])
def test_what_a_night_writes_is_kept_for_an_hour_whatever_is_asked(
    nights: Nights, hours: float, state: str
) -> None:
    left = left_by_a_killed_night(nights)
    aged(left, hours=hours)
    (told,) = series.sweep(str(nights.folder), timedelta(0))
    assert (told.state, told.reason) == (state, f"unchanged for {hours} hours")
    assert left.exists() == (state == "kept")


@pytest.mark.parametrize(
    ("error", "states"), [(PermissionError(13, "no"), ["failed"]), (FileNotFoundError(2, "no"), [])]
)
def test_a_file_that_cannot_be_removed_stops_nothing_else(
    nights: Nights, monkeypatch: pytest.MonkeyPatch, error: OSError, states: list[str]
) -> None:
    """One that is gone is not told of: its night has become current meanwhile."""
    (file,) = nights.waiting_files()
    left = [file.with_name(f"{at:06d}-{'a' * 32}.parquet") for at in (2, 3)]
    for each in left:
        each.write_bytes(b"rows")
    aged(*left)

    def refuse(url: str) -> None:
        if url == str(left[0]):
            raise error
        os.remove(url)

    monkeypatch.setattr(sweeping, "remove_file", refuse)
    told = [each.state for each in series.sweep(str(nights.folder), HOUR)]
    assert sorted(told) == [*states, "removed"]


def test_a_directory_that_is_gone_meanwhile_is_not_told_of(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: str) -> list[str]:
        raise FileNotFoundError(2, "no")

    monkeypatch.setattr(sweeping.stores, "names_in", gone)
    assert swept(nights.folder) == {}


def set_nights(**columns: Any) -> None:
    with catalogue.current().writing() as connection:
        connection.execute(night.update().values(**columns))


def days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="microseconds")


@pytest.mark.parametrize("state", ["held", "published"])
def test_rows_that_wait_for_no_night_are_told_of(nights: Nights, state: str) -> None:
    (file,) = nights.waiting_files()
    set_nights(time=days_ago(30.5), state=state)
    (told,) = series.sweep(str(nights.folder), HOUR)
    assert (told.work, told.state) == (str(file.parent), "forgotten")
    assert told.reason == (
        f"rows have waited since the night {nights.output(0)}, and the series has had no night for "
        "30 days; run its next night, or end the series (docs/operate.md, Run a series)"
    )
    nights.run(1, 60)
    assert swept(nights.folder) == {}


def test_others_are_not(nights: Nights) -> None:
    """Neither rows of this month, nor those of a night that may be taken back."""
    set_nights(time=days_ago(29.5))
    assert swept(nights.folder) == {}
    set_nights(time=days_ago(90), state="pending")
    assert swept(nights.folder) == {}


def test_nor_are_series_and_nights_without_rows_that_wait(nights: Nights) -> None:
    with catalogue.current().writing() as connection:
        (mine,) = connection.execute(sa.select(night)).mappings()
        for number in (-1, 99):
            name = f"{nights.releases}/*/{number}"
            connection.execute(
                series_table.insert().values(id=number, name=name, terms="{}"),
            )
            directory = Path(directory_of(name))
            directory.mkdir(mode=0o700)
            for of in (mine["series"], number):
                old = {**mine, "id": number * (1 + of), "series": of, "number": 1000 + number}
                old |= {"token": f"{number} {of}", "time": days_ago(90), "rows_waiting": 0}
                connection.execute(night.insert().values(**old))
    assert swept(nights.folder) == {}
    set_nights(time=days_ago(90))
    (told,) = series.sweep(str(nights.folder), HOUR)
    (file,) = nights.waiting_files()
    assert told.work == str(file.parent)
