"""Local paths that lead into private folders, and those that do not.

The attacks on them are in tests/integration/attacks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mondrian_ops.errors import JobError, StorageError
from mondrian_ops.stores import access_policy, private_folders
from mondrian_ops.stores.access_policy import AccessPolicy
from mondrian_ops.stores.locations import WAITING


@pytest.fixture(autouse=True)
def all_modes() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture(params=["outside", "inside"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder outside of all private ones, or in one."""
    folder = tmp_path / (WAITING if request.param == "inside" else "plain") / "folder"
    folder.mkdir(parents=True)
    return folder


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_are_made_moved_linked_and_removed_by_their_paths(folder: Path) -> None:
    one, other, third = (folder / name for name in ("one", "other", "third"))
    handle = private_folders.open_handle(str(one), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(handle, b"rows")
    os.close(handle)
    assert _mode(one) == 0o666
    with pytest.raises(FileExistsError):
        private_folders.open_handle(str(one), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    private_folders.keep_private(str(one))
    assert _mode(one) == 0o600
    other.write_text("replaced")
    private_folders.move(str(one), str(other))
    private_folders.link(str(other), str(third))
    with pytest.raises(FileExistsError):
        private_folders.link(str(other), str(third))
    assert private_folders.status(str(third)).st_size == 4
    private_folders.remove(str(other))
    assert [path.name for path in folder.iterdir()] == ["third"]
    with pytest.raises(FileNotFoundError):
        private_folders.remove(str(other))


def test_directories_are_made_listed_and_removed_by_their_paths(folder: Path) -> None:
    inner = folder / "above" / "deeper" / "inner"
    for name in ("other", "inner"):
        private_folders.make_private(str(inner.with_name(name)))
    assert _mode(inner) == 0o700
    assert private_folders.is_own(str(inner))
    with pytest.raises(FileExistsError):
        private_folders.make_private(str(inner))
    private_folders.make(str(inner / "deep"))
    assert _mode(inner / "deep") == 0o777
    with pytest.raises(FileNotFoundError):
        private_folders.make(str(inner / "missing" / "deep"))
    (inner / "deep" / "file").touch()
    with private_folders.scanned(str(inner)) as entries:
        assert [each.name for each in entries] == ["deep"]
    handle = private_folders.open_handle(str(inner), os.O_RDONLY | os.O_DIRECTORY)
    assert os.listdir(handle) == ["deep"]
    os.close(handle)
    for _ in range(2):  # a missing one is no error
        private_folders.remove_tree(str(inner))
        assert list(inner.parent.iterdir()) == [inner.with_name("other")]


def test_a_private_folder_is_removed_itself_and_only_where_jobs_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [WAITING, f".people.mondrian_ops-{'0' * 12}"]
    assert [private_folders.is_work_name(name) for name in names] == [False, True]
    for name in names:
        (tmp_path / name / "deep").mkdir(parents=True)
        elsewhere = AccessPolicy(outputs=(str(tmp_path / "elsewhere"),))
        monkeypatch.setattr(access_policy, "_in_use", elsewhere)
        with pytest.raises(JobError, match="outside the allowed locations"):
            private_folders.remove_tree(str(tmp_path / name))
        monkeypatch.setattr(access_policy, "_in_use", None)
        private_folders.remove_tree(str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_an_opened_name_takes_the_place_of_another(folder: Path) -> None:
    (folder / "one").write_text("new")
    (folder / "other").write_text("old")
    with (
        private_folders.entry(str(folder / "one")) as one,
        private_folders.entry(str(folder / "other")) as other,
    ):
        one.rename(other)
    assert [path.name for path in folder.iterdir()] == ["other"]
    assert (folder / "other").read_text() == "new"


def test_a_link_is_followed_only_where_nothing_is_private(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("text")
    link = folder / "link"
    link.symlink_to(tmp_path / "target")
    is_link = stat.S_ISLNK(private_folders.status(str(link)).st_mode)
    assert is_link == (WAITING in str(folder))


def test_errors_about_private_files_are_told_as_logs_may_show_them(tmp_path: Path) -> None:
    series = tmp_path / WAITING / "0123456789abcdef01234567"
    series.mkdir(parents=True)
    with pytest.raises(FileNotFoundError) as caught:
        private_folders.remove(str(series / "missing"))
    assert str(caught.value) == (
        f"[Errno 2] No such file or directory: '{tmp_path}/{WAITING}/…/missing'"
    )
    with pytest.raises(OSError, match="told by Arrow"), private_folders.entry(str(series)):
        raise OSError("told by Arrow")


def test_no_other_name_is_a_private_one(tmp_path: Path) -> None:
    """So a link of such a name is what it is: people may link their folders."""
    (tmp_path / "there").mkdir()
    for name in (".mondrian_", ".mondrian_waited", ".mondrian_waiting2", ".a.mondrian_ops-0123"):
        (tmp_path / name).symlink_to("there")
        assert private_folders.is_own(str(tmp_path / name))
        private_folders.make(str(tmp_path / name / "new"))
        (tmp_path / "there" / "new").rmdir()
    (tmp_path / WAITING).symlink_to("there")
    with pytest.raises(StorageError, match="is a link"):
        private_folders.make(str(tmp_path / WAITING / "new"))
