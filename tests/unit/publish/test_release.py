from __future__ import annotations

import datetime as dt
import json
from base64 import b64decode
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from mondrian_ops.data.column_types import declared_fields
from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.publish import check_output, publish, release_files, write_part
from mondrian_ops.stores import local
from object_store import ObjectStore, connect
from staged_releases import names, stage, version_of

CANARY = "Canary Q. Value"


# writing


def test_a_part_holds_the_rows_and_nothing_else(tmp_path):
    path = tmp_path / "part-00000.parquet"
    words = pa.DictionaryArray.from_arrays(
        pa.array([2, 0, None, 2], pa.int8()), pa.array(["[1, 2]", CANARY, "*"])
    )
    table = pa.table({"age": words, "n": pa.array([1, 2, 3, None], pa.int8())})
    write_part(str(path), table.replace_schema_metadata({"secret": CANARY}))
    assert names(tmp_path) == [path.name]
    metadata = pq.read_metadata(path)
    assert [*metadata.metadata] == [b"ARROW:schema"]
    (written,) = metadata.metadata.values()
    assert CANARY.encode() not in b64decode(written)
    plain = pa.schema([("age", pa.string()), ("n", pa.int8())])
    assert pq.read_schema(path).equals(plain, check_metadata=True)
    assert metadata.schema.to_arrow_schema().field("n").type == pa.int8()
    for column in range(metadata.num_columns):
        assert not metadata.row_group(0).column(column).is_stats_set
    with pq.ParquetFile(path, read_dictionary=["age"]) as file:
        (chunk,) = file.read()["age"].chunks
    assert chunk.dictionary.to_pylist() == ["[1, 2]", "*"]
    assert pq.read_table(path).to_pydict() == {
        "age": ["*", "[1, 2]", None, "*"],
        "n": [1, 2, 3, None],
    }


def test_a_part_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    named, sync = [], local.sync

    def noted(path):
        named.append(list(tmp_path.glob("part-*")))
        sync(path)

    monkeypatch.setattr(local, "sync", noted)
    write_part(str(tmp_path / "part-00000.parquet"), pa.table({"a": [1]}))
    assert named == [[]]


@pytest.mark.parametrize("ordered", [False, True])
def test_unused_dictionary_entries_do_not_reach_the_file(tmp_path, monkeypatch, ordered):
    path = tmp_path / "part-00000.parquet"
    kind = pa.dictionary(pa.uint16(), pa.string(), ordered)
    one = pa.DictionaryArray.from_arrays(
        pa.array([1], pa.uint16()), pa.array([CANARY, "a"]), ordered=ordered
    )
    two = pa.DictionaryArray.from_arrays(
        pa.array([None], pa.uint16()), pa.array([CANARY]), ordered=ordered
    )
    table = pa.table({"t": pa.chunked_array([one, two], kind)})
    real = pq.write_table
    monkeypatch.setattr(
        pq, "write_table", lambda t, f, **options: real(t, f, **options | {"compression": "none"})
    )
    write_part(str(path), table)
    assert CANARY.encode() not in path.read_bytes()
    assert pq.read_table(path)["t"].to_pylist() == ["a", None]


def test_a_part_has_the_types_of_its_columns(tmp_path):
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 6)
    zoned = pa.timestamp("us", "Europe/Berlin")
    table = pa.table(
        {
            "when": pa.array([moment], pa.timestamp("us")),
            "utc": pa.array([moment], pa.timestamp("us", tz="UTC")),
            "zoned": pa.array([moment], zoned),
            "zones": pa.array([[moment]], pa.list_(pa.field("element", zoned))),
            "span": pa.array([5], pa.duration("ms")),
            "day": pa.array([dt.date(2024, 1, 2)]),
            "money": pa.array([Decimal("1.20")]),
            "yes": pa.array([True]),
            "small": pa.array([1], pa.uint8()),
            "ratio": pa.array([0.5], pa.float32()),
            "text": pa.array(["x"]),
            "wide": pa.array(["x"], pa.large_string()),
        }
    )
    write_part(str(tmp_path / "part-0.parquet"), table)
    read = pq.read_table(tmp_path / "part-0.parquet")
    assert read.equals(table)
    assert read.schema.equals(table.schema, check_metadata=True)
    (file,) = release_files(str(tmp_path))
    plain = pa.Table.from_batches(file.batches()).drop_columns(["text", "wide"])
    assert plain.equals(table.drop_columns(["text", "wide"]))


