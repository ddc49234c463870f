"""A source of many small files: each is opened once a pass, and the classes are those of one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline
from mondrian_ops.storage import open_source
from opens import opens_in

FILES, ROWS = 40, 50


@pytest.fixture(scope="module", params=["snappy", "zstd"])
def folder(tmp_path_factory, request) -> Path:
    """``many``, a folder of small files, and ``one.parquet`` with the same rows."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "many").mkdir()
    rng = np.random.default_rng(0)
    rows = FILES * ROWS
    table = pa.table(
        {
            "age": rng.integers(0, 90, rows),
            "zip": pa.array(rng.integers(100, 999, rows).astype(str)),
            "illness": pa.array(rng.integers(0, 9, rows).astype(str)),
        }
    )
    pq.write_table(table, folder / "one.parquet")
    for number in range(FILES):
        part = table.slice(number * ROWS, ROWS)
        pq.write_table(part, folder / "many" / f"{number:03d}.parquet", compression=request.param)
    return folder


def job(folder: Path, given: str, **changes: object) -> dict[str, object]:
    return {
        "input": str(folder / given),
        "output": str(folder / "out"),
        "k": 5,
        "l": 2,
        "quasi_identifiers": ["age", "zip=set"],
        "sensitive": ["illness"],
        "cut": "median",
        "replace": "any",
    } | changes


def classes(folder: Path, given: str, **changes: object) -> list[object]:
    pipeline.run(pipeline.load_job(job(folder, given, **changes)))
    rows = pd.read_parquet(folder / "out")
    return sorted(rows.itertuples(index=False, name=None))


SCATTERED = {"retrieval": "scatter", "partitioning": {"fragments": 3}}
PUSHED_DOWN = {"retrieval": "pushdown", "partitioning": {"fragments": 3}}


@pytest.mark.parametrize(
    ("changes", "most"),
    [({}, 3), (SCATTERED, 3), (PUSHED_DOWN, 7)],
    ids=["one fragment", "scattered", "pushed down"],
)
def test_each_file_is_opened_once_a_pass(folder, changes, most):
    """To look at it, to profile it, and to fetch or count it; pushdown fetches by fragment."""
    with opens_in(folder / "many") as opens:
        many = classes(folder, "many", **changes)
    assert len(opens) == FILES
    assert set(opens.values()) <= set(range(1, most + 1)), opens
    assert many == classes(folder, "one.parquet", **changes)


def test_a_filter_opens_a_file_once(folder):
    import pyarrow.compute as pc

    source = open_source(str(folder / "many"))
    with opens_in(folder / "many") as opens:
        kept = pa.Table.from_batches(source.batches(["zip"], pc.field("age") > 40, lists=False))
    assert set(opens.values()) == {1}
    whole = pq.read_table(folder / "one.parquet", filters=pc.field("age") > 40)
    assert kept["zip"].to_pylist() == whole["zip"].to_pylist()


def test_small_batches_are_joined_in_order(folder):
    source = open_source(str(folder / "many"))
    whole = pq.read_table(folder / "one.parquet")
    batches = list(source.batches(batch_rows=120, dictionaries=True))
    assert [batch.num_rows for batch in batches] == [100] * (FILES // 2)
    assert pa.Table.from_batches(batches).equals(whole.cast(batches[0].schema))
    assert sum(batch.num_rows for batch in source.batches([])) == FILES * ROWS
