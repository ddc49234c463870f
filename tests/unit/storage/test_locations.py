"""The parts of a location: its store, its path, its last name, and what is shown of it."""

from __future__ import annotations

import pytest

from mondrian_ops.core.errors import InputError
from mondrian_ops.storage import locations


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
    assert locations.remote_parts(url) == (base, path)
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
    with pytest.raises(InputError, match="scheme 'gs' is not available"):
        locations.is_local("gs://bucket/x")


@pytest.mark.parametrize(
    ("url", "is_s3"), [("S3://b/k", True), ("hdfs://b/k", False), ("b", False)]
)
def test_only_s3_is_an_object_store(url, is_s3):
    assert locations.is_s3(url) == is_s3
