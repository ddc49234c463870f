from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forged_parquet as forged
from forged_parquet import Column, Page, plain
from mondrian_ops.errors import InputError
from mondrian_ops.job import limits
from mondrian_ops.tables import open_table, parquet_pages
from mondrian_ops.tables.parquet_pages import BATCH_BYTES, DamagedPageError, opened, rows_at_once

MANY = 1 << 17


def rows(path, *columns, groups=None, stamp="") -> int:
    with opened(str(path)) as stream:
        file = pq.ParquetFile(stream)
        return rows_at_once(str(path), stamp, columns, groups, MANY, stream, file)


def data(*values: bytes, unpacked: int | None = None) -> Page:
    content = plain(*values)
    return Page(content, len(content) if unpacked is None else unpacked, len(values))


@pytest.mark.parametrize("codec", ["NONE", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_pages_are_those_that_were_written(tmp_path, codec, version, dictionary):
    table = pa.table(
        {
            "n": pa.array([at if at % 7 else None for at in range(5000)]),
            "t": [f"text {at % 100}" for at in range(5000)],
            "list": [[str(at)] * (at % 3) for at in range(5000)],
            "both": [{"a": at, "b": "x"} for at in range(5000)],
        }
    )
    pq.write_table(
        table,
        tmp_path / "t.parquet",
        compression=codec,
        data_page_version=version,
        use_dictionary=dictionary,
        data_page_size=1000,
        row_group_size=3000,
    )
    with pa.OSFile(str(tmp_path / "t.parquet")) as stream:
        footer = pq.ParquetFile(stream).metadata
        for group in range(2):
            for at in range(footer.num_columns):
                chunk = footer.row_group(group).column(at)
                pages = list(parquet_pages._pages(stream, chunk))
                found = sum(each.values for each in pages if each.kind != 2)
                assert found == chunk.num_values
                assert (pages[0].kind == 2) == bool(chunk.has_dictionary_page)
                headers = chunk.total_uncompressed_size - sum(each.unpacked for each in pages)
                assert 0 < headers < 100 * len(pages)
    assert rows(tmp_path / "t.parquet", *table.column_names) == MANY


def test_a_page_at_the_limit_is_read_and_one_beyond_is_not(tmp_path):
    forged.write(tmp_path / "p.parquet", 1, Column("a", [data(b"x" * 96)], "UNCOMPRESSED"))
    with limits.changed(parquet_page=100):
        assert rows(tmp_path / "p.parquet", "a") == MANY
    with (
        limits.changed(parquet_page=99),
        pytest.raises(
            InputError, match="column 'a' unpacks to 100 bytes; the limit 'parquet_page'"
        ),
    ):
        rows(tmp_path / "p.parquet", "a")


def test_what_is_not_read_is_not_looked_at(tmp_path):
    large = Column("b", [data(b"x", unpacked=(1 << 31) - 1)])
    forged.write(tmp_path / "p.parquet", 1, Column("a", [data(b"x")], "UNCOMPRESSED"), large)
    assert rows(tmp_path / "p.parquet", "a") == 1  # all rows of the file
    with pytest.raises(InputError, match="'parquet_page'"):
        rows(tmp_path / "p.parquet", "b", "a")


def test_a_large_page_is_found_wherever_it_is(tmp_path):
    pages = [data(b"x")] * 5 + [data(b"x", unpacked=1 << 30)]
    forged.write(tmp_path / "p.parquet", 6, Column("a", pages, unpacked=6))
    with pytest.raises(InputError, match="unpacks to 1 GiB"):
        rows(tmp_path / "p.parquet", "a")


def test_numbers_are_looked_at_where_their_codec_leaves_it_open(tmp_path):
    table = pa.table({"n": pa.array([0] * 100_000)})
    options = {"use_dictionary": False, "data_page_size": 1 << 20}
    for codec in ("ZSTD", "SNAPPY"):
        pq.write_table(table, tmp_path / codec, compression=codec, **options)
        with (
            limits.changed(parquet_page=50_000),
            pytest.raises(InputError, match="column 'n'"),
        ):
            rows(tmp_path / codec, "n")


def test_few_rows_at_once_where_each_may_be_long(tmp_path):
    """By dictionaries, by their longest value; by others, by the page that has the fewest."""
    long = "x" * (1 << 20)
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"a": [long, "y"] * 250, "b": [1] * 500}), path)
    most = BATCH_BYTES >> 20
    assert most - 2 <= rows(path, "a") <= most
    assert rows(path, "b") == 500
    pq.write_table(pa.table({"a": [long, "y"] * 80}), path, use_dictionary=False)
    assert most - 2 <= rows(path, "a", stamp="2") <= 2 * most
    pq.write_table(
        pa.table({"a": [long] * 20}),
        path,
        use_dictionary=False,
        column_encoding={"a": "DELTA_BYTE_ARRAY"},
        data_page_size=64 << 20,
    )
    assert rows(path, "a", stamp="3") <= most


def test_a_long_dictionary_of_short_values_slows_nothing_down(tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"a": [f"value {at}" for at in range(50_000)] * 2}), path)
    assert rows(path, "a") == MANY


def test_rows_of_a_wide_table_are_read_in_smaller_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_pages, "BATCH_BYTES", 1 << 20)
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({f"c{at}": [0, 1] * 50 for at in range(2000)}), path)
    read = rows(path, *(f"c{at}" for at in range(2000)))
    assert read == (1 << 20) // (2000 * 8)
    assert rows(path, "c0", groups=(0,)) == 100


