"""CSV: its types, its lines, and what is no table."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import tarfile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc
import pytest

from mondrian_ops.errors import InputError
from mondrian_ops.job import limits
from mondrian_ops.job.source_options import Csv
from mondrian_ops.tables import FileTable, csv_files, open_table
from source_samples import csv_file, read


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_csv_with_any_separator_and_byte_order_mark(tmp_path, mark, start):
    text = "age,town\n31,Rome\n,\n".replace(",", mark)
    source = open_table(csv_file(tmp_path / "p.csv", start + text.encode()))
    assert source.schema == pa.schema([("age", pa.int64()), ("town", pa.string())])
    assert source.rows == 2
    assert read(source).to_pydict() == {"age": [31, None], "town": ["Rome", None]}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2", "3", "0"], pa.int64()),
        (["1", "2.5", "-0.5"], pa.float64()),
        (["1.0", "2.25", "-0.5"], pa.float64()),
        (["12.50", "3.00", "-0.25"], pa.decimal128(18, 2)),
        (["true", "false"], pa.bool_()),
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
        (["+491701234500"], pa.string()),
        (["1E5", "2"], pa.string()),
        (["1e999"], pa.string()),
        (["250.10", "250.1"], pa.string()),
        (["250.0", "401.9", "250"], pa.string()),
        (["1.", "2"], pa.string()),
        ([".5", "2"], pa.string()),
        (["-0", "2"], pa.string()),
        (["-0.00", "2.50"], pa.string()),
        (["nan", "2.5"], pa.string()),
        (["inf"], pa.string()),
        (["9007199254740993.5"], pa.decimal128(18, 1)),
        (["9007199254740993.5", "0.25"], pa.string()),
        (["0.30000000000000001"], pa.decimal128(18, 17)),
        ([" 3", "4"], pa.string()),
        (["61\u00a0", "4"], pa.string()),
        (["61\x0c", "4"], pa.string()),
        (["true", "False"], pa.string()),
        (["2024-01-31 "], pa.string()),
        ([" a"], pa.string()),
        (["", ""], pa.string()),
    ],
)
def test_csv_types_are_those_that_every_value_has(tmp_path, values, kind):
    rows = "".join(f"{value},x\n" for value in values)
    source = open_table(csv_file(tmp_path / "p.csv", "v,w\n" + rows))
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
    source = open_table(str(tmp_path))
    assert source.rows == 1502
    assert source.schema == pa.schema([("n", pa.string()), ("f", pa.float64())])
    table = read(source)
    assert table.num_rows == 1502
    assert table["f"].to_pylist()[500] == 2.5
    assert table["n"].to_pylist()[-1] == "seven"


@pytest.mark.parametrize("name", ["p.csv.gz", "p.CSV.GZ"])
def test_csv_quotes_line_ends_and_compression(tmp_path, name):
    text = 'a,b\r\n"x, ""y""\nz",1\r\n\r\n"",2\r\n'
    with gzip.open(tmp_path / name, "wb") as file:
        file.write(text.encode())
    table = read(open_table(str(tmp_path / name)))
    assert table.to_pydict() == {"a": ['x, "y"\nz', None], "b": [1, 2]}


def test_csv_quoted_line_ends_wherever_a_block_ends(tmp_path):
    notes = [f"{'x' * (n % 7)}\n{n}" for n in range(200)]
    rows = "".join(f'{n},"{note}"\n' for n, note in enumerate(notes))
    path = csv_file(tmp_path / "p.csv", f"n,note\n{rows}")
    with limits.changed(csv_line=100):  # which is a block, too
        assert read(open_table(path))["note"].to_pylist() == notes


@pytest.mark.parametrize("row", ["Canary", "Canary,1,2"])
def test_csv_ragged_row_names_file_and_line_never_the_value(tmp_path, row):
    path = csv_file(tmp_path / "p.csv", f'a,b\n"two\nlines",1\n{row}\nx,2\n')
    with pytest.raises(InputError, match=r"p\.csv, line 4: \d values, but the header") as caught:
        open_table(path)
    assert "Canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_csv_other_encodings_name_file_and_line(tmp_path):
    latin = csv_file(tmp_path / "latin.csv", "a,b\nx,1\nM\xfcller,2\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.csv, line 3: not UTF-8") as caught:
        open_table(latin)
    assert "ller" not in str(caught.value)
    wide = csv_file(tmp_path / "wide.csv", "a,b\nx,1\n".encode("utf-16-le"))
    with pytest.raises(InputError, match=r"wide\.csv, line 1: not UTF-8 .* csv.encoding: utf-16"):
        open_table(wide)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,a\n1,2,3\n", "line 1: columns 1 and 3 have the same name"),
        ("", "first line is empty"),
        ("a,b\n", "there are no rows"),
        ('a,b\n"never closed,1\n', r"p\.csv, line 2: the row has a quote"),
        ('"a,b\nnever closed,1\n', r"p\.csv, line 1: the row has a quote"),
    ],
)
def test_csv_that_is_no_table_is_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        open_table(csv_file(tmp_path / "p.csv", text))


@pytest.mark.parametrize("named", [["a"], ["b"]])
@pytest.mark.parametrize("long", ["", "y" * 200_000])
@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ('1,"x\n2,y\n3,z\n', 2),
        ('0,"x\n"\n1,"x\n2,y\n3,z', 4),
        ('1,"x\n2,""y""\n', 2),
    ],
)
def test_csv_a_quote_that_is_never_closed_hides_no_rows(tmp_path, named, long, rows, line):
    path = csv_file(tmp_path / "p.csv", "a,b\n" + rows.replace("x", "x" + long))
    with pytest.raises(InputError, match=rf"p\.csv, line {line}: the row has a quote"):
        open_table(path, named, others=False)


def test_csv_the_last_value_is_that_of_each_file(tmp_path):
    csv_file(tmp_path / "1.csv", "a,b\n1,x\n")
    csv_file(tmp_path / "2.csv", 'b,a\nx,1\nx,"2\nx,3\n')
    with pytest.raises(InputError, match=r"2\.csv, line 3: the row has a quote"):
        open_table(str(tmp_path), ["b"], others=False)


@pytest.mark.parametrize("rows", ['1,"x\n2,y"\n', '1,"x\n"', '1,"x\n""2"""\r\n\r\n', '1,"""\n"""'])
def test_csv_a_last_value_of_several_lines_is_read(tmp_path, rows):
    assert open_table(csv_file(tmp_path / "p.csv", "a,b\n" + rows)).rows == 1


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("packed", [False, True])
def test_csv_a_line_at_the_limit_is_read(tmp_path, end, packed):
    lines = ["a,b", "x" * 998 + ",1", "y,2", "z" * 998 + ",3", "ä" * 499 + ",4"]
    text = end.join(lines).encode()
    path = tmp_path / ("p.csv.gz" if packed else "p.csv")
    path.write_bytes(gzip.compress(text) if packed else text)
    with limits.changed(csv_line=1000):
        assert read(open_table(str(path)))["b"].to_pylist() == [1, 2, 3, 4]


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
        open_table(csv_file(tmp_path / "p.csv", text))
    assert "yy" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_csv_columns_have_a_limit_and_a_long_header_none(tmp_path):
    names = [f"column with a {'very ' * 25}long name {at}" for at in range(2001)]
    row = ",".join("1" for _ in names)
    path = csv_file(tmp_path / "p.csv", ",".join(names[:-1]) + "\n" + row[:-2] + "\n")
    with limits.changed(columns=2000):
        assert len(open_table(path).schema) == 2000
    path = csv_file(tmp_path / "p.csv", ",".join(names) + "\n" + row + "\n")
    with (
        limits.changed(columns=2000),
        pytest.raises(InputError, match="names 2,001 columns; the limit 'columns' is 2,000"),
    ):
        open_table(path)


