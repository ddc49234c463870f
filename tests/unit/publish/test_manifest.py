"""The list of a release's files, what does not pass for one, and the digests of their content."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.publish import manifest
from mondrian_ops.publish.manifest import DigestingSink, digest_of, digest_of_parts

FILES = st.lists(st.tuples(st.text(), st.integers(0, 2**70)))


@examples(100)
@given(token=st.text(), files=FILES)
def test_a_manifest_says_what_it_was_built_of(tmp_path_factory, token, files):
    release = tmp_path_factory.getbasetemp()
    (release / manifest.NAME).write_bytes(manifest.build(token, files))
    assert manifest.read(str(release)) == (token, {name for name, _ in files})


def test_a_manifest_is_one_json_value_of_ascii_lines():
    content = manifest.build("tökén", [("part-ä.parquet", 70), ("b", 0)])
    assert content.isascii()
    assert content.endswith(b"}\n")
    assert json.loads(content) == {
        "token": "tökén",
        "files": [
            {"name": "part-ä.parquet", "bytes": 70},
            {"name": "b", "bytes": 0},
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
        b'{"token": "a", "files": 3}',
        b'{"token": "a", "files": ["part-0.parquet"]}',
        b'{"token": "a", "files": [{"rows": 3}]}',
        b'{"token": "a", "files": [{"name": 3}]}',
        b"[" * 50_000 + b"]" * 50_000,
        b'{"token": ' * 50_000,
    ],
    ids=range(14),
)
def test_the_mark_of_another_program_is_no_manifest(tmp_path, content):
    (tmp_path / "_SUCCESS").write_bytes(content)
    assert manifest.read(str(tmp_path)) is None


def test_a_directory_that_lacks_the_mark_or_is_none_has_no_manifest(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "absent", tmp_path / "file"):
        assert manifest.read(str(place)) is None


def test_a_manifest_may_say_more_and_of_no_file(tmp_path):
    (tmp_path / "_SUCCESS").write_text('{"token": "a", "files": [], "later": 1}')
    assert manifest.read(str(tmp_path)) == ("a", set())


# the digest of the parts

PARTS = {"part-00000.parquet": b"zero", "part-00001.parquet": b"one", "part-ä.parquet": b""}
RELEASES = st.dictionaries(
    st.sampled_from([f"part-{number:05}.parquet" for number in range(9)]),
    st.sampled_from([b"", b"a", b"b", b"\n"]),
)


def release(directory, parts):
    directory.mkdir(parents=True)
    for name, content in parts.items():
        (directory / name).write_bytes(content)
    return str(directory)


def test_a_digest_is_of_names_and_contents_wherever_and_whenever_they_were_written(tmp_path):
    first = release(tmp_path / "a", PARTS)
    second = release(tmp_path / "b" / "c", dict(reversed(PARTS.items())))
    os.utime(tmp_path / "a" / "part-00001.parquet", (0, 0))
    digest = digest_of_parts(first)
    assert digest == digest_of_parts(second) == digest_of_parts((tmp_path / "a").as_uri())
    assert len(digest) == 64
    assert int(digest, 16) >= 0


@pytest.mark.parametrize(
    "changed",
    [
        PARTS | {"part-00001.parquet": b"onf"},
        PARTS | {"part-ä.parquet": b"\x00"},
        PARTS | {"part-00002.parquet": b""},
        PARTS | {"part-00000.parquet": b"one", "part-00001.parquet": b"zero"},
        {name: PARTS[name] for name in list(PARTS)[:2]},
        {name.replace("00001", "00007"): content for name, content in PARTS.items()},
        {},
    ],
    ids=["a byte", "the first byte", "a part more", "exchanged", "a part less", "a name", "none"],
)
def test_a_change_breaks_the_digest(tmp_path, changed):
    assert digest_of_parts(release(tmp_path / "a", PARTS)) != digest_of_parts(
        release(tmp_path / "b", changed)
    )


@examples(50)
@given(RELEASES, RELEASES)
def test_two_releases_have_one_digest_if_they_have_the_same_parts(tmp_path_factory, one, other):
    place = tmp_path_factory.mktemp("releases")
    digests = [
        digest_of_parts(release(place / name, parts)) for name, parts in (("a", one), ("b", other))
    ]
    assert (digests[0] == digests[1]) == (one == other)


def test_a_name_cannot_pass_for_two_parts_and_the_digest_of_one(tmp_path):
    """On a local disk a name may hold a line break: digested line by line, both were one text."""
    one, other = "part-0.parquet", "part-1.parquet"
    digest = hashlib.sha256(b"x").hexdigest()
    two = release(tmp_path / "a", {one: b"x", other: b"y"})
    forged = release(tmp_path / "b", {f"{one} {digest}\n{other}": b"y"})
    assert digest_of_parts(two) != digest_of_parts(forged)


@pytest.mark.parametrize("name", ["part-\n.parquet", "part-\\n.parquet", 'part-", "\t.parquet'])
def test_odd_names_are_digested_too(tmp_path, name):
    digests = {
        digest_of_parts(release(tmp_path / "a", {name: b"x"})),
        digest_of_parts(release(tmp_path / "b", {f"{name}.parquet": b"x"})),
        digest_of_parts(release(tmp_path / "c", {"part-.parquet": b"x"})),
    }
    assert len(digests) == 3


def test_a_name_that_is_no_utf8_is_digested_too(tmp_path):
    place = tmp_path / "a"
    place.mkdir()
    (place / os.fsdecode(b"part-\xff.parquet")).write_bytes(b"x")
    assert digest_of_parts(str(place)) != digest_of_parts(
        release(tmp_path / "b", {"part-.parquet": b"x"})
    )


def test_reports_marks_and_hidden_files_are_not_digested(tmp_path):
    place = release(tmp_path / "a", PARTS)
    digest = digest_of_parts(place)
    for name in (
        "_report.json",
        "_SUCCESS",
        ".part-00000.parquet.1a2b.tmp",
        "part-1.csv",
        "a.parquet",
    ):
        (tmp_path / "a" / name).write_bytes(b"x")
        assert digest_of_parts(place) == digest, name


def test_what_is_not_there_has_no_digest(tmp_path):
    with pytest.raises(FileNotFoundError):
        digest_of_parts(str(tmp_path / "absent"))
    place = release(tmp_path / "a", PARTS)
    (tmp_path / "a" / "part-00009.parquet").symlink_to("absent")
    with pytest.raises(FileNotFoundError):
        digest_of_parts(place)


# the digest of a file

MEGABYTE = 1 << 20


@pytest.mark.parametrize("size", [0, 1, MEGABYTE - 1, MEGABYTE, 2 * MEGABYTE + 1])
def test_a_file_of_any_size_is_read_to_its_end(tmp_path, size):
    path, content = tmp_path / "dätei", (b"0123456789ab" * (size // 12 + 1))[:size]
    path.write_bytes(content)
    for url in (str(path), path.as_uri()):
        assert digest_of(url) == hashlib.sha256(content).hexdigest()


def test_a_compressed_file_is_not_unpacked(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"age\n1\n"))
    assert digest_of(str(path)) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_that_is_not_there_has_none(tmp_path):
    with pytest.raises(FileNotFoundError):
        digest_of(str(tmp_path / "absent"))


@examples(100)
@given(st.lists(st.binary()))
def test_what_is_written_arrives_and_is_digested_however_it_is_divided(pieces):
    beneath = io.BytesIO()
    sink = DigestingSink(beneath)
    for number, piece in enumerate(pieces):
        assert sink.digest == hashlib.sha256(b"".join(pieces[:number])).hexdigest()
        assert sink.write(piece) == len(piece)
    assert beneath.getvalue() == b"".join(pieces)
    assert sink.digest == hashlib.sha256(beneath.getvalue()).hexdigest()


def test_closing_leaves_the_file_beneath_open_and_flushing_reaches_it(tmp_path):
    path = tmp_path / "file"
    with path.open("wb") as beneath:
        sink = DigestingSink(beneath)
        sink.write(b"one")
        sink.flush()
        assert path.read_bytes() == b"one"
        sink.close()
        assert not sink.closed
        sink.write(b" two")
    assert path.read_bytes() == b"one two"
    assert digest_of(str(path)) == sink.digest


def test_what_arrow_writes_has_the_digest_of_its_file(tmp_path):
    path = tmp_path / "part.parquet"
    with pa.OSFile(str(path), "wb") as beneath:
        sink = DigestingSink(beneath)
        pq.write_table(pa.table({"age": range(10_000), "plz": ["ä", None] * 5_000}), sink)
    assert pq.read_table(path).num_rows == 10_000
    assert digest_of(str(path)) == sink.digest
