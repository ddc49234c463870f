"""The seal of a release changes with its parts, and with nothing else."""

from __future__ import annotations

import hashlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mondrian_ops.storage.seal import seal_of

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


def test_a_seal_is_of_names_and_contents_wherever_and_whenever_they_were_written(tmp_path):
    first = release(tmp_path / "a", PARTS)
    second = release(tmp_path / "b" / "c", dict(reversed(PARTS.items())))
    os.utime(tmp_path / "a" / "part-00001.parquet", (0, 0))
    seal = seal_of(first)
    assert seal == seal_of(second) == seal_of((tmp_path / "a").as_uri())
    assert len(seal) == 64
    assert int(seal, 16) >= 0


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
def test_a_change_breaks_the_seal(tmp_path, changed):
    assert seal_of(release(tmp_path / "a", PARTS)) != seal_of(release(tmp_path / "b", changed))


@examples(50)
@given(RELEASES, RELEASES)
def test_two_releases_have_one_seal_if_they_have_the_same_parts(tmp_path_factory, one, other):
    place = tmp_path_factory.mktemp("releases")
    seals = [seal_of(release(place / name, parts)) for name, parts in (("a", one), ("b", other))]
    assert (seals[0] == seals[1]) == (one == other)


def test_a_name_cannot_pass_for_two_parts_and_the_digest_of_one(tmp_path):
    """On a local disk a name may hold a line break: sealed line by line, both were one text."""
    one, other = "part-0.parquet", "part-1.parquet"
    digest = hashlib.sha256(b"x").hexdigest()
    two = release(tmp_path / "a", {one: b"x", other: b"y"})
    forged = release(tmp_path / "b", {f"{one} {digest}\n{other}": b"y"})
    assert seal_of(two) != seal_of(forged)


@pytest.mark.parametrize("name", ["part-\n.parquet", "part-\\n.parquet", 'part-", "\t.parquet'])
def test_odd_names_are_sealed_too(tmp_path, name):
    seals = {
        seal_of(release(tmp_path / "a", {name: b"x"})),
        seal_of(release(tmp_path / "b", {f"{name}.parquet": b"x"})),
        seal_of(release(tmp_path / "c", {"part-.parquet": b"x"})),
    }
    assert len(seals) == 3


def test_a_name_that_is_no_utf8_is_sealed_too(tmp_path):
    place = tmp_path / "a"
    place.mkdir()
    (place / os.fsdecode(b"part-\xff.parquet")).write_bytes(b"x")
    assert seal_of(str(place)) != seal_of(release(tmp_path / "b", {"part-.parquet": b"x"}))


def test_reports_marks_and_hidden_files_are_not_sealed(tmp_path):
    place = release(tmp_path / "a", PARTS)
    seal = seal_of(place)
    for name in (
        "_report.json",
        "_SUCCESS",
        ".part-00000.parquet.1a2b.tmp",
        "part-1.csv",
        "a.parquet",
    ):
        (tmp_path / "a" / name).write_bytes(b"x")
        assert seal_of(place) == seal, name


def test_what_is_not_there_has_no_seal(tmp_path):
    with pytest.raises(FileNotFoundError):
        seal_of(str(tmp_path / "absent"))
    place = release(tmp_path / "a", PARTS)
    (tmp_path / "a" / "part-00009.parquet").symlink_to("absent")
    with pytest.raises(FileNotFoundError):
        seal_of(place)
