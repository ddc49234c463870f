"""Which files a source has, of which format they are, and which others would be read with them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.core.errors import InputError
from mondrian_ops.storage import look_up_with, open_source, store_access
from mondrian_ops.storage.discovery import data_files, lies_in, would_be_read
from source_samples import PEOPLE, csv_file, read


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


def test_format_is_seen_in_the_content_when_the_name_does_not_tell(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "people")
    assert open_source(str(tmp_path / "people")).format == "parquet"
    assert open_source(csv_file(tmp_path / "text", "a,b\n1,2\n")).format == "csv"
    (tmp_path / "image").write_bytes(b"\x89PNG\x00\x00")
    with pytest.raises(InputError, match=r"image: neither Parquet nor CSV"):
        open_source(str(tmp_path / "image"))


def test_hive_directories_are_refused_not_read_without_their_column(tmp_path):
    (tmp_path / "day=1").mkdir()
    pq.write_table(PEOPLE, tmp_path / "day=1" / "a.parquet")
    with pytest.raises(InputError, match="day=1: a directory NAME=VALUE is not read as a column"):
        open_source(str(tmp_path))
    assert open_source(str(tmp_path / "day=1")).rows == 4


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


@examples(150)
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
