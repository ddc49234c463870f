"""The files of the ledger: its key, its entries, and where it may lie."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from mondrian_ops import storage
from mondrian_ops.core.errors import JobError


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP])
def test_the_key_is_made_where_there_are_no_hard_links(tmp_path, monkeypatch, code):
    def unknown(*_paths):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", unknown)
    ledger = storage.Ledger(str(tmp_path / "ledger"))
    key = ledger.key()
    assert len(key) == 32
    assert storage.Ledger(ledger.url).key() == key
    assert [path.name for path in (tmp_path / "ledger").iterdir()] == ["key"]
    assert stat.S_IMODE((tmp_path / "ledger" / "key").stat().st_mode) == 0o600


@pytest.mark.parametrize("links", [True, False])
def test_of_two_who_make_the_key_at_once_both_get_the_first_ones(tmp_path, monkeypatch, links):
    ledger = storage.Ledger(str(tmp_path / "ledger"))
    place, link, first = tmp_path / "ledger" / "key", os.link, bytes(range(32))

    def late(temporary, path):
        place.write_bytes(first)
        if not links:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        link(temporary, path)

    monkeypatch.setattr(os, "link", late)
    assert ledger.key() == first
    assert [path.name for path in (tmp_path / "ledger").iterdir()] == ["key"]


@pytest.mark.parametrize(
    ("ledger", "refused"),
    [
        ("s3://b/out", True),
        ("s3://else@b/out//ledger", True),
        ("s3://b", True),
        ("s3://b/in/ledger", True),
        ("s3://b/out-ledger", False),
        ("s3://b/ledger", False),
        ("s3://c/out/ledger", False),
        ("/out/ledger", False),
    ],
)
def test_remote_places_are_compared_too(monkeypatch, ledger, refused):
    monkeypatch.setattr("mondrian_ops.storage.discovery.file_info", lambda _: None)
    if not refused:
        storage.check_ledger(ledger, "s3://b/in", "s3://b/out/")
        return
    with pytest.raises(JobError, match=r"^ledger: ") as error:
        storage.check_ledger(ledger, "s3://b/in", "s3://b/out/")
    assert "else" not in str(error.value)


def test_an_entry_nested_without_end_is_damaged(tmp_path):
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "a.json").write_text("[" * 50_000)
    noted = storage.Ledger(str(tmp_path)).read()
    assert noted == ([], [str(tmp_path / "releases" / "a.json")])
