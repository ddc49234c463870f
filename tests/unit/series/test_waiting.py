"""The files of the rows that wait: where they lie, who may read them, and which ones go."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import stores
from mondrian_ops.errors import JobError
from mondrian_ops.series import waiting
from mondrian_ops.stores import AccessPolicy

ROWS = pa.table({"name": ["Mary", "Ann"]})
SIGNED = {1: "signature of one", 12: "of twelve"}


@pytest.fixture
def series(tmp_path: Path) -> str:
    """The name of a series that has not had a night."""
    return f"{tmp_path}/out/*/people-*"


def _written(series: str, number: int = 2) -> Path:
    file = waiting.file_of(series, number, "0123abcd")
    waiting.write(file, ROWS.schema, [ROWS, ROWS], SIGNED)
    return Path(file)


def test_they_lie_above_the_first_date_under_a_name_that_tells_no_series(
    series: str, tmp_path: Path
) -> None:
    file = Path(waiting.file_of(series, 2, "0123abcd"))
    assert file.name == "000002-0123abcd.parquet"
    assert file.parent.parent == tmp_path / "out" / ".mondrian_waiting"
    assert re.fullmatch("[0-9a-f]{24}", file.parent.name)
    assert str(file.parent) == waiting.directory_of(series)
    assert waiting.name_of(series) == waiting.name_of(series) != waiting.name_of(f"{series}2")


def test_nobody_else_may_read_them_and_no_power_failure_loses_them(
    series: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "out" / ".mondrian_waiting"
    private.mkdir(parents=True, mode=0o755)
    flushed, fsync = [], os.fsync

    def noting(handle: int) -> None:
        flushed.append(Path(os.readlink(f"/dev/fd/{handle}")))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noting)
    file = _written(series)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, private)]
    assert modes == [0o600, 0o700, 0o700]
    unfinished, *places = [path for path in flushed if tmp_path in (path, *path.parents)]
    assert unfinished.parent == file.parent
    assert places == [file.parent, private, private.parent]
    assert pq.read_table(file).column("name").to_pylist() == ["Mary", "Ann", "Mary", "Ann"]


def test_none_are_written_where_jobs_may_not_write(
    series: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = AccessPolicy(outputs=(str(tmp_path / "elsewhere"),))
    monkeypatch.setattr(stores.access_policy, "_in_use", elsewhere)
    with pytest.raises(JobError, match="outside the allowed locations"):
        _written(series)
    assert list(tmp_path.iterdir()) == []


def test_how_they_came_is_kept_with_them(series: str, tmp_path: Path) -> None:
    assert waiting.arrivals_in(str(_written(series))) == SIGNED
    older = tmp_path / "older.parquet"
    pq.write_table(ROWS, older)
    assert waiting.arrivals_in(str(older)) == {}


@pytest.mark.parametrize(
    ("name", "may_be"),
    [
        ("000002-0123abcd.parquet", True),
        (".000002-0123abcd.parquet.0123abcd.tmp", True),
        ("2-0123abcd.parquet", False),
        ("000002-0123abcd.parquet.old", False),
        (".000002-0123abcd.parquet.tmp", False),
        ("notes.txt", False),
    ],
)
def test_which_names_they_may_have(name: str, may_be: bool) -> None:
    assert waiting.is_file_name(name) == may_be


def test_of_a_current_night_only_its_own_file_stays_and_later_ones_do(series: str) -> None:
    own = _written(series, 2)
    late, older, later = (
        own.with_name(name)
        for name in ("000002-aaaa.parquet", "000001-0123.parquet", "000003-0123.parquet")
    )
    mine = own.with_name("notes.txt")
    for path in (late, older, later, mine):
        path.write_text("text")
    waiting.remove_used(series, 2, [str(own)])
    assert {*own.parent.iterdir()} == {own, later, mine}
    waiting.remove_used(series, 3, [])
    assert {*own.parent.iterdir()} == {mine}


def test_where_no_row_has_ever_waited_nothing_is_removed(series: str, tmp_path: Path) -> None:
    waiting.remove_used(series, 2, [])
    assert list(tmp_path.iterdir()) == []
