"""Which files a source has, of which format they are, and which others would be read with them."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.errors import InputError
from mondrian_ops.stores import look_up_with, store_access, write_file
from mondrian_ops.tables import open_table
from mondrian_ops.tables.discovery import data_files, lies_in, would_be_read
from object_store import ObjectStore, connect
from source_samples import PEOPLE, csv_file, read


def test_directory_is_read_in_the_order_of_its_files_without_the_hidden_ones(tmp_path):
    for name in ("b.parquet", "a.parquet", "sub/c.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"file": [name]}), tmp_path / name)
    for hidden in ("_SUCCESS", ".part.crc", "_temporary/x.parquet"):
        (tmp_path / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / hidden).write_text("no data")
    source = open_table(str(tmp_path))
    assert read(source)["file"].to_pylist() == ["a.parquet", "b.parquet", "sub/c.parquet"]
    assert open_table(str(tmp_path / "[ab].parquet")).rows == 2
    assert open_table(str(tmp_path / "**" / "c.parquet")).rows == 1


def test_a_file_whose_name_has_wildcard_characters_is_that_file(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "people[1].parquet")
    assert open_table(str(tmp_path / "people[1].parquet")).rows == 4


def test_a_directory_that_links_to_itself_is_read_once(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "p.parquet")
    (tmp_path / "again").symlink_to(tmp_path)
    assert open_table(str(tmp_path)).rows == 4


def test_format_is_seen_in_the_content_when_the_name_does_not_tell(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "people")
    assert open_table(str(tmp_path / "people")).format == "parquet"
    assert open_table(csv_file(tmp_path / "text", "a,b\n1,2\n")).format == "csv"
    (tmp_path / "image").write_bytes(b"\x89PNG\x00\x00")
    with pytest.raises(InputError, match=r"image: neither Parquet nor CSV"):
        open_table(str(tmp_path / "image"))


# A file is read once, whatever its names


def names_of(url: object) -> list[str]:
    return [file.name for file in data_files(str(url))]


@pytest.fixture
def drops(tmp_path):
    """A directory with one file of people."""
    (tmp_path / "in").mkdir()
    pq.write_table(PEOPLE, tmp_path / "in" / "2024-05-01.parquet")
    return tmp_path / "in"


@pytest.mark.parametrize("other", ["latest.parquet", "2023.parquet"])
@pytest.mark.parametrize("kind", ["link", "hard link"])
@pytest.mark.parametrize("given", ["", "*", "*.parquet"])
def test_a_file_with_two_names_is_read_once(drops, other, kind, given):
    first = drops / "2024-05-01.parquet"
    (drops / other).symlink_to(first.name) if kind == "link" else (drops / other).hardlink_to(first)
    kept = first.name if kind == "link" else min(first.name, other)
    assert names_of(drops / given) == [kept]
    assert open_table(str(drops / given)).rows == PEOPLE.num_rows
    assert open_table(str(drops / other)).rows == PEOPLE.num_rows


@pytest.mark.parametrize("link", ["a", "z"])
@pytest.mark.parametrize("given", ["", "*", "**", "*/*.parquet", "**/*.parquet"])
def test_a_directory_with_two_names_is_read_once(tmp_path, link, given):
    (tmp_path / "m").mkdir()
    pq.write_table(PEOPLE, tmp_path / "m" / "p.parquet")
    (tmp_path / link).symlink_to("m")
    assert [file.url for file in data_files(str(tmp_path / given))] == [
        str(tmp_path / "m" / "p.parquet")
    ]


def test_directories_full_of_links_to_each_other_are_walked_once(tmp_path):
    for name in map(str, range(12)):
        (tmp_path / name).mkdir()
        pq.write_table(PEOPLE, tmp_path / name / "p.parquet")
        for other in map(str, range(12)):
            (tmp_path / name / f"to{other}").symlink_to(f"../{other}")
    assert len(data_files(str(tmp_path))) == 12
    assert data_files(str(tmp_path / "7"))[0].url.endswith("7/p.parquet")
    assert len(data_files(str(tmp_path / "7"))) == 12


def test_files_that_a_file_system_numbers_alike_are_two(drops, monkeypatch):
    pq.write_table(PEOPLE, drops / "2024-05-02.parquet")
    monkeypatch.setattr(
        "mondrian_ops.stores.local.LocalStore.contents",
        lambda store, url: (
            list(store.names(url)),
            [replace(file, identity=(1, 1)) for file in store.list_directory(url)],
        ),
    )
    assert open_table(str(drops)).rows == 2 * PEOPLE.num_rows


def test_a_link_to_another_file_that_comes_later_is_a_change(drops):
    source = open_table(str(drops))
    (drops / "latest.parquet").symlink_to("2024-05-01.parquet")
    source.refuse_change()
    pq.write_table(PEOPLE, drops.parent / "other.parquet")
    (drops / "latest.parquet").unlink()
    (drops / "latest.parquet").symlink_to("../other.parquet")
    with pytest.raises(InputError, match=r"latest\.parquet: changed while it was read"):
        source.refuse_change()


# Which names are those of data files

BESIDE = ("a.parquet.bak", "a.parquet~", "part-0", "people.txt", "a.csv.zip", "notes.md", "a.json")


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("given", ["", "*", "**"])
def test_a_name_of_no_data_file_is_refused_by_name(drops, name, given):
    (drops / name).write_bytes((drops / "2024-05-01.parquet").read_bytes())
    with pytest.raises(InputError, match=rf"in/{re.escape(name)}: has no name of a data file"):
        open_table(str(drops / given))
    assert open_table(str(drops / "*.parquet")).rows == PEOPLE.num_rows
    assert open_table(str(drops / name)).rows == PEOPLE.num_rows  # it is what was asked for


def test_names_that_writers_give_are_those_of_data_files(tmp_path):
    names = ("part-00000-5b1c-c000.snappy.parquet", "B.PARQUET", "c.pq", "d.parq", "e.gz.parquet")
    for name in names:
        pq.write_table(PEOPLE, tmp_path / name)
    assert names_of(tmp_path) == sorted(names)


# Tables are more than their files

TABLES = {
    "Delta": "_delta_log/00000000000000000000.json",
    "Hudi": ".hoodie/hoodie.properties",
    "Iceberg": "metadata/00000-5b1c.metadata.json",
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(
    "given",
    ["", "t", "t/*", "*/*.parquet", "**/*.parquet", "t/data", "t/data/*", "t/data/p.parquet"],
)
def test_a_table_is_refused_wherever_the_input_is(tmp_path, kind, given):
    mark = tmp_path / "in" / "t" / TABLES[kind]
    (tmp_path / "in" / "t" / "data").mkdir(parents=True)
    pq.write_table(PEOPLE, tmp_path / "in" / "t" / "data" / "p.parquet")
    pq.write_table(PEOPLE, tmp_path / "in" / "t" / "p.parquet")
    assert open_table(str(tmp_path / "in" / given)).rows >= PEOPLE.num_rows
    mark.parent.mkdir()
    mark.write_text("{}")
    with pytest.raises(InputError, match=rf"in/t: is a table of {kind}, .* snapshot"):
        open_table(str(tmp_path / "in" / given))


@pytest.mark.parametrize("linked", ["t/data/p.parquet", "t/data"])
def test_a_table_behind_a_link_is_refused(tmp_path, linked):
    (tmp_path / "t" / "data").mkdir(parents=True)
    (tmp_path / "t" / "_delta_log").mkdir()
    pq.write_table(PEOPLE, tmp_path / "t" / "data" / "p.parquet")
    (tmp_path / "in").mkdir()
    link = tmp_path / "in" / "l.parquet"
    link.symlink_to(tmp_path / linked)
    for place in (link, tmp_path / "in", tmp_path / "in" / "*"):
        with pytest.raises(InputError, match="t: is a table of Delta"):
            open_table(str(place))


def test_a_directory_called_metadata_makes_no_table(tmp_path):
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "people.json").write_text("{}")
    (tmp_path / "in").mkdir()
    pq.write_table(PEOPLE, tmp_path / "in" / "p.parquet")
    assert names_of(tmp_path / "in") == ["p.parquet"]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("given", ["in", "in/t", "in/*/*", "in/t/data", "in/t/data/p.parquet"])
def test_a_table_in_a_store_is_refused(monkeypatch, kind, given):
    store = ObjectStore()
    connect(store, monkeypatch)
    sink = pa.BufferOutputStream()
    pq.write_table(PEOPLE, sink)
    write_file("s3://bucket/in/t/data/p.parquet", sink.getvalue().to_pybytes())
    if given != "in/*/*":
        assert len(data_files(f"s3://bucket/{given}")) == 1
    write_file(f"s3://bucket/in/t/{TABLES[kind]}", b"{}")
    with pytest.raises(InputError, match=rf"s3://bucket/in/t: is a table of {kind}"):
        data_files(f"s3://bucket/{given}")


def test_who_may_not_look_above_an_input_reads_it_all_the_same(monkeypatch):
    store = ObjectStore()
    connect(store, monkeypatch)
    write_file("s3://bucket/team/in/p.csv", b"a\n1\n")

    def deny(kind: str, key: str) -> None:
        if not key.startswith("bucket/team/in"):
            raise PermissionError(key)

    store.before = deny
    assert names_of("s3://bucket/team/in") == ["p.csv"]


def test_names_of_no_data_files_in_a_store_are_refused(monkeypatch):
    store = ObjectStore()
    connect(store, monkeypatch)
    for name in ("a.csv", "a.csv.bak", "_SUCCESS"):
        write_file(f"s3://bucket/in/{name}", b"a\n1\n")
    for place in ("in", "in/*"):
        with pytest.raises(InputError, match=r"s3://bucket/in/a\.csv\.bak: has no name"):
            data_files(f"s3://bucket/{place}")
    assert names_of("s3://bucket/in/*.csv") == ["a.csv"]


# What is no regular file


@pytest.mark.parametrize("name", ["p.parquet", "p.csv", "p.csv.gz", "p"])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_pipe_is_refused_before_it_is_opened(tmp_path, name, is_link):
    (tmp_path / "in").mkdir()
    os.mkfifo(tmp_path / ("pipe" if is_link else f"in/{name}"))
    if is_link:
        (tmp_path / "in" / name).symlink_to("../pipe")
    for place in (tmp_path / "in", tmp_path / "in" / "*", tmp_path / "in" / name):
        with pytest.raises(InputError, match=rf"in/{name}: is a named pipe, not a regular file"):
            open_table(str(place))


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_a_device_is_refused(device):
    with pytest.raises(InputError, match=rf"{device}: is a device"):
        open_table(device)


def test_a_file_that_becomes_a_pipe_meanwhile_is_not_waited_for(tmp_path):
    for name, text in (("p.csv", b"a\n1\n"), ("p.parquet", b"")):
        path = tmp_path / name
        path.write_bytes(text)
        if name.endswith("parquet"):
            pq.write_table(PEOPLE, path)
        source = open_table(str(path))
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(InputError, match="changed while it was read"):
            list(source.batches())


def test_hive_directories_are_refused_not_read_without_their_column(tmp_path):
    (tmp_path / "day=1").mkdir()
    pq.write_table(PEOPLE, tmp_path / "day=1" / "a.parquet")
    with pytest.raises(InputError, match="day=1: a directory NAME=VALUE is not read as a column"):
        open_table(str(tmp_path))
    assert open_table(str(tmp_path / "day=1")).rows == 4


# Which locations lie in others, and which files an input would take in

NAMES = ("a", "b", "ä", "[a]")
SEGMENTS = st.sampled_from([*NAMES, "*", "?", "[ab]", "[!a]", "a*", "[[]a]"])


@pytest.mark.parametrize(
    ("url", "other", "inside"),
    [
        ("{0}/in", "{0}/in", True),
        ("{0}/in/a/b", "{0}/in/", True),
        ("{0}/input", "{0}/in", False),
        ("{0}", "{0}/in", False),
        ("{0}/in/../x", "{0}/in", False),
        ("{0}/x/../in/a", "{0}/in", True),
        ("file://{0}/in/%C3%A4", "{0}/in/ä", True),
        ("{0}/link/a", "{0}/in", True),
        ("{0}/in/a", "{0}/link", True),
        ("in/a", "{0}/in", True),
        ("{0}/in", "/", True),
    ],
)
def test_local_locations_are_compared_by_where_they_lead(tmp_path, monkeypatch, url, other, inside):
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("in")
    monkeypatch.chdir(tmp_path)
    assert lies_in(url.format(tmp_path), other.format(tmp_path)) == inside


@pytest.mark.parametrize(
    ("url", "other", "inside"),
    [
        ("s3://bucket/a/b", "s3://bucket/a", True),
        ("S3://conn@bucket//a/", "s3://bucket/a", True),
        ("s3://bucket/ab", "s3://bucket/a", False),
        ("s3://other/a/b", "s3://bucket/a", False),
        ("s3://bucket/a", "/", False),
        ("/a", "hdfs://nn1/", False),
        ("hdfs://nn1:8020/a/b", "webhdfs://nn2:9870/a", True),
        ("webhdfs://nn2:9870/a/b", "hdfs:///a", True),
        ("webhdfs://nn3:9870/a/b", "hdfs:///a", False),
        ("swebhdfs://nn1:9870/a/b", "hdfs:///a", False),
        ("s3://nn1/a/b", "hdfs://nn1/a", False),
    ],
)
def test_remote_locations_lie_on_one_store_by_its_servers_or_bucket(
    monkeypatch, url, other, inside
):
    look_up_with(None)
    monkeypatch.setattr(store_access, "_given", {})
    monkeypatch.setenv("MONDRIAN_OPS_WEBHDFS", "http://nn1:9870, http://nn2:9870")
    assert lies_in(url, other) == inside


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Three levels of directories, and in each of them files of the same names."""
    root = tmp_path_factory.mktemp("tree")
    for first in NAMES:
        for second in NAMES:
            (root / first / second).mkdir(parents=True)
            (root / first / f"{second}.csv").touch()
            for third in NAMES:
                (root / first / second / f"{third}.csv").touch()
    return root


