"""Folders by their descriptors; the attacks on them are in tests/integration/attacks."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from mondrian_ops.errors import StorageError
from mondrian_ops.stores import shared_folders
from mondrian_ops.stores.shared_folders import Folder
from other_users import give_away


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    folder = tmp_path / "inner"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file").touch()
    return folder


def test_what_was_opened_stays_what_it_was_when_its_name_becomes_anothers(
    tmp_path: Path, inner: Path
) -> None:
    with Folder(str(tmp_path)) as folder, folder.own("inner") as opened:
        inner.rename(tmp_path / "moved")
        inner.symlink_to("/")
        with opened.scanned() as entries:
            assert [each.name for each in entries] == ["deep"]
        opened.remove_tree("deep")
    assert not list((tmp_path / "moved").iterdir())


def test_a_file_system_that_maps_users_is_no_attack(
    tmp_path: Path, inner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS that squashes users gives everything of this user's another owner: so a probe has."""
    give_away(inner, monkeypatch)
    with Folder(str(tmp_path)) as folder:
        assert not folder.has_own("inner")
        status = inner.stat()
        monkeypatch.setattr(shared_folders, "_owners", {status.st_dev: status.st_uid})
        assert folder.has_own("inner")


def test_to_see_who_owns_new_files_leaves_none(
    tmp_path: Path, inner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_folders, "_owners", {})
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    with Folder(str(tmp_path)) as folder:
        assert folder.has_own("inner")  # what this process makes has the same owner
    assert [path.name for path in tmp_path.iterdir()] == ["inner"]


def test_own_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o277)
    try:
        with Folder(str(tmp_path)) as folder:
            folder.make_private("new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_only_a_folder_is_removed_as_an_own_one_and_a_link_itself_with_a_tree(
    tmp_path: Path, inner: Path
) -> None:
    (tmp_path / "link").symlink_to(inner)
    (tmp_path / "file").touch()
    with Folder(str(tmp_path)) as folder:
        for name in ("link", "file"):
            with pytest.raises(StorageError, match=r"is a link|is no directory"):
                folder.remove_own(name)
            folder.remove_tree(name)
        folder.remove_own("absent")
        folder.remove_tree("absent")
        assert (inner / "deep" / "file").exists()
        folder.remove_own("inner")
    assert not list(tmp_path.iterdir())


def test_a_link_is_not_opened_and_what_is_missing_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    with Folder(str(tmp_path)) as folder:
        with pytest.raises(StorageError, match="is a link, which is not followed"):
            folder.open("link", os.O_RDONLY)
        with pytest.raises(FileNotFoundError):
            folder.open("missing", os.O_RDONLY)


def test_a_file_is_made_private_too(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o666)
    with Folder(str(tmp_path)) as folder:
        folder.keep_private("file")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("remove", "module", "last"), [("remove_tree", shutil, "rmtree"), ("remove_own", os, "rmdir")]
)
def test_files_that_another_process_adds_meanwhile_are_removed_too(
    tmp_path: Path,
    inner: Path,
    monkeypatch: pytest.MonkeyPatch,
    remove: str,
    module: Any,
    last: str,
) -> None:
    real, problems = getattr(module, last), [errno.ENOTEMPTY]

    def crowded(name: str, *given: Any, **more: Any) -> None:
        if name == "inner" and problems:
            raise OSError(problems.pop(), "no")
        real(name, *given, **more)

    monkeypatch.setattr(module, last, crowded)
    with Folder(str(tmp_path)) as folder:
        getattr(folder, remove)("inner")
        assert not inner.exists()
        inner.mkdir()
        problems.append(errno.EACCES)
        with pytest.raises(PermissionError):
            getattr(folder, remove)("inner")
        assert inner.exists()
        problems.extend([errno.ENOTEMPTY] * 9)
        with pytest.raises(OSError, match="no"):
            getattr(folder, remove)("inner")