def test_values_of_csv_have_a_limit(tmp_path):
    path = csv_file(tmp_path / "p.csv", "a,b\n" + "x" * 1000 + ",1\n")
    with limits.changed(text=1000):
        assert read(open_table(path)).num_rows == 1
    with (
        limits.changed(text=999),
        pytest.raises(InputError, match="'a' holds a value of 1,000 b"),
    ):
        read(open_table(path))


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
        open_table(path)
    assert "without one (a date alone has none)" in str(caught.value)
    assert "2024" not in str(caught.value)


def test_csv_times_are_not_mixed_across_files_either(tmp_path):
    csv_file(tmp_path / "a.csv", "t\n2024-01-01 10:00\n")
    csv_file(tmp_path / "b.csv", "t\n2024-01-01 10:00Z\n")
    with pytest.raises(InputError, match=r"b\.csv: column 't' holds times with a zone"):
        open_table(str(tmp_path))
    csv_file(tmp_path / "c.csv", "t\nnever\n")  # text, then
    assert open_table(str(tmp_path)).schema == pa.schema([("t", pa.string())])


@pytest.mark.parametrize(
    "values", ["2024-01-01 10:00\n2024-13-01 10:00Z\n", "2024-02-30\n2024-01-01 10:00Z\n"]
)
def test_csv_what_is_no_time_is_text(tmp_path, values):
    path = csv_file(tmp_path / "p.csv", "t\n" + values)
    assert open_table(path).schema.field("t").type == pa.string()