def test_a_part_declares_types_of_the_source(tmp_path):
    frame = pd.DataFrame({"month": pd.period_range("2024-01", periods=2, freq="M")})
    told = {"ARROW:extension:name": "pandas.period", "secret": CANARY}
    told["ARROW:extension:metadata"] = json.dumps({"freq": "M", "secret": CANARY})
    source = pa.schema(
        [
            pa.field("id", pa.uuid(), metadata={"secret": CANARY}),
            pa.field("note", pa.json_()),
            pa.field("price", pa.decimal32(5, 2)),
            pa.field("month", pa.int64(), metadata=told),
        ]
    )
    months = pa.Table.from_pandas(frame)["month"].combine_chunks().storage
    rows = pa.table(
        {
            "id": pa.array([b"0" * 16, None], pa.binary(16)),
            "note": ["{}", None],
            "price": pa.array([Decimal("1.20"), None], pa.decimal128(5, 2)),
            "month": months,
        }
    )
    path = tmp_path / "part-0.parquet"
    write_part(str(path), rows, declared=declared_fields(source))
    kinds = {pa.uuid(), pa.json_(), pa.decimal32(5, 2)}
    assert {*pq.read_schema(path).types[:3]} == kinds
    logical = [pq.read_metadata(path).schema.column(at).logical_type.type for at in range(2)]
    assert logical == ["UUID", "JSON"]  # for readers that know no Arrow
    pd.testing.assert_series_equal(pd.read_parquet(path)["month"], frame["month"])
    (written,) = pq.read_metadata(path).metadata.values()
    assert CANARY.encode() not in b64decode(written)
    (file,) = release_files(str(tmp_path))
    plain = pa.Table.from_batches(file.batches())
    assert plain.to_pydict() == rows.to_pydict()


def test_a_required_column_has_no_missing_value(tmp_path):
    words = pa.chunked_array([["a", "b", "a"]]).dictionary_encode()
    ids = pa.array([b"0" * 16] * 3, pa.binary(16))
    table = pa.table({"word": words, "n": [1, None, 3], "id": ids})
    declared = declared_fields(pa.schema([("id", pa.uuid())]))
    path, read = str(tmp_path / "part-0.parquet"), []

    def check(columns):
        read.extend(columns(["word", "n"]))

    write_part(path, table, declared=declared, check=check, required=["word", "id", "other"])
    assert [batch.column(0).to_pylist() for batch in read] == [["a", "b", "a"]]
    schema = pq.read_schema(path)
    assert [field.nullable for field in schema] == [False, True, False]
    assert schema.types == [pa.string(), pa.int64(), pa.uuid()]
    levels = [pq.read_metadata(path).schema.column(at).max_definition_level for at in range(3)]
    assert levels == [0, 1, 0]
    (file,) = release_files(str(tmp_path))
    assert pa.Table.from_batches(file.batches()).to_pydict() == table.to_pydict()
    with pytest.raises(InputError, match=r"column 'n' has missing values, .* run again"):
        write_part(str(tmp_path / "part-1.parquet"), table, required=["n"])
    assert names(tmp_path) == ["part-0.parquet"]


def test_a_part_of_a_vanished_run_is_a_storage_error(tmp_path):
    with pytest.raises(StorageError, match="run again from the partition task"):
        write_part(str(tmp_path / "gone" / "part-0.parquet"), pa.table({"n": [1]}))


# reading


def test_reads_a_release_part_by_part_with_text_as_dictionaries(tmp_path):
    for name in ("part-00001.parquet", "part-00000.parquet"):
        write_part(str(tmp_path / name), pa.table({"name": [name], "n": [1]}))
    (tmp_path / "_report.json").write_text("{}")
    read = [
        (file.name, pa.Table.from_batches(file.batches())) for file in release_files(str(tmp_path))
    ]
    assert [name for name, _ in read] == ["part-00000.parquet", "part-00001.parquet"]
    assert all(pa.types.is_dictionary(table.schema.field("name").type) for _, table in read)


def test_the_footer_of_a_part_is_read_once(monkeypatch):
    store = ObjectStore()
    connect(store, monkeypatch)
    write_part("s3://bucket/out/part-0.parquet", pa.table({"name": ["a"], "n": [1]}))
    store.requests.clear()
    (file,) = release_files("s3://bucket/out/part-0.parquet")
    assert file.columns == ["name", "n"]
    for columns in (None, ["n"]):
        assert sum(batch.num_rows for batch in file.batches(columns)) == 1
    assert file.columns == ["name", "n"]
    assert store.requests["get"] == 1 + 2  # the footer, and the rows twice


def test_a_part_without_rows_has_its_columns(tmp_path):
    write_part(str(tmp_path / "part-0.parquet"), pa.table({"name": pa.array([], pa.string())}))
    (file,) = release_files(str(tmp_path))
    (batch,) = file.batches()
    assert (batch.num_rows, batch.schema.names) == (0, ["name"])


def test_reads_a_release_of_others_in_csv(tmp_path):
    (tmp_path / "arx.csv").write_text("age;zip\n1;10*\n")
    (file,) = release_files(str(tmp_path / "arx.csv"))
    assert (file.name, file.columns) == ("arx.csv", ["age", "zip"])
    assert pa.Table.from_batches(file.batches()).to_pydict() == {"age": [1], "zip": ["10*"]}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_only_the_columns_that_are_asked_for_are_read(tmp_path, suffix):
    table = pa.table({"age": ["[1, 2]"], "note": ["long"], "zip": ["10*"]})
    if suffix == "csv":
        pa_csv.write_csv(table, tmp_path / "part.csv")
    else:
        write_part(str(tmp_path / "part-0.parquet"), table)
    (file,) = release_files(str(tmp_path))
    (batch,) = file.batches({"zip", "age", "identifier"})
    assert batch.schema.names == ["age", "zip"]
    assert file.columns == ["age", "note", "zip"]


