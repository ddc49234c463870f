"""Folders by their descriptors; the attacks on them are in tests/integration/attacks."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
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


@pytest.mark.parametrize("other", [-1, 1])
def test_users_with_a_smaller_and_with_a_greater_number_are_others(
    tmp_path: Path, inner: Path, monkeypatch: pytest.MonkeyPatch, other: int
) -> None:
    status = inner.stat()
    monkeypatch.setattr(os, "geteuid", lambda: status.st_uid + other)
    monkeypatch.setattr(shared_folders, "_owners", {status.st_dev: status.st_uid + other})
    with Folder(str(tmp_path)) as folder:
        assert not folder.has_own("inner")


def test_where_no_file_can_be_made_to_see_a_folder_is_anothers(
    tmp_path: Path, inner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = inner.stat()
    monkeypatch.setattr(os, "geteuid", lambda: status.st_uid + 1)
    monkeypatch.setattr(shared_folders, "_owners", {})

    def refused(*_: Any) -> int:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(Folder, "open", refused)
    with Folder(str(tmp_path)) as folder:
        assert not folder.has_own("inner")
        monkeypatch.setattr(os, "geteuid", lambda: status.st_uid)
        assert folder.has_own("inner")  # which needs no look


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


def test_nobody_may_enter_a_new_private_folder_even_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    monkeypatch.setattr(
        Folder, "keep_private", lambda folder, name: modes.append(folder.status(name).st_mode)
    )
    before = os.umask(0)
    try:
        with Folder(str(tmp_path)) as folder:
            folder.make_private("new")
    finally:
        os.umask(before)
    assert [mode & 0o077 for mode in modes] == [0]


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Folder(str(tmp_path)) as folder:
            os.close(folder.open("new", os.O_WRONLY | os.O_CREAT))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666


def test_whatever_was_opened_is_closed(
    tmp_path: Path, inner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inner / "foreign").mkdir()
    open_before = os.listdir("/dev/fd")
    with Folder(str(tmp_path)) as folder:
        folder.enter("inner")
        with folder.own("deep"), folder.scanned():
            folder.keep_private("deep")
        folder.remove_own("deep")
        monkeypatch.setattr(shared_folders, "_owners", {})
        monkeypatch.setattr(os, "geteuid", lambda: 54_321)
        folder.keep_private("foreign")  # a file is made to see who owns it
        monkeypatch.setattr(shared_folders, "_owners", dict.fromkeys(shared_folders._owners, -1))
        for act in (folder.own, folder.keep_private):
            with pytest.raises(StorageError, match="belongs to another user"):
                act("foreign")
        assert not folder.has_own("foreign")
    assert os.listdir("/dev/fd") == open_before


def test_a_broken_link_is_an_entry_too(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with Folder(str(tmp_path)) as folder:
        assert folder.has("link")
        assert not folder.has("nowhere")


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


def test_an_entry_is_named_as_logs_may_show_it(tmp_path: Path, inner: Path) -> None:
    (inner / "deep" / "link").symlink_to("/")
    with (
        Folder(str(tmp_path), lambda path: path.replace(str(tmp_path), "SHOWN")) as folder,
        folder.own("inner") as one,
        one.own("deep") as deep,
    ):
        with pytest.raises(StorageError) as caught:
            deep.own("link")
        assert str(caught.value) == (
            "SHOWN/inner/deep/link: is a link, where a folder of this package is expected; find "
            "out who made it, and remove it"
        )
        with pytest.raises(StorageError, match=r"^SHOWN/inner/deep/file: is no directory, where"):
            deep.own("file")


def test_where_the_system_fails_it_is_not_said_that_there_is_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(*_given: Any, **_more: Any) -> int:
        raise OSError(errno.ESTALE, "Stale file handle")

    with Folder(str(tmp_path)) as folder:
        monkeypatch.setattr(os, "open", stale)
        with pytest.raises(OSError, match="Stale file handle"):
            folder.open("file", os.O_RDONLY)
        with pytest.raises(OSError, match="Stale file handle"):
            folder.own("inner")


def test_a_folder_is_where_it_was_moved_to(tmp_path: Path, inner: Path) -> None:
    (tmp_path / "other").mkdir()
    with Folder(str(tmp_path)) as folder, folder.own("other") as other:
        with folder.own("inner") as opened:
            folder.rename("inner", other, "moved")
            place = shared_folders.place_of(opened.handle, str(inner))
        assert place == str(tmp_path.resolve() / "other" / "moved")
        assert (tmp_path / "other" / "moved" / "deep" / "file").exists()
    assert not inner.exists()


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo], ids=["file", "pipe"])
def test_a_file_is_made_private_too(tmp_path: Path, make: Callable[[Path], object]) -> None:
    """A pipe, which somebody has planted, is not waited for."""
    file = tmp_path / "file"
    make(file)
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
        for problem in (errno.EACCES, errno.ESTALE):
            problems.append(problem)
            with pytest.raises(OSError, match="no") as caught:
                getattr(folder, remove)("inner")
            assert caught.value.errno == problem
        assert inner.exists()
        problems.extend([errno.ENOTEMPTY] * 9)
        with pytest.raises(OSError, match="no"):
            getattr(folder, remove)("inner")


@pytest.mark.parametrize(("remove", "looks"), [("remove_tree", "status"), ("remove_own", "own")])
def test_what_gets_the_name_afterwards_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remove: str, looks: str
) -> None:
    """Whether there was something before, or nothing."""
    real: Any = getattr(Folder, looks)

    def gone(folder: Folder, name: str) -> None:
        monkeypatch.setattr(Folder, looks, real)
        (tmp_path / "name").mkdir()
        raise FileNotFoundError(errno.ENOENT, name)

    with Folder(str(tmp_path)) as folder:
        monkeypatch.setattr(Folder, looks, gone)
        getattr(folder, remove)("name")
        assert (tmp_path / "name").exists()

    removed, rmdir = [], os.rmdir

    def replaced(name: str, *, dir_fd: int | None = None) -> None:
        rmdir(name, dir_fd=dir_fd)
        removed.append(name)
        os.mkdir(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", replaced)
    with Folder(str(tmp_path)) as folder:
        getattr(folder, remove)("name")
    assert removed == ["name"]
    assert (tmp_path / "name").exists()


@pytest.mark.parametrize("error", [FileNotFoundError, NotADirectoryError, PermissionError])
def test_a_file_that_vanishes_while_its_folder_is_removed_is_no_error(
    tmp_path: Path, inner: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    """One that cannot be removed is, with what the system says."""
    unlink = os.unlink

    def failing(name: str, *, dir_fd: int | None = None) -> None:
        if error is not PermissionError:
            unlink(name, dir_fd=dir_fd)
        raise error(errno.EACCES, "what the system says")

    monkeypatch.setattr(os, "unlink", failing)
    with Folder(str(tmp_path)) as folder:
        if error is PermissionError:
            with pytest.raises(PermissionError, match="what the system says"):
                folder.remove_tree("inner")
        else:
            folder.remove_tree("inner")
    assert inner.exists() == (error is PermissionError)
