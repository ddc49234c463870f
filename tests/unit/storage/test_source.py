from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mondrian_ops.core import limits
from mondrian_ops.core.errors import InputError
from mondrian_ops.storage import Source, Split, open_source

PEOPLE = pa.table({"age": [31, 42, None, 19], "town": ["Rome", "Oslo", None, "Oslo"]})


def read(source, **options):
    batches = list(source.batches(**options))
    return pa.Table.from_batches(batches) if batches else None


def csv_file(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_reads_a_parquet_file(tmp_path):
    path = str(tmp_path / "people.parquet")
    pq.write_table(PEOPLE, path)
    source = open_source(path)
    assert (source.rows, source.files, source.format) == (4, [path], "parquet")
    assert source.bytes == Path(path).stat().st_size
    assert read(source).equals(PEOPLE)


def test_reads_a_file_url_with_a_space_in_its_path(tmp_path):
    path = tmp_path / "all people.parquet"
    pq.write_table(PEOPLE, path)
    assert open_source(path.as_uri()).rows == 4


def test_reads_only_the_columns_asked_for_in_their_order(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    table = read(open_source(str(tmp_path)), columns=["town"])
    assert table.column_names == ["town"]
    both = read(open_source(str(tmp_path)), columns=["town", "age"])
    assert both.column_names == ["town", "age"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_filter_keeps_matching_rows_and_need_not_be_projected(tmp_path, ending):
    if ending == "parquet":
        pq.write_table(PEOPLE, tmp_path / "p.parquet", row_group_size=1)
    else:
        csv_file(tmp_path / "p.csv", "age,town\n31,Rome\n42,Oslo\n,\n19,Oslo\n")
    source = open_source(str(tmp_path))
    table = read(source, columns=["age"], filter=pc.field("town") == "Oslo")
    assert table.to_pydict() == {"age": [42, 19]}
    assert read(source, filter=pc.field("age") > 1000) is None
    assert read(source, filter=pc.field("age").is_null())["town"].to_pylist() == [None]


def test_filter_works_on_dictionary_columns(tmp_path):
    table = pa.table({"town": PEOPLE["town"].dictionary_encode(), "age": PEOPLE["age"]})
    pq.write_table(table, tmp_path / "p.parquet")
    source = open_source(str(tmp_path))
    kept = read(source, filter=pc.field("town").isin(["Oslo", "Bonn"]))
    assert kept["age"].to_pylist() == [42, 19]


def test_directory_is_read_in_the_order_of_its_files_without_the_hidden_ones(tmp_path):
    for name in ("b.parquet", "a.parquet", "sub/c.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"file": [name]}), tmp_path / name)
    for hidden in ("_SUCCESS", ".part.crc", "_temporary/x.parquet"):
        (tmp_path / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / hidden).write_text("no data")
    source = open_source(str(tmp_path))
    assert read(source)["file"].to_pylist() == ["a.parquet", "b.parquet", "sub/c.parquet"]
    assert open_source(str(tmp_path / "[ab].parquet")).rows == 2
    assert open_source(str(tmp_path / "**" / "c.parquet")).rows == 1


def test_a_file_whose_name_has_wildcard_characters_is_that_file(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "people[1].parquet")
    assert open_source(str(tmp_path / "people[1].parquet")).rows == 4


def test_a_directory_that_links_to_itself_is_read_once(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "p.parquet")
    (tmp_path / "again").symlink_to(tmp_path)
    assert open_source(str(tmp_path)).rows == 4


def test_batches_are_bounded_and_deterministic(tmp_path):
    table = pa.table({"n": list(range(10_000))})
    pq.write_table(table, tmp_path / "n.parquet", row_group_size=3000)
    source = open_source(str(tmp_path))
    sizes = [batch.num_rows for batch in source.batches(batch_rows=1000)]
    assert max(sizes) <= 1000
    assert read(source, batch_rows=777).equals(table)


def test_format_is_seen_in_the_content_when_the_name_does_not_tell(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "people")
    assert open_source(str(tmp_path / "people")).format == "parquet"
    assert open_source(csv_file(tmp_path / "text", "a,b\n1,2\n")).format == "csv"
    (tmp_path / "image").write_bytes(b"\x89PNG\x00\x00")
    with pytest.raises(InputError, match=r"image: neither Parquet nor CSV"):
        open_source(str(tmp_path / "image"))


def test_dictionary_encoding_of_one_file_is_no_difference_of_schema(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "a.parquet")
    coded = PEOPLE.set_column(1, "town", PEOPLE["town"].dictionary_encode())
    wide = coded.select(["town", "age"])
    pq.write_table(wide, tmp_path / "b.parquet")
    source = open_source(str(tmp_path))
    assert source.schema == PEOPLE.schema
    assert read(source).equals(pa.concat_tables([PEOPLE, PEOPLE]))
    assert read(source, filter=pc.field("town") == "Oslo").num_rows == 4


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (pa.table({"age": ["x"], "town": ["Rome"]}), r"b\.parquet: column 'age' is string, in a"),
        (pa.table({"age": [1]}), r"b\.parquet: column 'town' of a\.parquet is missing"),
        (PEOPLE.append_column("sex", PEOPLE["town"]), r"b\.parquet: column 'sex' is not in a"),
    ],
)
def test_mixed_schema_names_the_file(tmp_path, other, message):
    pq.write_table(PEOPLE, tmp_path / "a.parquet")
    pq.write_table(other, tmp_path / "b.parquet")
    with pytest.raises(InputError, match=message):
        open_source(str(tmp_path))


def test_mixed_formats_are_refused(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "a.parquet")
    csv_file(tmp_path / "b.csv", "age,town\n1,Rome\n")
    with pytest.raises(InputError, match=r"b\.csv: not parquet like a\.parquet"):
        open_source(str(tmp_path))


def test_hive_directories_are_refused_not_read_without_their_column(tmp_path):
    (tmp_path / "day=1").mkdir()
    pq.write_table(PEOPLE, tmp_path / "day=1" / "a.parquet")
    with pytest.raises(InputError, match="day=1: directories named column=value"):
        open_source(str(tmp_path))
    assert open_source(str(tmp_path / "day=1")).rows == 4


def test_missing_empty_and_damaged_sources_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file or directory"):
        open_source(str(tmp_path / "absent.parquet"))
    with pytest.raises(InputError, match="no file matches"):
        open_source(str(tmp_path / "*.parquet"))
    with pytest.raises(InputError, match="holds no data file"):
        open_source(str(tmp_path))
    pq.write_table(PEOPLE.slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(InputError, match="there are no rows"):
        open_source(str(tmp_path))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 is how it begins")
    with pytest.raises(InputError, match=r"bad\.parquet: cannot be read as Parquet"):
        open_source(str(tmp_path / "bad.parquet"))
    with pytest.raises(InputError, match="scheme 'ftp' is not available"):
        open_source("ftp://host/people.parquet")


def test_damage_inside_a_file_is_named_when_it_is_met(tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"n": list(range(1000))}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[4:400] = b"\xff" * 396
    path.write_bytes(content)
    source = open_source(str(path))
    with pytest.raises(InputError, match=r"p\.parquet: cannot be read"):
        read(source)


def test_unknown_column_is_refused_with_the_nearest(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "p.parquet")
    with pytest.raises(InputError, match=r"no column 'Town' \(did you mean 'town'\?\)"):
        read(open_source(str(tmp_path)), columns=["Town"])


def test_a_source_that_changes_while_read_is_refused(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "p.parquet")
    source = open_source(str(tmp_path))
    source.refuse_change()
    batches = source.batches()
    next(batches)
    pq.write_table(PEOPLE, tmp_path / "q.parquet")
    with pytest.raises(InputError, match=r"q\.parquet: changed while it was read"):
        list(batches)


def test_text_comes_in_small_dictionaries_of_the_files_to_whom_that_is_as_good(tmp_path):
    rows = 20_000
    table = pa.table(
        {
            "age": pa.array(range(rows)),
            "town": pa.array(["Rome", None, "Oslo", "Rome"]).take(pa.array(np.arange(rows) % 4)),
            "name": [f"{number * 2654435761 % 2**32:08x}" for number in range(rows)],
            "wide": pa.array(["a", "b"], pa.large_string()).take(pa.array(np.arange(rows) % 2)),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3_000)
    pq.write_table(table, tmp_path / "b.parquet")
    pq.write_table(table, tmp_path / "c.parquet", use_dictionary=False)
    source = open_source(str(tmp_path))
    batches = list(source.batches(["name", "town", "wide"], batch_rows=7_000, dictionaries=True))
    towns = [batch.column("town").type for batch in batches]
    listed = pa.dictionary(pa.int32(), pa.string())
    assert towns == sorted(towns, key=lambda kind: kind != listed)
    assert set(towns) == {listed, pa.string()}
    wide = {batch.column("wide").type for batch in batches}
    assert wide == {pa.large_string()}
    assert batches[-4].column("name").type == pa.string()  # of b: more than a small one
    whole = pa.Table.from_batches([batch.cast(batches[-1].schema) for batch in batches])
    assert whole.equals(read(source, columns=["name", "town", "wide"]))
    assert all(batch.schema == source.schema for batch in source.batches())


def test_metadata_of_the_writer_is_no_part_of_the_schema(tmp_path):
    table = PEOPLE.replace_schema_metadata({"pandas": "{}"})
    pq.write_table(table, tmp_path / "p.parquet")
    source = open_source(str(tmp_path))
    assert source.schema.metadata is None
    assert all(field.metadata is None for field in source.schema)
    assert next(source.batches()).schema.metadata is None


# splits


def test_splits_of_parquet_are_runs_of_row_groups_of_one_file(tmp_path):
    for name, first, rows in (("a", 0, 95), ("b", 95, 0), ("c", 95, 7), ("d", 102, 30)):
        numbers = pa.table({"n": pa.array(range(first, first + rows), pa.int64())})
        pq.write_table(numbers, tmp_path / f"{name}.parquet", row_group_size=10)
    source = open_source(str(tmp_path))
    splits = source.splits(25)
    assert [split.rows for split in splits] == [20, 20, 20, 20, 15, 7, 20, 10]
    assert [split.file for split in splits] == [0, 0, 0, 0, 0, 2, 3, 3]
    for split in splits:
        batches = source.batches(split=Split.from_json(json.loads(json.dumps(split.to_json()))))
        found = pa.Table.from_batches(batches)["n"].to_pylist()
        assert found == list(range(split.first_row, split.first_row + split.rows))
        few = source.batches(["n"], filter=pc.field("n") > 50, split=split)
        assert sum(batch.num_rows for batch in few) == sum(n > 50 for n in found)


def test_splits_never_cut_a_row_group_or_a_csv_file(tmp_path):
    pq.write_table(pa.table({"n": range(30)}), tmp_path / "p.parquet", row_group_size=10)
    assert len(open_source(str(tmp_path)).splits(1)) == 3
    assert len(open_source(str(tmp_path)).splits(1000)) == 1
    (tmp_path / "csv").mkdir()
    csv_file(tmp_path / "csv" / "a.csv", "n\n1\n2\n")
    csv_file(tmp_path / "csv" / "b.csv", "n\n3\n")
    source = open_source(str(tmp_path / "csv"))
    assert source.splits(1) == [Split(0, 0, 2), Split(1, 2, 1)]
    assert pa.Table.from_batches(source.batches(split=Split(1, 2, 1)))["n"].to_pylist() == [3]


def test_a_source_travels_as_json_and_is_not_surveyed_again(tmp_path, monkeypatch):
    csv_file(tmp_path / "a.csv", "n,f\n1,2\n")
    csv_file(tmp_path / "b.csv", "n,f\nx,2.5\n")
    source = open_source(str(tmp_path))
    text = json.dumps(source.to_json())
    monkeypatch.setattr("mondrian_ops.storage.csv_files.survey", None)
    there = Source.from_json(json.loads(text))
    assert there == source
    assert read(there).equals(read(source))
    assert there.splits(1) == source.splits(1)
    there.refuse_change()


def test_a_split_of_a_file_that_changed_is_refused_the_others_are_read(tmp_path):
    for name in "ab":
        pq.write_table(PEOPLE, tmp_path / f"{name}.parquet")
    source = open_source(str(tmp_path))
    pq.write_table(PEOPLE.slice(1), tmp_path / "b.parquet")
    one, two = source.splits(100)
    assert sum(batch.num_rows for batch in source.batches(split=one)) == PEOPLE.num_rows
    with pytest.raises(InputError, match=r"b\.parquet: changed while it was read"):
        list(source.batches(split=two))
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(InputError, match=r"a\.parquet: changed while it was read"):
        list(source.batches(split=one))


# CSV


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_csv_with_any_separator_and_byte_order_mark(tmp_path, mark, start):
    text = "age,town\n31,Rome\n,\n".replace(",", mark)
    source = open_source(csv_file(tmp_path / "p.csv", start + text.encode()))
    assert source.schema == pa.schema([("age", pa.int64()), ("town", pa.string())])
    assert source.rows == 2
    assert read(source).to_pydict() == {"age": [31, None], "town": ["Rome", None]}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2", " 3", "0"], pa.int64()),
        (["1", "2.5", "1e3", "-.5", "nan"], pa.float64()),
        (["true", "False"], pa.bool_()),
        (["1", "0"], pa.int64()),
        (["2024-01-31", "1999-12-01"], pa.date32()),
        (["2024-01-31", "2024-01-31 10:00", "2024-01-31T10:00:00.25"], pa.timestamp("us")),
        (["2024-01-31T10:00:00Z", "2024-01-31 10:00+02:00"], pa.timestamp("us", tz="UTC")),
        (["2024-13-31"], pa.string()),
        (["02139", "10001"], pa.string()),
        (["007", "1.5"], pa.string()),
        (["4111111111111111999999", "1.5"], pa.string()),
        (["99999999999999999999"], pa.string()),
        (["0x1F"], pa.string()),
        (["1", "x"], pa.string()),
        (["NA", "1"], pa.string()),
        ([" a"], pa.string()),
        (["", ""], pa.string()),
    ],
)
def test_csv_types_are_those_that_every_value_has(tmp_path, values, kind):
    rows = "".join(f"{value},x\n" for value in values)
    source = open_source(csv_file(tmp_path / "p.csv", "v,w\n" + rows))
    assert source.schema.field("v").type == kind
    table = read(source)
    assert table.schema == source.schema
    if kind == pa.string():
        assert table["v"].to_pylist() == [value or None for value in values]
    else:
        assert table["v"].null_count == 0


def test_csv_type_is_seen_in_later_blocks_and_files(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__LIMITS", "csv_line=200")
    csv_file(tmp_path / "a.csv", "n,f\n" + "1,2\n" * 500 + "1,2.5\n" + "1,3\n" * 500)
    csv_file(tmp_path / "b.csv", "n,f\n" + "1,2\n" * 500 + "seven,2\n")
    source = open_source(str(tmp_path))
    assert source.rows == 1502
    assert source.schema == pa.schema([("n", pa.string()), ("f", pa.float64())])
    table = read(source)
    assert table.num_rows == 1502
    assert table["f"].to_pylist()[500] == 2.5
    assert table["n"].to_pylist()[-1] == "seven"


def test_csv_quotes_line_ends_and_compression(tmp_path):
    text = 'a,b\r\n"x, ""y""\nz",1\r\n\r\n"",2\r\n'
    with gzip.open(tmp_path / "p.csv.gz", "wb") as file:
        file.write(text.encode())
    table = read(open_source(str(tmp_path / "p.csv.gz")))
    assert table.to_pydict() == {"a": ['x, "y"\nz', None], "b": [1, 2]}


@pytest.mark.parametrize("row", ["Canary", "Canary,1,2"])
def test_csv_ragged_row_names_file_and_line_never_the_value(tmp_path, row):
    path = csv_file(tmp_path / "p.csv", f'a,b\n"two\nlines",1\n{row}\nx,2\n')
    with pytest.raises(InputError, match=r"p\.csv, line 4: \d values, but the header") as caught:
        open_source(path)
    assert "Canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_csv_other_encodings_name_file_and_line(tmp_path):
    latin = csv_file(tmp_path / "latin.csv", "a,b\nx,1\nM\xfcller,2\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.csv, line 3: not UTF-8") as caught:
        open_source(latin)
    assert "ller" not in str(caught.value)
    wide = csv_file(tmp_path / "wide.txt", "a,b\nx,1\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"wide\.txt, line 1: not UTF-8"):
        open_source(wide)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,a\n1,2,3\n", "line 1: columns 1 and 3 have one name"),
        ("", "first line is empty"),
        ("a,b\n", "there are no rows"),
        ('a,b\n"never closed,1\n', r"p\.csv"),
    ],
)
def test_csv_that_is_no_table_is_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        open_source(csv_file(tmp_path / "p.csv", text))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("packed", [False, True])
def test_csv_a_line_at_the_limit_is_read(tmp_path, end, packed):
    lines = ["a,b", "x" * 998 + ",1", "y,2", "z" * 998 + ",3", "ä" * 499 + ",4"]
    text = end.join(lines).encode()
    path = tmp_path / ("p.csv.gz" if packed else "p.csv")
    path.write_bytes(gzip.compress(text) if packed else text)
    with limits.changed(csv_line=1000):
        assert read(open_source(str(path)))["b"].to_pylist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,b\nx,1\n" + "y" * 4000 + ",2\nz,3\n", 3),
        ("a,b" + "b" * 4000 + "\nx,1\n", 1),
        ("a,b\nx,1\n" + '"' + "yy\n" * 1000, 336),
        ('"a\n",' * 1000 + "b\nx,1\n", 201),
        ("a,b\n" + "x,1,2\n" + "y" * 4000 + ",2\n", 2),  # what is wrong first
    ],
)
def test_csv_a_line_or_row_beyond_the_limit_is_named(tmp_path, text, line):
    with (
        limits.changed(csv_line=1000),
        pytest.raises(InputError, match=rf"p\.csv, line {line}") as caught,
    ):
        open_source(csv_file(tmp_path / "p.csv", text))
    assert "yy" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_csv_columns_have_a_limit_and_a_long_header_none(tmp_path):
    names = [f"column with a long name {at}" for at in range(10_001)]
    row = ",".join("1" for _ in names)
    path = csv_file(tmp_path / "p.csv", ",".join(names[:-1]) + "\n" + row[:-2] + "\n")
    assert len(open_source(path).schema) == 10_000
    path = csv_file(tmp_path / "p.csv", ",".join(names) + "\n" + row + "\n")
    with pytest.raises(InputError, match="names 10,001 columns; the limit 'columns' is 10,000"):
        open_source(path)