def test_batches_of_long_values_hold_all_rows_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_pages, "BATCH_BYTES", 10_000)
    table = pa.table({"a": [str(at) * 100 for at in range(500)], "b": list(range(500))})
    pq.write_table(table, tmp_path / "p.parquet")
    source = open_table(str(tmp_path / "p.parquet"))
    read = list(source.batches())
    assert 1 < max(each.num_rows for each in read) < 50
    assert pa.Table.from_batches(read).to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("column", "dotted"),
    [("a.b", "a"), ("", "a"), ("a", "a.b")],
)
def test_columns_are_told_by_their_place(tmp_path, column, dotted):
    path = tmp_path / "p.parquet"
    nested = [[{"x": "long" * 1000}]] * 10
    pq.write_table(pa.table({column: ["1"] * 10, dotted: nested, "n": [1] * 10}), path)
    with limits.changed(parquet_page=3000):
        assert rows(path, column, "n") == MANY
        with pytest.raises(InputError, match=f"column '{dotted}' unpacks"):
            rows(path, dotted)


def test_text_at_the_limit_is_read_and_longer_text_is_not(tmp_path):
    path = tmp_path / "p.parquet"
    for options in ({}, {"use_dictionary": False}):
        pq.write_table(pa.table({"a": ["x" * 1000, "yy"], "b": [1, 2]}), path, **options)
        source = open_table(str(path))
        with limits.changed(text=1000):
            for dictionaries in (True, False):
                assert len(list(source.batches(dictionaries=dictionaries))) == 1
        with limits.changed(text=999):
            assert len(list(source.batches(["b"]))) == 1
            for dictionaries in (True, False):
                with pytest.raises(InputError, match="'a' holds a value of 1,000 bytes; the limit"):
                    list(source.batches(dictionaries=dictionaries))


def test_what_has_no_header_is_damaged(tmp_path):
    page = data(b"x")
    forged.write(tmp_path / "p.parquet", 1, Column("a", [page]))
    content = (tmp_path / "p.parquet").read_bytes()
    (tmp_path / "p.parquet").write_bytes(
        content.replace(page.header(), b"\xff" * len(page.header()))
    )
    with pytest.raises(InputError, match=r"p\.parquet: cannot be read as Parquet; the file is"):
        list(open_table(str(tmp_path / "p.parquet")).batches())


@pytest.mark.parametrize("codec", ["ZSTD", "UNCOMPRESSED"])
def test_a_row_group_that_lacks_a_column_is_damaged(tmp_path, codec):
    path = tmp_path / "t.parquet"
    columns = [Column(name, [data(b"text")], codec) for name in "ab"]
    forged.write(path, 1, *columns, lacking=1)
    with pytest.raises(DamagedPageError):
        rows(path, "a", "b")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_header_or_damage(content):
    try:
        page, length = parquet_pages._page(pa.BufferReader(content), 0)
    except DamagedPageError:
        return
    assert length <= len(content)
    assert min(page.unpacked, page.packed, page.values) >= 0


STATISTICS = forged.struct((1, 8, b"m" * 300), (3, 6, 5), (5, 8, b"z" * 70_000), (7, 1, b""))


@pytest.mark.parametrize(
    "more",
    [
        [(5, 12, forged.struct((1, 5, 9), (2, 5, 0), (5, 12, STATISTICS)))],
        [(4, 5, 99), (5, 12, forged.struct((1, 5, 9), (2, 5, 0)))],
        # A number of another type is no size, for a decoder either.
        [(5, 12, forged.struct((1, 5, 9), (2, 5, 0))), (9, 9, [b"\2", b"\4"], 5), (10, 6, 7)],
    ],
)
def test_a_header_is_read_whatever_else_it_holds(more):
    content = forged.struct((1, 5, 0), (2, 5, 70), (3, 5, 60), *more)
    page, length = parquet_pages._page(pa.BufferReader(content + b"data"), 0)
    assert page == (0, 70, 60, 9, 0)
    assert length == len(content)


def test_a_size_is_read_as_a_decoder_reads_it():
    """The last of two counts; one of another type does not; an id may be written at length."""
    size = bytes([0x05]) + forged.varint(2 << 1)  # field 2, its id in full
    twice = bytes([0x15, 0, 0x15, 2, 0x06, 4, 2]) + size + forged.varint(500 << 1)
    content = twice + bytes([0x15]) + forged.varint(20 << 1) + b"\0"
    page, _ = parquet_pages._page(pa.BufferReader(content), 0)
    assert (page.kind, page.unpacked, page.packed) == (0, 500, 20)


def test_nested_text_is_looked_at_and_one_row_may_not_hold_all(tmp_path):
    path = tmp_path / "p.parquet"
    kind = pa.map_(pa.string(), pa.list_(pa.string()))
    table = pa.table({"a": pa.array([[("key", ["x" * 5000])]] * 5000, kind)})
    pq.write_table(table, path)
    assert 20_000 < rows(path, "a") < 30_000
    nothing = pa.table({"a": pa.array([[]] * 5000 + [[("key", ["x" * 900])]], kind)})
    pq.write_table(nothing, path)
    assert 100 < rows(path, "a", stamp="2") <= MANY
    pq.write_table(pa.table({"a": [["x" * 1000] * 300_000]}), path)
    with pytest.raises(
        InputError, match=r"the 300,000 values of column 'a' may take 2.* 'inflation'"
    ):
        rows(path, "a", stamp="3")
    with limits.changed(inflation=1 << 20):
        assert rows(path, "a", stamp="3") == 1


def test_a_dictionary_that_no_row_shows_yet_counts_in_full(tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"a": [None] * 2000 + ["x" * 100_000]}), path)
    assert rows(path, "a") <= BATCH_BYTES // 100_000
