from __future__ import annotations

import contextlib

import pyarrow as pa
import pytest

from mondrian_ops.errors import StorageError
from mondrian_ops.publish import FragmentWriter, WorkDir, read_fragment, scattered_rows, work_path


@pytest.fixture
def work(tmp_path):
    made = WorkDir(work_path(str(tmp_path / "out"), "dag/run/group"))
    made.create()
    return made


def test_fragments_keep_all_rows_in_order(work, monkeypatch):
    monkeypatch.setattr(scattered_rows, "FLUSH_BYTES", 100)
    with FragmentWriter(work) as writer:
        for start in range(0, 100, 10):
            numbers = pa.table({"n": list(range(start, start + 10))})
            writer.append(0, numbers)
            writer.append(7, numbers.slice(0, 3))
    assert read_fragment(work, 0)["n"].to_pylist() == list(range(100))
    assert read_fragment(work, 7).num_rows == 30


def test_small_tables_are_gathered_into_batches(work):
    with FragmentWriter(work) as writer:
        for number in range(50):
            writer.append(0, pa.table({"n": [number]}))
    assert read_fragment(work, 0)["n"].num_chunks == 1


def test_dictionaries_may_differ_from_batch_to_batch(work, monkeypatch):
    monkeypatch.setattr(scattered_rows, "FLUSH_BYTES", 1)
    with FragmentWriter(work) as writer:
        for words in (["a", "b"], ["c", None], ["b", "a"]):
            writer.append(0, pa.table({"t": pa.array(words).dictionary_encode()}))
    assert read_fragment(work, 0)["t"].to_pylist() == ["a", "b", "c", None, "b", "a"]


def test_writers_scatter_at_once_and_each_replaces_only_its_own(work):
    def scatter(writer, values):
        with FragmentWriter(work, writer) as scattering:
            scattering.append(3, pa.table({"n": values}))

    scatter("0001", [30, 40])
    scatter("0000", [10])
    scatter("0000", [20])
    assert read_fragment(work, 3)["n"].to_pylist() == [20, 30, 40]


def test_a_fragment_without_rows_is_empty_with_the_columns_of_the_others(work):
    with FragmentWriter(work) as writer:
        writer.append(1, pa.table({"n": [1]}))
    assert read_fragment(work, 0).equals(pa.table({"n": pa.array([], pa.int64())}))


def test_an_unfinished_scatter_leaves_no_fragment(work):
    writer = FragmentWriter(work)
    writer.append(0, pa.table({"n": [1]}))
    with pytest.raises(StorageError):
        read_fragment(work, 0)
    with contextlib.suppress(RuntimeError), FragmentWriter(work) as other:
        other.append(1, pa.table({"n": [1]}))
        raise RuntimeError
    with pytest.raises(StorageError):
        read_fragment(work, 1)