@examples(50)
@given(
    segments=st.lists(SEGMENTS, max_size=3),
    ending=st.sampled_from(["", ".csv"]),
    anywhere=st.sampled_from([None, 0, 1]),
)
@example(segments=["[a]"], ending="", anywhere=None)
@example(segments=["[a]", "*"], ending=".csv", anywhere=None)
def test_the_files_that_an_input_takes_in_are_those_that_are_read(tree, segments, ending, anywhere):
    if anywhere is not None:
        segments = [*segments[:anywhere], "**", *segments[anywhere:]]
    pattern = str(tree.joinpath(*segments)) + (ending if segments else "")
    try:
        read = {file.url for file in data_files(pattern)}
    except InputError:
        read = set()
    found = {str(file) for file in tree.rglob("*.csv") if would_be_read(str(file), pattern)}
    assert read <= found
    assert found == read or anywhere is not None


def test_a_file_yet_to_be_written_counts_too(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("in")
    new = str(tmp_path / "in" / "out" / "part-00000.parquet")
    for taken in ("in", "link", "link/*", "i*/o*", "in/**/*.parquet", "in/out/part-*"):
        assert would_be_read(new, str(tmp_path / taken)), taken
    for other in ("in/out/*/x", "in/*.parquet", "in/x*", "out", "in/out/part-*.csv"):
        assert not would_be_read(new, str(tmp_path / other)), other


@pytest.mark.parametrize("taken", ["in", "i*", "in/*"])
def test_what_a_link_in_the_input_leads_to_counts_too(tmp_path, taken):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "place" / "deep").mkdir(parents=True)
    (tmp_path / "far").mkdir()
    (tmp_path / "in" / "sub" / "link").symlink_to("../../place")
    (tmp_path / "place" / "deep" / "onward").symlink_to("../../far")
    (tmp_path / "place" / "up").symlink_to("../in")
    (tmp_path / "place" / "_hidden").symlink_to("..")
    (tmp_path / "in" / "gone").symlink_to("nowhere")
    for folder in ("place/out", "far/out"):
        part = str(tmp_path / folder / "part-0.parquet")
        assert would_be_read(part, str(tmp_path / taken)), folder
    assert not would_be_read(str(tmp_path / "out" / "part-0.parquet"), str(tmp_path / taken))