def test_columns_of_parquet_have_a_limit(tmp_path):
    pq.write_table(pa.table({name: [1] for name in "abc"}), tmp_path / "p.parquet")
    with limits.changed(columns=3):
        assert open_source(str(tmp_path / "p.parquet")).rows == 1
    with limits.changed(columns=2), pytest.raises(InputError, match="has 3 columns; the limit"):
        open_source(str(tmp_path / "p.parquet"))


def test_values_of_csv_have_a_limit(tmp_path):
    path = csv_file(tmp_path / "p.csv", "a,b\n" + "x" * 1000 + ",1\n")
    with limits.changed(text=1000):
        assert read(open_source(path)).num_rows == 1
    with limits.changed(text=999), pytest.raises(InputError, match="'a' holds a value of 1,000 b"):
        read(open_source(path))


@pytest.mark.parametrize("ending", ["csv.gz", "parquet"])
def test_what_a_source_unpacks_to_has_a_limit(tmp_path, ending):
    name = "x" * 5000
    table = pa.table({"a": [name] * 80_000, "b": [1] * 80_000})
    path = tmp_path / f"p.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        path.write_bytes(
            gzip.compress(b"a,b\n") + gzip.compress(f"{name},1\n".encode() * 80_000, 1)
        )
    source = open_source(str(path))
    assert source.bytes < 4 << 20
    for dictionaries in (True, False):
        with (
            limits.changed(inflation=1),
            pytest.raises(
                InputError, match=r"unpack to more than 25\d MiB; .* 'inflation' is 1: look"
            ),
        ):
            for _ in source.batches(dictionaries=dictionaries):
                pass
    assert sum(each.num_rows for each in source.batches(["b"])) == 80_000
    with limits.changed(inflation=1_000_000):
        assert sum(each.num_rows for each in source.batches()) == 80_000


