"""Rows that wait are never swept; what killed nights have left is."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from mondrian_ops import catalogue, series
from mondrian_ops.catalogue.tables import night
from mondrian_ops.series import sweeping
from nights import Nights

HOUR = timedelta(hours=1)


def swept(folder: Path) -> dict[str, str]:
    return {Path(each.work).name: each.state for each in series.sweep(str(folder), HOUR)}


def aged(*files: Path) -> None:
    """The files were written two hours ago, by the clock of the system that they lie on."""
    then = time.time() - 2 * HOUR.total_seconds()
    for file in files:
        os.utime(file, (then, then))


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    """A series with a row that waits; the time of the last change of a file can be set."""
    found = sweeping.data_file
    monkeypatch.setattr(sweeping, "data_file", lambda file: _Settable(found(file).modified))
    nights = Nights(tmp_path, series={"hold_nights": 3})
    nights.run(0, 3)
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


def test_rows_that_wait_for_no_night_are_told_of(nights: Nights) -> None:
    (file,) = nights.waiting_files()
    with catalogue.current().writing() as connection:
        connection.execute(night.update().values(time="2025-06-01T00:00:00.000000+00:00"))
    (told,) = series.sweep(str(nights.folder), HOUR)
    assert (told.work, told.state) == (str(file.parent), "forgotten")
    assert told.reason.startswith(f"rows have waited since the night {nights.output(0)}, and")
    nights.run(1, 60)
    assert swept(nights.folder) == {}