def test_csv_headers_must_agree_but_not_in_order(tmp_path):
    csv_file(tmp_path / "a.csv", "a,b\n1,2\n")
    csv_file(tmp_path / "b.csv", "b,a\n20,10\n")
    assert read(open_table(str(tmp_path))).to_pydict() == {"a": [1, 10], "b": [2, 20]}
    csv_file(tmp_path / "c.csv", "a,c\n1,2\n")
    with pytest.raises(InputError, match=r"c\.csv, line 1: column 2 has a name that a\.csv lacks"):
        open_table(str(tmp_path))


def test_csv_damaged_gzip_is_refused(tmp_path):
    (tmp_path / "p.csv.gz").write_bytes(b"not gzip at all")
    with pytest.raises(InputError, match=r"p\.csv\.gz: damaged gzip"):
        open_table(str(tmp_path / "p.csv.gz"))
    whole = gzip.compress(b"a,b\n" + os.urandom(50_000).hex().encode() + b",1\n")
    (tmp_path / "p.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"p\.csv\.gz"):
        open_table(str(tmp_path / "p.csv.gz"))


def test_only_the_columns_that_matter_are_read(tmp_path, monkeypatch):
    path = csv_file(tmp_path / "p.csv", b"age,note,zip\n31,long,100\n5,long,200\n")
    read_columns = []
    original = csv_files.batches

    def reading(path, dialect, asked, schema, columns):
        read_columns.append(columns)
        return original(path, dialect, asked, schema, columns)

    monkeypatch.setattr(csv_files, "batches", reading)
    source = open_table(path, ["zip", "age"], others=False)
    assert source.schema.names == ["age", "note", "zip"]
    (batch,) = source.batches(["zip"], pc.field("age") > 6)
    assert batch.to_pydict() == {"zip": [100]}
    assert read_columns == [["age", "zip"], ["zip", "age"]]


def described(source):
    """Its rows, and separator and encoding of its first file."""
    dialect = source.dialects[0]
    return read(source).to_pydict(), dialect.separator, dialect.encoding


ROWS = {"name": ["Müller", None, "Ñu"], "n": [1, 2, 3]}


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_csv_separator_and_encoding_are_found_where_they_are_certain(tmp_path, mark, encoding):
    text = "name;n\nMüller;1\n;2\nÑu;3\n".replace(";", mark)
    source = open_table(csv_file(tmp_path / "p.csv", text.encode(encoding)))
    assert described(source) == (ROWS, mark, encoding.removesuffix("-sig"))


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("latin-1", "iso8859-1"), ("cp1252", "cp1252"), ("utf-16-le", "utf-16-le")],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_csv_other_encodings_are_named(tmp_path, encoding, name, ending):
    text = "name;n\nMüller;1\n;2\nÑu;3\n".encode(encoding)
    path = csv_file(tmp_path / f"p.{ending}", gzip.compress(text) if "gz" in ending else text)
    assert described(open_table(path, csv=Csv(encoding=encoding))) == (ROWS, ";", name)