def test_an_unreadable_release_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        list(release_files(str(tmp_path / "none")))
    (tmp_path / "part-0.parquet").write_bytes(b"x")
    with pytest.raises(InputError, match=r"part-0\.parquet"):
        [list(file.batches()) for file in release_files(str(tmp_path))]


# what may be an output


def test_a_release_that_a_link_in_the_input_leads_to_is_refused(tmp_path):
    """The next run would read it with the input."""
    (tmp_path / "in").mkdir()
    (tmp_path / "place").mkdir()
    (tmp_path / "in" / "link").symlink_to("../place")
    with pytest.raises(StorageError, match="lies inside the input"):
        check_output(str(tmp_path / "in"), str(tmp_path / "place" / "out"))
    check_output(str(tmp_path / "in"), str(tmp_path / "elsewhere"))


def test_a_new_an_empty_and_a_release_directory_are_fine(tmp_path):
    source = str(tmp_path / "in" / "people.parquet")
    check_output(source, str(tmp_path / "deep" / "er" / "out"))
    (tmp_path / "out").mkdir()
    check_output(source, str(tmp_path / "out"))
    publish(str(stage(tmp_path / "staging", 1)), str(tmp_path / "out"))
    check_output(source, str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("in", "in"),
        ("in", "in/out"),
        ("in/p.parquet", "in"),
        ("in/*.parquet", "in"),
        ("base/**/*.parquet", "base/out"),
        ("base/*", "base/out"),
        ("base/*/*.parquet", "base/out"),
        ("base/*", "base/x/out"),
        ("in", "link/out"),
    ],
)
def test_output_and_input_may_not_overlap(tmp_path, source, output):
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "in")
    with pytest.raises(StorageError, match=r"^output: .*(lies|replaced).*choose an `output`"):
        check_output(str(tmp_path / source), str(tmp_path / output))


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("in/p.parquet", "in/out"),
        ("in/*.parquet", "in/out"),
        ("in/2024-*/*.parquet", "in/out"),
        ("in", "in-out"),
    ],
)
def test_output_beside_the_input_is_fine(tmp_path, source, output):
    (tmp_path / "in").mkdir()
    check_output(str(tmp_path / source), str(tmp_path / output))


def test_an_occupied_output_is_refused_and_left_as_it_is(tmp_path):
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "thesis.txt").write_text("ten years of work")
    (tmp_path / "file").write_text("")
    spark = tmp_path / "spark"
    spark.mkdir()
    (spark / "_SUCCESS").write_text("")
    (spark / "part-0.parquet").write_text("")
    for name in ("taken", "file", "spark"):
        output = str(tmp_path / name)
        for act in (
            lambda o=output: check_output("in.parquet", o),
            lambda o=output, n=name: publish(str(stage(tmp_path / f"s-{n}", 1)), o),
        ):
            with pytest.raises(StorageError, match="not a release"):
                act()
    assert (taken / "thesis.txt").read_text() == "ten years of work"


def test_a_stranger_s_file_in_a_release_is_not_removed_with_it(tmp_path):
    output = tmp_path / "out"
    publish(str(stage(tmp_path / "staging", 1)), str(output))
    (output / "notes.txt").write_text("keep me")
    with pytest.raises(StorageError, match=r"notes\.txt is not part of a release"):
        publish(str(stage(tmp_path / "staging", 2)), str(output))
    assert (output / "notes.txt").read_text() == "keep me"
    (output / "notes.txt").unlink()
    assert version_of(output) == 1


def test_a_parent_that_is_a_file_or_read_only_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="not a directory this process may write to"):
        check_output("in.parquet", str(tmp_path / "file" / "out"))
    with pytest.raises(StorageError, match="root of the file system"):
        check_output("in.parquet", "/")


# publication


def test_a_part_left_unfinished_by_a_killed_attempt_is_not_published(tmp_path):
    staging = stage(tmp_path / "staging", 1)
    (staging / ".part-00000.parquet.0123.tmp").write_text("half")
    publish(str(staging), str(tmp_path / "out"))
    assert all(name.startswith(("part-", "_")) for name in names(tmp_path / "out"))
    assert version_of(tmp_path / "out") == 1


def test_a_report_nested_without_end_is_none_of_ours(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "_SUCCESS").touch()
    (tmp_path / "out" / "_report.json").write_text("[" * 50_000)
    with pytest.raises(StorageError, match="holds something that is not a release; choose another"):
        check_output("in", str(tmp_path / "out"))
