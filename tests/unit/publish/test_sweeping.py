"""Which working files are removed, and that nothing else ever is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from mondrian_ops import publish
from mondrian_ops.publish import Owner, WorkDir, sweep, table_folders, work_path
from other_users import give_away

DAY = timedelta(days=1)
OWNER = Owner("a_dag/manual__1", "partition")


@pytest.fixture
def out(tmp_path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def made(folder: Path, owner: Owner | None = OWNER, run: str = OWNER.run) -> Path:
    """Working files with a raw row, for the output ``people`` in a folder."""
    work = WorkDir(work_path(str(folder / "people"), run))
    work.create(owner)
    work.write_bytes("fragments/00000-.arrow", b"Mary, 34, HIV")
    return Path(work.root)


def age(work: Path, time: timedelta) -> None:
    for path in [*work.rglob("*"), work]:
        moment = path.stat().st_mtime - time.total_seconds()
        os.utime(path, (moment, moment))


def swept(folder: Path, need: bool | None = None) -> dict[str, str]:
    return {Path(each.work).name: each.state for each in sweep(str(folder), DAY, lambda _: need)}


@pytest.mark.parametrize("need", [True, False])
def test_what_a_run_in_airflow_needs_is_kept_however_old_and_else_removed(out, need):
    works = [made(out), made(out / "nightly" / "deep")]
    for work in works:
        age(work, 9 * DAY)
    asked = []
    list(sweep(str(out), DAY, lambda owner: asked.append(owner) or need))
    assert asked == [OWNER, OWNER]
    assert [work.exists() for work in works] == [need, need]


def test_files_of_no_known_run_are_kept_until_nothing_has_changed_for_a_day(out):
    work = made(out, None)
    os.close(publish.workdir._HELD.pop(str(work)))  # its process has ended
    age(work, DAY - timedelta(hours=1))
    assert swept(out) == {work.name: "kept"}
    age(work, timedelta(hours=2))
    assert swept(out) == {work.name: "removed"}
    assert list(out.iterdir()) == []


RUN = """
import sys
from mondrian_ops.publish import WorkDir
WorkDir(sys.argv[1]).create()
print("made", flush=True)
sys.stdin.read()
"""


def test_files_that_a_living_process_holds_are_kept_however_old(out):
    work = work_path(str(out / "people"), "a run")
    command = [sys.executable, "-c", RUN, work]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"made\n"
        age(Path(work), 9 * DAY)
        (told,) = sweep(str(out), DAY, lambda _: None)
        assert (told.state, told.reason) == ("kept", "a process works with it")
        process.kill()
    assert set(swept(out).values()) == {"removed"}


def test_a_sweep_is_not_led_elsewhere(out, tmp_path):
    """Somebody may write beside the outputs."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("precious")
    work = made(precious)
    name = work.name
    (out / name).symlink_to(precious)
    (out / "link").symlink_to(precious)
    assert swept(out, False) == {}
    assert work.exists()
    (out / name).unlink()
    mine = made(out)
    (mine / "fragments" / "link").symlink_to(precious)
    assert swept(out, False) == {mine.name: "removed"}
    assert (precious / "file").read_text() == "precious"
    assert work.exists()


@pytest.mark.parametrize("name", [".people.mondrian_ops-previous", ".a.mondrian_ops-XYZ", ".x"])
def test_other_names_are_not_looked_at(out, name):
    """Also not the old release, while it is moved aside."""
    made(out).rename(out / name)
    assert swept(out, False) == {}
    assert (out / name).exists()


def test_a_release_that_was_given_the_name_of_working_files_stays(out):
    release = out / f".people.mondrian_ops-{'0' * 12}"
    release.mkdir()
    (release / "_SUCCESS").write_text("{}")
    age(release, 9 * DAY)
    assert swept(out, False) == {release.name: "kept"}
    assert (release / "_SUCCESS").exists()


@pytest.mark.parametrize(
    "forged",
    [
        Owner("a_dag/gone", "partition").__dict__,
        {"run": 5, "task": []},
        {"run": "\ud800", "task": "partition"},
        {"run": OWNER.run},
        [],
        None,
    ],
    ids=["another run", "types", "text", "lacking", "list", "no JSON"],
)
def test_files_with_a_forged_owner_stay(out, forged):
    """On a store without permissions, where somebody would have a run's files removed."""
    work = made(out)
    (work / "owner.json").write_text("{" if forged is None else json.dumps(forged))
    assert swept(out, False) == {work.name: "kept"}
    assert work.exists()


def test_files_of_another_user_stay(out, monkeypatch):
    work = made(out)
    give_away(work, monkeypatch)
    assert swept(out, False) == {work.name: "kept"}
    assert work.exists()


def test_what_cannot_be_removed_is_told_and_does_not_stop_the_sweep(out, monkeypatch):
    works = sorted([made(out), made(out / "b")])
    remove = WorkDir.remove

    def refuse(work):
        if work.root == str(works[0]):
            raise PermissionError(13, "Permission denied")
        remove(work)

    monkeypatch.setattr(WorkDir, "remove", refuse)
    assert sorted(each.state for each in sweep(str(out), DAY, lambda _: False)) == [
        "failed",
        "removed",
    ]


def test_what_its_run_has_removed_meanwhile_is_not_told_of(out, monkeypatch):
    works = sorted([made(out), made(out / "b")])
    owner = WorkDir.owner

    def gone(work):
        if work.root == str(works[0]):
            raise FileNotFoundError(2, "No such file or directory")
        return owner.fget(work)

    monkeypatch.setattr(WorkDir, "owner", property(gone))
    told = sweep(str(out), DAY, lambda _: False)
    assert [(each.work, each.state) for each in told] == [(str(works[1]), "removed")]


def test_why_each_is_kept_or_removed_is_told(out, monkeypatch):
    def told(need: bool | None = None) -> str:
        (one,) = sweep(str(out), DAY, lambda _: need)
        return str(one).removeprefix(f"{work}: ")

    work = made(out)
    assert told(True) == "kept, of the run a_dag/manual__1"
    age(work, timedelta(hours=1.5))
    assert told() == "kept, unchanged for 1.5 hours"
    assert told(False) == "removed, of the run a_dag/manual__1"
    work = made(out)
    (work / "owner.json").write_text(json.dumps(Owner("a_dag/gone", "partition").__dict__))
    assert told() == "kept, it says that it belongs to another run"
    (work / "attempt").unlink()
    assert told() == "kept, no working files of a run"
    give_away(work, monkeypatch)
    assert told() == "kept, of another user"


def test_of_hidden_directories_only_those_of_tables_are_looked_into(out):
    tables = out / table_folders.FOLDER
    for folder in (out / ".a", tables, out / "_zz"):
        folder.mkdir()
        made(folder)
    assert [each.work.rpartition("/")[0] for each in sweep(str(out), DAY, lambda _: False)] == [
        str(tables)
    ]


def test_a_folder_that_is_missing_holds_nothing(tmp_path):
    assert swept(tmp_path / "missing") == {}