MIXED = [
    "2024-01-01 10:00\n2024-01-01 10:00Z\n",
    "2024-01-01T10:00:00+01:00\n\n2024-01-02\n",
    "2024-01-01 10:00:00.5+0100\n2024-01-02 10:00:00.25\n",
]


@pytest.mark.parametrize("values", MIXED)
def test_csv_times_with_a_zone_and_without_are_not_mixed(tmp_path, values):
    path = csv_file(tmp_path / "p.csv", "n,born\n" + "".join(f"1,{v}\n" for v in values.split()))
    if " " in values:
        path = csv_file(tmp_path / "p.csv", "born\n" + values)
    with pytest.raises(
        InputError, match=r"p\.csv: column 'born' holds times with a zone"
    ) as caught:
        open_source(path)
    assert "without one" in str(caught.value)
    assert "2024" not in str(caught.value)


def test_csv_times_are_not_mixed_across_files_either(tmp_path):
    csv_file(tmp_path / "a.csv", "t\n2024-01-01 10:00\n")
    csv_file(tmp_path / "b.csv", "t\n2024-01-01 10:00Z\n")
    with pytest.raises(InputError, match=r"b\.csv: column 't' holds times with a zone"):
        open_source(str(tmp_path))
    csv_file(tmp_path / "c.csv", "t\nnever\n")  # text, then
    assert open_source(str(tmp_path)).schema == pa.schema([("t", pa.string())])


