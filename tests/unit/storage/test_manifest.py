"""The list of a release's data files, and what is not taken for one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mondrian_ops.storage import manifest

FILES = st.lists(st.tuples(st.text(), st.integers(0, 2**70), st.integers(0, 2**70)))


@examples(100)
@given(token=st.text(), files=FILES)
def test_a_manifest_says_what_it_was_built_of(tmp_path_factory, token, files):
    release = tmp_path_factory.getbasetemp()
    (release / manifest.NAME).write_bytes(manifest.build(token, files))
    told = manifest.read(str(release))
    assert told is not None
    assert told["token"] == token
    assert [(each["name"], each["rows"], each["bytes"]) for each in told["files"]] == files
    assert manifest.names(told) == {name for name, _, _ in files}


def test_a_manifest_is_one_json_value_of_ascii_lines():
    content = manifest.build("tökén", [("part-ä.parquet", 3, 70), ("b", 0, 0)])
    assert content.isascii()
    assert content.endswith(b"}\n")
    assert json.loads(content) == {
        "token": "tökén",
        "files": [
            {"name": "part-ä.parquet", "rows": 3, "bytes": 70},
            {"name": "b", "rows": 0, "bytes": 0},
        ],
    }


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"null",
        b'"token, files"',
        b'["token", "files"]',
        b'{"token": 1}',
        b'{"files": []}',
        b"[" * 50_000 + b"]" * 50_000,
        b'{"token": ' * 50_000,
    ],
    ids=range(10),
)
def test_the_mark_of_another_program_is_no_manifest(tmp_path, content):
    (tmp_path / "_SUCCESS").write_bytes(content)
    assert manifest.read(str(tmp_path)) is None


def test_a_directory_that_lacks_the_mark_or_is_none_has_no_manifest(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "absent", tmp_path / "file"):
        assert manifest.read(str(place)) is None
    assert manifest.names(None) == set()


def test_a_manifest_may_say_more_and_of_no_file(tmp_path):
    (tmp_path / "_SUCCESS").write_text('{"token": "a", "files": [], "later": 1}')
    told = manifest.read(str(tmp_path))
    assert told == {"token": "a", "files": [], "later": 1}
    assert manifest.names(told) == set()
