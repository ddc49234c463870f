"""The parts of a location: its store, its path, its last name, and what is shown of it."""

from __future__ import annotations

import pytest

from mondrian_ops import publish, stores, tables
from mondrian_ops.errors import InputError, JobError
from mondrian_ops.stores import load_job, locations, read_job, store_of


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://my_conn@bucket/a/b", "s3://bucket/a/b"),
        ("hdfs://nn:8020/a@b", "hdfs://nn:8020/a@b"),
        ("webhdfs://a@b@nn:9870/x", "webhdfs://nn:9870/x"),
        ("/data/a@b", "/data/a@b"),
    ],
)
def test_a_location_is_shown_without_its_connection(url, shown):
    assert locations.shown(url) == shown


@pytest.mark.parametrize(
    ("url", "base", "path"),
    [
        ("HDFS://nn:8020//a//b/", "hdfs://nn:8020", "/a/b"),
        ("s3://c@bucket", "s3://c@bucket", "/"),
        ("s3://bucket/a/./b/../c", "s3://bucket", "/a/c"),
        ("s3://bucket/../../x", "s3://bucket", "/x"),
    ],
)
def test_a_remote_location_has_one_path_however_it_is_written(url, base, path):
    assert locations.parts_of(url) == (base, path)
    assert locations.name_of(url) == path.rpartition("/")[2]
    assert locations.parent_of(url) == base + (path.rpartition("/")[0] or "/")


def test_what_lies_below_a_location_is_named_as_its_store_does(tmp_path):
    assert locations.joined("s3://bucket/a/", "b", "c") == "s3://bucket/a/b/c"
    assert locations.joined(tmp_path.as_uri(), "a b") == str(tmp_path / "a b")
    assert locations.name_of(str(tmp_path / "a")) == locations.name_of("hdfs://nn/x/a/") == "a"


def test_a_local_location_is_a_path_or_a_file_url(tmp_path):
    for url in (str(tmp_path / "a b"), (tmp_path / "a b").as_uri()):
        assert locations.is_local(url)
        assert locations.local_path(url) == str(tmp_path / "a b")
    with pytest.raises(InputError, match="not on the local file system") as caught:
        locations.local_path("s3://my_conn@bucket/x")
    assert "my_conn" not in str(caught.value)
    with pytest.raises(InputError, match="scheme 'ftp' is not available"):
        locations.is_local("ftp://host/x")


@pytest.mark.parametrize(
    ("url", "name"),
    [("S3://b/k", "s3"), ("hdfs://b/k", "hdfs"), ("swebhdfs://b/k", "hdfs"), ("b", "local")],
)
def test_the_scheme_tells_the_store(url, name):
    assert store_of(url).name == name


LONG = "x" * 256
NO_PATHS = {
    "a\0b.csv": "the path holds a NUL byte, which no file name may contain; remove it",
    "file:///tmp/a%00b.csv": "the path holds a NUL byte",
    "s3://bucket/a\0b": "the path holds a NUL byte",
    "a\ud800b.csv": "the path holds an unpaired surrogate; correct it",
    LONG: "a name in the path is longer than 255 bytes; choose a shorter one",
    f"{LONG}/*.csv": "a name in the path is longer than 255 bytes",
    f"hdfs://namenode/{LONG}": "a name in the path is longer than 255 bytes",
    "ä" * 128: "a name in the path is longer than 255 bytes",
    "/".join(["y" * 200] * 30): "the path is longer than 4,095 bytes; choose a shorter one",
    "s3://bucket/" + "z" * 1100: "the path is longer than 1,024 bytes",
}


@pytest.mark.parametrize("path", NO_PATHS, ids=range(len(NO_PATHS)))
def test_a_path_that_no_file_can_have_is_refused_with_the_option_and_the_remedy(path):
    with pytest.raises(JobError) as caught:
        locations.check_path("input", path)
    assert str(caught.value).startswith(f"input: {NO_PATHS[path]}")
    assert "/" not in str(caught.value)


@pytest.mark.parametrize("path", ["", "/", "a" * 255, "/" + "b" * 255 + "/", "s3://b/" + LONG])
def test_a_path_that_a_file_can_have_passes(path):
    locations.check_path("input", path)


def test_what_working_files_add_to_a_name_has_to_fit_too():
    locations.check_path("output", "a/" + "b" * 235 + "/", 20)
    locations.check_path("output", "a" * 255 + "/b", 20)
    with pytest.raises(JobError, match="output: a name in the path is longer than 235 bytes"):
        locations.check_path("output", "a/" + "b" * 236, 20)


@pytest.mark.parametrize("path", ["a\0b", LONG, "/".join(["y" * 200] * 30)], ids=range(3))
def test_every_way_into_a_run_refuses_such_a_path(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    job = {"input": "in.csv", "output": "out", "k": 2, "quasi_identifiers": ["a"]}
    for key in ("input", "output"):
        with pytest.raises(JobError, match=f"^{key}: "):
            publish.check_job(load_job({**job, key: path}))
    for work in (
        lambda: publish.work_path(path, "run"),
        lambda: publish.check_output(path, "out"),
        lambda: publish.check_output("in.csv", path),
        lambda: tables.open_table(path),
        lambda: stores.find_hierarchy(path, str(tmp_path)),
        lambda: read_job(path),
    ):
        with pytest.raises(JobError, match=r"longer than|NUL byte"):
            work()
