"""A source of many small files: each is opened once, and the classes are those of one."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline
from mondrian_ops.errors import InputError
from mondrian_ops.job import limits
from mondrian_ops.tables import FileTable, GatheredRows, open_table
from opens import opens_in
from tiers import in_soak

FILES, ROWS = 40, 50


@pytest.fixture(scope="module", params=["snappy", *in_soak(["zstd"])])
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
    [({}, 1), (SCATTERED, 1), (PUSHED_DOWN, 7)],
    ids=["one fragment", "scattered", "pushed down"],
)
def test_each_file_is_opened_once(folder, changes, most):
    """Its rows are copied. With pushdown no row is written: each step and fragment opens it."""
    with opens_in(folder / "many") as opens:
        many = classes(folder, "many", **changes)
    assert len(opens) == FILES
    assert set(opens.values()) <= set(range(1, most + 1)), opens
    assert many == classes(folder, "one.parquet", **changes)


def gathered_by(folder: Path, path: Path, given: str = "many", **options: object) -> FileTable:
    rows = GatheredRows(str(path), lambda names: [name for name in names if name != "zip"])
    return open_table(str(folder / given), gathered=rows, **options)


def test_the_copy_has_the_columns_that_are_needed_and_all_rows_in_order(folder, tmp_path):
    source = gathered_by(folder, tmp_path / "rows.parquet")
    written = pq.read_table(tmp_path / "rows.parquet")
    assert written.column_names == ["age", "illness"]
    assert written.equals(pq.read_table(folder / "one.parquet").select(["age", "illness"]))
    copy = FileTable.from_json(source.copy.to_json())
    assert copy.schema.names == ["age", "zip", "illness"]  # a report lists them all
    assert pa.Table.from_batches(copy.batches(["age", "illness"])).equals(written)


def test_files_of_csv_are_copied_in_the_types_that_all_of_them_have(folder, tmp_path):
    table = pq.read_table(folder / "one.parquet").set_column(
        0, "age", pa.array(["1.5", "2"] * 1000)
    )
    (tmp_path / "csv").mkdir()
    for number in range(FILES):
        part = table.slice(number * ROWS, ROWS)
        pd.DataFrame(part.to_pandas()).to_csv(tmp_path / "csv" / f"{number:03d}.csv", index=False)
    source = gathered_by(tmp_path, tmp_path / "rows.parquet", "csv", types={"age": "decimal"})
    whole = pa.Table.from_batches(source.batches(["age", "illness"]))
    assert whole["age"].type == pa.decimal128(18, 1)
    assert pa.Table.from_batches(source.copy.batches(["age", "illness"])).equals(whole)
    assert source.copy.read_as["format"] == "csv"


@pytest.mark.parametrize("changes", [{}, {"types": {"age": "text"}}], ids=["as it is", "typed"])
def test_a_file_that_changes_while_it_is_copied_is_named(folder, tmp_path, monkeypatch, changes):
    many = tmp_path / "many"
    shutil.copytree(folder / "many", many)
    add = GatheredRows.add

    def added(self, *given, **more):
        add(self, *given, **more)
        pq.write_table(pq.read_table(many / "007.parquet").slice(1), many / "007.parquet")

    monkeypatch.setattr(GatheredRows, "add", added)
    with pytest.raises(InputError, match=r"007\.parquet: changed while it was read"):
        gathered_by(tmp_path, tmp_path / "rows.parquet", **changes)
    assert not (tmp_path / "rows.parquet").exists()


def test_a_file_of_another_schema_and_a_damaged_one_are_named(folder, tmp_path):
    shutil.copytree(folder / "many", tmp_path / "many")
    whole = (tmp_path / "many" / "039.parquet").read_bytes()
    pq.write_table(pa.table({"age": [1], "zip": ["1"]}), tmp_path / "many" / "039.parquet")
    with pytest.raises(InputError, match=r"039\.parquet: column 'illness' of .* is missing"):
        gathered_by(tmp_path, tmp_path / "rows.parquet")
    (tmp_path / "many" / "039.parquet").write_bytes(whole[:4] + bytes(200) + whole[204:])
    with pytest.raises(InputError, match=r"039\.parquet: cannot be read as Parquet"):
        gathered_by(tmp_path, tmp_path / "rows.parquet")
    assert [each.name for each in tmp_path.iterdir()] == ["many"]  # nothing is left of the copy


def test_of_rows_that_were_written_before_an_error_nothing_is_left(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("mondrian_ops.tables.gathered_rows.BATCH_ROWS", 1)
    shutil.copytree(folder / "many", tmp_path / "many")
    (tmp_path / "many" / "039.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"039\.parquet"):
        gathered_by(tmp_path, tmp_path / "rows.parquet")
    assert [each.name for each in tmp_path.iterdir()] == ["many"]
    open_files = [
        str(Path(f"/proc/self/fd/{each}").resolve()) for each in os.listdir("/proc/self/fd")
    ]
    assert not [path for path in open_files if "rows.parquet" in path]


@pytest.mark.servers
def test_rows_that_unpack_to_too_much_are_not_copied(tmp_path):
    (tmp_path / "many").mkdir()
    long = pa.table({"age": pa.array(["x" * 200_000] * 40).dictionary_encode(), "b": range(40)})
    for number in range(FILES):
        pq.write_table(long, tmp_path / "many" / f"{number:03d}.parquet")
    size = sum(file.stat().st_size for file in (tmp_path / "many").iterdir())
    with limits.changed(inflation=1):
        assert limits.most_unpacked(size) < FILES * 40 * 200_000
        with pytest.raises(InputError, match="unpack to more than"):
            gathered_by(tmp_path, tmp_path / "rows.parquet")


def test_people_are_compared_by_a_column_that_is_not_copied(folder, tmp_path):
    changes = {"identifiers": ["illness"], "sensitive": [], "l": None, "overlap": "warn"}
    reports = []
    for given in ("many", "one.parquet"):
        output = str(tmp_path / given)
        reports.append(
            pipeline.run(pipeline.load_job(job(folder, given, output=output, **changes)))
        )
    assert reports[0]["overlap"]["people_by"] == ["illness"]
    assert reports[0]["overlap"]["people"] == reports[1]["overlap"]["people"] > 0
    assert reports[0]["columns"] == reports[1]["columns"]
    assert reports[0]["source"]["files"] == FILES


def test_a_filter_opens_a_file_once(folder):
    import pyarrow.compute as pc

    source = open_table(str(folder / "many"))
    with opens_in(folder / "many") as opens:
        kept = pa.Table.from_batches(source.batches(["zip"], pc.field("age") > 40, lists=False))
    assert set(opens.values()) == {1}
    whole = pq.read_table(folder / "one.parquet", filters=pc.field("age") > 40)
    assert kept["zip"].to_pylist() == whole["zip"].to_pylist()


def test_small_batches_are_joined_in_order(folder):
    source = open_table(str(folder / "many"))
    whole = pq.read_table(folder / "one.parquet")
    batches = list(source.batches(batch_rows=120, dictionaries=True))
    assert [batch.num_rows for batch in batches] == [100] * (FILES // 2)
    assert pa.Table.from_batches(batches).equals(whole.cast(batches[0].schema))
    assert sum(batch.num_rows for batch in source.batches([])) == FILES * ROWS


def test_a_file_whose_columns_nest_in_another_one_is_named(tmp_path):
    """Its footer has the same innermost columns, and nothing of what wrote it."""
    (tmp_path / "many").mkdir()
    for number in range(FILES):
        outer = "other" if number == 17 else "where"
        table = pa.table({"age": range(ROWS), outer: [{"zip": "1"}] * ROWS})
        with pq.ParquetWriter(
            tmp_path / "many" / f"{number:03d}.parquet", table.schema, store_schema=False
        ) as writer:
            writer.write_table(table)
    with pytest.raises(InputError, match=r"017\.parquet: column 'other' is not in 000\.parquet"):
        gathered_by(tmp_path, tmp_path / "rows.parquet")


def test_what_a_footer_tells_of_its_columns_is_compared(tmp_path):
    """The same columns of Parquet are text in some files, and a dictionary in others."""
    (tmp_path / "many").mkdir()
    table = pa.table({"age": range(ROWS), "illness": ["1"] * ROWS})
    for number in range(FILES):
        part = table if number < 7 else table.set_column(1, "illness", encoded(table["illness"]))
        pq.write_table(part, tmp_path / "many" / f"{number:03d}.parquet")
    source = gathered_by(tmp_path, tmp_path / "rows.parquet")
    assert source.schema.field("illness").type == pa.string()
    whole = pa.concat_tables([table] * FILES)
    assert pa.Table.from_batches(source.copy.batches(["age", "illness"])).equals(whole)


def encoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.dictionary_encode()


def test_the_footer_of_a_file_is_forgotten_with_the_file(folder, tmp_path):
    """Python's search for garbage comes seldom, and a footer is larger than the rows of a file."""
    gc.collect()
    gc.disable()
    try:
        gathered_by(folder, tmp_path / "rows.parquet")
        held = sum(isinstance(each, pq.FileMetaData) for each in gc.get_objects())
    finally:
        gc.enable()
    assert held < FILES / 4
