"""The rows of the first pass, which the second one takes instead of reading them again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline, publish
from mondrian_ops.engines import local
from mondrian_ops.engines.kept_rows import MOST_BYTES, KeptRows
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.pipeline.partitioning import begin, steps
from mondrian_ops.tables.files import FileTable

ROWS = 3_000
TARGET = pa.schema({"age": pa.int64(), "city": pa.string()})


def batch(first: int = 0) -> pa.RecordBatch:
    cities = pa.array(["Rome", None, "Rome", "Oslo"]).dictionary_encode()
    ages = pa.array([first, 1, None, 3], pa.int64())
    return pa.record_batch({"city": cities, "age": ages, "more": ages})


def test_rows_that_passed_are_given_once_in_their_order_and_in_the_types_of_the_source():
    kept = KeptRows()
    passed = [batch(), batch(7)]
    assert list(kept.passing(passed)) == passed
    assert kept.has(["age", "city"])
    plain = [
        pa.record_batch(
            {"age": each["age"], "city": pa.array(["Rome", None, "Rome", "Oslo"])}, schema=TARGET
        )
        for each in passed
    ]
    assert list(kept.batches(TARGET, dictionaries=False)) == plain
    assert not kept.has(["age"])
    assert list(kept.batches(TARGET, dictionaries=False)) == []


def test_dictionaries_stay_for_who_takes_them():
    kept = KeptRows()
    list(kept.passing([batch()]))
    assert list(kept.batches(TARGET, dictionaries=True)) == [batch().select(["age", "city"])]


def test_nothing_is_kept_of_rows_that_are_too_many_unfinished_or_lack_a_column():
    assert not KeptRows().has([])
    kept = KeptRows(2 * batch().nbytes)
    batches = kept.passing([batch(), batch()])
    next(batches)
    assert not kept.has(["age"])
    list(batches)
    assert kept.has(["age"])
    assert not kept.has(["age", "other"])
    kept = KeptRows(2 * batch().nbytes - 1)
    assert len(list(kept.passing([batch()] * 3))) == 3
    assert not kept.has(["age"])
    assert list(kept.batches(TARGET, dictionaries=True)) == []


@pytest.mark.parametrize("most_bytes", [MOST_BYTES, 1000])
def test_fragments_have_the_same_rows_whether_these_are_read_once_or_twice(
    tmp_path, monkeypatch, most_bytes
):
    """Texts come as dictionaries in the first pass; the fragments have them as the source does."""
    random = np.random.default_rng(1)
    rows = pa.table(
        {
            "age": pa.array(random.integers(0, 60, ROWS), mask=random.random(ROWS) < 0.05),
            "city": pa.array(["Rome", "Oslo", None]).take(random.integers(0, 3, ROWS)),
            "ill": pa.array(["flu", "gout"]).take(random.integers(0, 2, ROWS)),
        }
    )
    pq.write_table(rows, tmp_path / "in.parquet", row_group_size=700)
    reads = []
    filtered = FileTable.filtered
    monkeypatch.setattr(
        FileTable, "filtered", lambda *args: reads.append(args[2]) or filtered(*args)
    )
    monkeypatch.setattr(local, "KeptRows", lambda: KeptRows(most_bytes))
    job = pipeline.load_job(
        {"input": str(tmp_path / "in.parquet"), "output": str(tmp_path / "out"), "k": 2,
         "quasi_identifiers": ["age", "city"], "sensitive": ["ill"],
         "partitioning": {"fragments": 3, "sample": 1.0}}
    )  # fmt: skip
    run = begin(job, publish.work_path(str(job.output), "kept"))
    engine = LocalEngine()
    engine.draft(run, lambda _rows: None)
    counts = engine.count(run, True, lambda _rows: None)
    assert len(reads) == (1 if most_bytes == MOST_BYTES else 2)
    parts = [publish.read_fragment(run.work, leaf) for leaf in range(len(counts.rows))]
    assert [part.num_rows for part in parts] == counts.rows.tolist()
    assert all(part.schema.types == rows.schema.types for part in parts)
    key = [(name, "ascending") for name in rows.column_names]
    assert pa.concat_tables(parts).sort_by(key).equals(rows.sort_by(key))


def test_a_run_does_not_hold_the_rows_once_they_are_counted(tmp_path):
    """Also where the profile has the counts, so that nobody takes the rows."""
    pq.write_table(pa.table({"age": [1, 2, 3, 4]}), tmp_path / "in.parquet")
    job = pipeline.load_job(
        {"input": str(tmp_path / "in.parquet"), "output": str(tmp_path / "out"), "k": 2,
         "quasi_identifiers": ["age"]}
    )  # fmt: skip
    run = begin(job, publish.work_path(str(job.output), "kept"))
    steps(run, LocalEngine())
    assert run.kept is None