@pytest.mark.parametrize(
    "values", ["2024-01-01 10:00\n2024-13-01 10:00Z\n", "2024-02-30\n2024-01-01 10:00Z\n"]
)
def test_csv_what_is_no_time_is_text(tmp_path, values):
    path = csv_file(tmp_path / "p.csv", "t\n" + values)
    assert open_source(path).schema.field("t").type == pa.string()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_may_have_an_empty_name(tmp_path, ending):
    path = tmp_path / f"p.{ending}"
    if ending == "csv":
        path.write_text("a,,b\n1,x,2\n3,y,4\n")
    else:
        pq.write_table(pa.table({"a": [1, 3], "": ["x", "y"], "b": [2, 4]}), path)
    source = open_source(str(path))
    assert read(source)[""].to_pylist() == ["x", "y"]
    kept = source.batches(["b"], filter=pc.field("") == "y")
    assert pa.Table.from_batches(kept)["b"].to_pylist() == [4]


def test_csv_headers_must_agree_but_not_in_order(tmp_path):
    csv_file(tmp_path / "a.csv", "a,b\n1,2\n")
    csv_file(tmp_path / "b.csv", "b,a\n20,10\n")
    assert read(open_source(str(tmp_path))).to_pydict() == {"a": [1, 10], "b": [2, 20]}
    csv_file(tmp_path / "c.csv", "a,c\n1,2\n")
    with pytest.raises(
        InputError, match=r"c\.csv, line 1: the name of column 2 is none of those of a\.csv"
    ):
        open_source(str(tmp_path))


def test_csv_damaged_gzip_is_refused(tmp_path):
    (tmp_path / "p.csv.gz").write_bytes(b"not gzip at all")
    with pytest.raises(InputError, match=r"p\.csv\.gz: damaged gzip"):
        open_source(str(tmp_path / "p.csv.gz"))
    whole = gzip.compress(b"a,b\n" + os.urandom(50_000).hex().encode() + b",1\n")
    (tmp_path / "p.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"p\.csv\.gz"):
        open_source(str(tmp_path / "p.csv.gz"))
