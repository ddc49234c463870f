from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mondrian_ops.errors import InputError
from mondrian_ops.job import limits
from mondrian_ops.tables import FileTable, Split, open_table
from source_samples import PEOPLE, csv_file, read


def test_reads_a_parquet_file(tmp_path):
    path = str(tmp_path / "people.parquet")
    pq.write_table(PEOPLE, path)
    source = open_table(path)
    assert (source.rows, source.files, source.format) == (4, [path], "parquet")
    assert source.bytes == Path(path).stat().st_size
    assert read(source).equals(PEOPLE)


def test_reads_a_file_url_with_a_space_in_its_path(tmp_path):
    path = tmp_path / "all people.parquet"
    pq.write_table(PEOPLE, path)
    assert open_table(path.as_uri()).rows == 4


def test_reads_only_the_columns_asked_for_in_their_order(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    table = read(open_table(str(tmp_path)), columns=["town"])
    assert table.column_names == ["town"]
    both = read(open_table(str(tmp_path)), columns=["town", "age"])
    assert both.column_names == ["town", "age"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_filter_keeps_matching_rows_and_need_not_be_projected(tmp_path, ending):
    if ending == "parquet":
        pq.write_table(PEOPLE, tmp_path / "p.parquet", row_group_size=1)
    else:
        csv_file(tmp_path / "p.csv", "age,town\n31,Rome\n42,Oslo\n,\n19,Oslo\n")
    source = open_table(str(tmp_path))
    table = read(source, columns=["age"], filter=pc.field("town") == "Oslo")
    assert table.to_pydict() == {"age": [42, 19]}
    assert read(source, filter=pc.field("age") > 1000) is None
    assert read(source, filter=pc.field("age").is_null())["town"].to_pylist() == [None]


def test_batches_are_bounded_and_deterministic(tmp_path):
    table = pa.table({"n": list(range(10_000))})
    pq.write_table(table, tmp_path / "n.parquet", row_group_size=3000)
    source = open_table(str(tmp_path))
    sizes = [batch.num_rows for batch in source.batches(batch_rows=1000)]
    assert max(sizes) <= 1000
    assert read(source, batch_rows=777).equals(table)


def test_mixed_formats_are_refused(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "a.parquet")
    csv_file(tmp_path / "b.csv", "age,town\n1,Rome\n")
    with pytest.raises(InputError, match=r"b\.csv: not parquet like a\.parquet"):
        open_table(str(tmp_path))


def test_missing_empty_and_damaged_sources_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file or directory"):
        open_table(str(tmp_path / "absent.parquet"))
    with pytest.raises(InputError, match="no file matches"):
        open_table(str(tmp_path / "*.parquet"))
    with pytest.raises(InputError, match="has no data files"):
        open_table(str(tmp_path))
    pq.write_table(PEOPLE.slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(InputError, match="there are no rows"):
        open_table(str(tmp_path))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 is how it begins")
    with pytest.raises(InputError, match=r"bad\.parquet: cannot be read as Parquet"):
        open_table(str(tmp_path / "bad.parquet"))
    with pytest.raises(InputError, match="scheme 'ftp' is not available"):
        open_table("ftp://host/people.parquet")


def test_unknown_column_is_refused_with_the_nearest(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "p.parquet")
    with pytest.raises(InputError, match=r"no column 'Town' \(did you mean 'town'\?\)"):
        read(open_table(str(tmp_path)), columns=["Town"])


def test_a_source_that_changes_while_read_is_refused(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "p.parquet")
    source = open_table(str(tmp_path))
    source.refuse_change()
    batches = source.batches()
    next(batches)
    pq.write_table(PEOPLE, tmp_path / "q.parquet")
    with pytest.raises(InputError, match=r"q\.parquet: changed while it was read"):
        list(batches)


# splits


def test_splits_of_parquet_are_runs_of_row_groups_of_one_file(tmp_path):
    for name, first, rows in (("a", 0, 95), ("b", 95, 0), ("c", 95, 7), ("d", 102, 30)):
        numbers = pa.table({"n": pa.array(range(first, first + rows), pa.int64())})
        pq.write_table(numbers, tmp_path / f"{name}.parquet", row_group_size=10)
    source = open_table(str(tmp_path))
    splits = source.splits(25)
    assert [split.rows for split in splits] == [20, 20, 20, 20, 15, 7, 20, 10]
    assert [split.part for split in splits] == [0, 0, 0, 0, 0, 2, 3, 3]
    for split in splits:
        batches = source.batches(split=Split.from_json(json.loads(json.dumps(split.to_json()))))
        found = pa.Table.from_batches(batches)["n"].to_pylist()
        assert found == list(range(split.first_row, split.first_row + split.rows))
        few = source.batches(["n"], filter=pc.field("n") > 50, split=split)
        assert sum(batch.num_rows for batch in few) == sum(n > 50 for n in found)


def test_splits_never_cut_a_row_group_or_a_csv_file(tmp_path):
    pq.write_table(pa.table({"n": range(30)}), tmp_path / "p.parquet", row_group_size=10)
    assert len(open_table(str(tmp_path)).splits(1)) == 3
    assert len(open_table(str(tmp_path)).splits(1000)) == 1
    (tmp_path / "csv").mkdir()
    csv_file(tmp_path / "csv" / "a.csv", "n\n1\n2\n")
    csv_file(tmp_path / "csv" / "b.csv", "n\n3\n")
    source = open_table(str(tmp_path / "csv"))
    assert source.splits(1) == [Split(0, 0, 2), Split(1, 2, 1)]
    assert pa.Table.from_batches(source.batches(split=Split(1, 2, 1)))["n"].to_pylist() == [3]


def test_a_source_travels_as_json_and_is_not_inspected_again(tmp_path, monkeypatch):
    csv_file(tmp_path / "a.csv", "n,f\n1,2\n")
    csv_file(tmp_path / "b.csv", "n,f\nx,2.5\n")
    source = open_table(str(tmp_path))
    text = json.dumps(source.to_json())
    monkeypatch.setattr("mondrian_ops.tables.csv_files.inspect", None)
    there = FileTable.from_json(json.loads(text))
    assert there == source
    assert read(there).equals(read(source))
    assert there.splits(1) == source.splits(1)
    there.refuse_change()


def test_a_split_of_a_file_that_changed_is_refused_the_others_are_read(tmp_path):
    for name in "ab":
        pq.write_table(PEOPLE, tmp_path / f"{name}.parquet")
    source = open_table(str(tmp_path))
    pq.write_table(PEOPLE.slice(1), tmp_path / "b.parquet")
    one, two = source.splits(100)
    assert sum(batch.num_rows for batch in source.batches(split=one)) == PEOPLE.num_rows
    with pytest.raises(InputError, match=r"b\.parquet: changed while it was read"):
        list(source.batches(split=two))
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(InputError, match=r"a\.parquet: changed while it was read"):
        list(source.batches(split=one))


@pytest.mark.parametrize("ending", ["csv.gz", "parquet"])
def test_what_a_source_unpacks_to_has_a_limit(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(limits, "ALWAYS_UNPACKED", 8 << 20)
    name = "x" * 5000
    rows = 2000  # of 9.5 MiB
    table = pa.table({"a": [name] * rows, "b": [1] * rows})
    path = tmp_path / f"p.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        path.write_bytes(gzip.compress(b"a,b\n") + gzip.compress(f"{name},1\n".encode() * rows, 1))
    source = open_table(str(path))
    assert source.bytes < 1 << 19
    for dictionaries in (True, False):
        with (
            limits.changed(inflation=1),
            pytest.raises(
                InputError, match=r"unpack to more than 8,\d{3} KiB; .* 'inflation' is 1: check"
            ),
        ):
            for _ in source.batches(dictionaries=dictionaries):
                pass
    assert sum(each.num_rows for each in source.batches(["b"])) == rows
    with limits.changed(inflation=1_000_000):
        assert sum(each.num_rows for each in source.batches()) == rows


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_may_have_an_empty_name(tmp_path, ending):
    path = tmp_path / f"p.{ending}"
    if ending == "csv":
        path.write_text("a,,b\n1,x,2\n3,y,4\n")
    else:
        pq.write_table(pa.table({"a": [1, 3], "": ["x", "y"], "b": [2, 4]}), path)
    source = open_table(str(path))
    assert read(source)[""].to_pylist() == ["x", "y"]
    kept = source.batches(["b"], filter=pc.field("") == "y")
    assert pa.Table.from_batches(kept)["b"].to_pylist() == [4]