@pytest.mark.parametrize(
    ("asked", "text", "message"),
    [
        (Csv(), "a,b;c\n1,2;3\n", "separator is not certain, for ',' and ';' both .*csv.separator"),
        (Csv(encoding="ascii"), "a,b\n1,2\nü,3\n", r"p\.csv, line 3: not text of .* ascii"),
        (Csv(encoding="utf-16"), b"\xff\xfea\0,\0b\0\n\0\x00\xd8,\0", r"not text of the encoding"),
    ],
)  # fmt: skip
def test_csv_what_is_not_certain_or_wrong_is_refused(tmp_path, asked, text, message):
    with pytest.raises(InputError, match=message):
        open_table(csv_file(tmp_path / "p.csv", text), csv=asked)


@pytest.mark.parametrize("marked", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("asked", ["latin-1", "cp1252", "ascii", "utf-16-be"])
def test_csv_a_byte_order_mark_of_another_encoding_is_refused(tmp_path, marked, asked):
    """Latin-1 would read the mark as a part of the first column's name."""
    path = csv_file(tmp_path / "p.csv", "age,b\n1,ü\n".encode(marked))
    name = marked.removesuffix("-sig")
    with pytest.raises(InputError) as caught:
        open_table(path, csv=Csv(encoding=asked))
    assert str(caught.value) == (
        f"{path}: begins with the byte order mark of {name}, but csv.encoding is {asked}; remove "
        f"csv.encoding, or name {name}"
    )


@pytest.mark.parametrize(
    ("marked", "asked"),
    [
        ("utf-8", "utf-8"),
        ("utf-8", "utf-8-sig"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "UTF_16"),
        ("utf-32-be", "utf-32-be"),
    ],
)
def test_csv_a_byte_order_mark_of_the_named_encoding_is_no_text(tmp_path, marked, asked):
    path = csv_file(tmp_path / "p.csv", "\ufeffage,b\n1,ü\n".encode(marked))
    assert read(open_table(path, csv=Csv(encoding=asked))).to_pydict() == {"age": [1], "b": ["ü"]}


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;", "\ufeffsep=;"])
@pytest.mark.parametrize("asked", [Csv(), Csv(separator=";")])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_the_line_that_tells_excel_the_separator_is_refused(tmp_path, first, asked, end):
    path = csv_file(tmp_path / "p.csv", end.join([first, "age;b", "1;x", ""]))
    with pytest.raises(InputError, match=r"p\.csv, line 1: names no columns.*csv.separator: ';'$"):
        open_table(path, csv=asked)


def test_csv_a_named_separator_is_used(tmp_path):
    path = csv_file(tmp_path / "p.csv", "a,b;c\n1,2;3\n")
    assert read(open_table(path, csv=Csv(separator=";"))).to_pydict() == {"a,b": ["1,2"], "c": [3]}


def test_csv_files_of_one_source_may_differ_in_separator_and_encoding(tmp_path):
    csv_file(tmp_path / "a.csv", "a,b\nx,1\n")
    csv_file(tmp_path / "b.csv", "b;a\n2;ü\n".encode("utf-16"))
    source = open_table(str(tmp_path))
    assert read(source).to_pydict() == {"a": ["x", "ü"], "b": [1, 2]}
    assert source.read_as["separators"] == [",", ";"]
    assert source.read_as["encodings"] == ["utf-16", "utf-8"]
    assert FileTable.from_json(json.loads(json.dumps(source.to_json()))) == source


def tar(content):
    """A tar archive of one file."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("people.csv")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def arrow_file():
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, pa.schema([("a", pa.int64())])):
        pass
    return sink.getvalue()


def orc_file():
    sink = io.BytesIO()
    pa.orc.write_table(pa.table({"a": [1]}), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("p.csv", b'{"a": 1}\n{"a": 2}\n', "JSON"),
        ("p.csv", b'[\n {"a": 1}]', "JSON"),
        ("p.csv.gz", gzip.compress(b'{"a": 1}\n', mtime=0), "JSON"),
        ("p.csv", b"PK\x03\x04rest", "a zip archive or an Excel workbook"),
        (
            "p.csv",
            gzip.compress(b"a,b\n1,2\n", mtime=0),
            "compressed by gzip; let its name end in .csv.gz",
        ),
        ("p.csv.gz", gzip.compress(tar(b"a,b\n1,2\n"), mtime=0), "a tar archive"),
        ("p.csv.gz", gzip.compress(b"PAR1\x15\x04", mtime=0), "a Parquet file"),
        ("p.csv", b"PAR1\x15\x04", "a Parquet file"),
        ("p.csv", bz2.compress(b"a,b\n1,2\n"), "compressed by bzip2"),
        ("p.csv", bz2.compress(b""), "compressed by bzip2"),
        ("p.csv", arrow_file(), "an Arrow file"),
        ("p.csv", orc_file(), "an ORC file"),
        ("p.csv", b"%PDF-1.7\n", "a PDF document"),
        ("p.csv", b"<!DOCTYPE html><p>", "XML or HTML"),
    ],
)
def test_what_is_no_csv_is_refused_as_what_it_is(tmp_path, name, content, what):
    with pytest.raises(InputError, match=rf"{name}: no CSV file but {what}"):
        open_table(csv_file(tmp_path / name, content))


@pytest.mark.parametrize("name", ["{a}", "[a]", "<a>", "ORCID", "PAR1", "ARROW1", "BZh1", "%PDF"])
def test_unusual_names_are_no_other_format(tmp_path, name):
    assert open_table(csv_file(tmp_path / "p.csv", f"{name},b\n1,2\n")).schema.names == [name, "b"]


def test_csv_limits_hold_in_other_encodings(tmp_path):
    text = ("a,b\nx,1\n" + "y" * 4000 + ",2\n").encode("utf-16")
    path = csv_file(tmp_path / "p.csv.gz", gzip.compress(text))
    with (
        limits.changed(csv_line=1000),
        pytest.raises(InputError, match=r"p\.csv\.gz, line 3: a line"),
    ):
        open_table(path)


TYPED = 'zip,day,n,amount\n007,2024-01-31,"12,5",1.5\n-,2024-02-29,"+3","1.25"\n'


def test_csv_types_that_the_job_names(tmp_path):
    types = {"zip": "integer", "day": "timestamp", "n": "text", "amount": "decimal"}
    source = open_table(
        csv_file(tmp_path / "p.csv", TYPED), types=types, csv=Csv(missing=("-", "NA"))
    )
    assert source.schema.types == [
        pa.int64(), pa.timestamp("us"), pa.string(), pa.decimal128(18, 2)
    ]  # fmt: skip
    table = read(source)
    assert table["zip"].to_pylist() == [7, None]
    assert table["n"].to_pylist() == ["12,5", "+3"]
    assert table["amount"].cast(pa.string()).to_pylist() == ["1.50", "1.25"]
    (batch,) = source.batches(["n"], pc.field("zip") == 7)
    assert batch.to_pydict() == {"n": ["12,5"]}


def test_csv_decimal_commas(tmp_path):
    path = csv_file(tmp_path / "p.csv", "a;b;c\n1,5;2,50;1.5\n3;3,00;2,5\n")
    source = open_table(path, csv=Csv(decimal=","))
    assert source.schema.types == [pa.float64(), pa.decimal128(18, 2), pa.string()]
    assert read(source)["a"].to_pylist() == [1.5, 3.0]
    source = open_table(path, csv=Csv(decimal=","), types={"a": "decimal"})
    assert read(source)["a"].cast(pa.string()).to_pylist() == ["1.5", "3.0"]


@pytest.mark.parametrize("value", ["61\u00a0", "61\x0c", '"61\n"', "V70.0", "Canary"])
def test_csv_a_value_that_is_none_of_its_type_is_located(tmp_path, value):
    text = f'age,note\n{"60,x" + chr(10)}\n60,"two\nlines"\n{value},y\n70,z\n'
    path = csv_file(tmp_path / "p.csv", text)
    source = open_table(path)  # where no type is named, the column is text
    assert read(source)["age"].to_pylist() == ["60", "60", value.strip('"'), "70"]
    line = 7 if "\n" in value else 6
    with pytest.raises(InputError, match=rf"p\.csv, line {line}: column 'age'") as caught:
        open_table(path, types={"age": "integer"})
    assert "Canary" not in str(caught.value)
    assert "types.age" in str(caught.value)


def test_csv_columns_that_look_like_numbers_are_reported(tmp_path):
    path = csv_file(tmp_path / "p.csv", "a,b,c,d\n007,1,x,+4917\n008,2,y,1E5\n")
    assert open_table(path).read_as["numberlike"] == ["a", "d"]
