"""The digest of a file is the same while it is written and when it is read."""

from __future__ import annotations

import gzip
import hashlib
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mondrian_ops.storage.digest import DigestingSink, digest_of

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
