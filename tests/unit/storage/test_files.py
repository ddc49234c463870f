"""A file that is written once appears whole, whoever writes it."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from mondrian_ops.storage.files import write_once


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_file_has_its_mode_whatever_the_umask(tmp_path, mode, umask):
    before = os.umask(umask)
    try:
        write_once(str(tmp_path / "key"), b"secret", mode)
    finally:
        os.umask(before)
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == b"secret"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_no_content_replaces_another(tmp_path):
    path = tmp_path / "key"
    write_once(str(path), b"first")
    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write_once, [str(path)] * 20, [b"later"] * 20))
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_no_directory_is_made(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_once(str(tmp_path / "absent" / "key"), b"")
    assert list(tmp_path.iterdir()) == []
