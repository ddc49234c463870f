"""A key is made once, whoever makes it, and appears whole."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from mondrian_ops.storage.keys import KEY_BYTES, make_key


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_key_has_its_mode_whatever_the_umask(tmp_path, mode, umask):
    before = os.umask(umask)
    try:
        make_key(str(tmp_path / "key"), mode)
    finally:
        os.umask(before)
    (key,) = tmp_path.iterdir()
    assert len(key.read_bytes()) == KEY_BYTES
    assert stat.S_IMODE(key.stat().st_mode) == mode


def test_no_key_takes_the_place_of_another(tmp_path):
    place = tmp_path / "key"
    make_key(str(place))
    first = place.read_bytes()
    with ThreadPoolExecutor(4) as makers:
        list(makers.map(make_key, [str(place)] * 20))
    assert place.read_bytes() == first
    assert list(tmp_path.iterdir()) == [place]


def test_keys_differ(tmp_path):
    for number in range(5):
        make_key(str(tmp_path / str(number)))
    assert len({each.read_bytes() for each in tmp_path.iterdir()}) == 5


def test_no_directory_is_made_for_a_key(tmp_path):
    with pytest.raises(FileNotFoundError):
        make_key(str(tmp_path / "absent" / "key"))
    assert list(tmp_path.iterdir()) == []
