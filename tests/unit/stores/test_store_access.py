"""Which options a URL is reached with; what they do, the tests with servers show."""

from __future__ import annotations

import pytest

from mondrian_ops.errors import InputError
from mondrian_ops.stores import look_up_with, options_of, store_access, use_options

CLUSTER = {"servers": ["http://nn1:9870", "http://nn2:9870"], "user": "alice"}


@pytest.fixture(autouse=True)
def afresh(monkeypatch):
    for name in ("MONDRIAN_OPS_WEBHDFS", "HADOOP_USER_NAME", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(store_access, "_given", {})
    yield
    look_up_with(None)


def test_a_connection_is_looked_up_once_in_a_while_not_for_each_file():
    asked = []

    def look_up(kind, name):
        asked.append((kind, name))
        return {"hdfs": CLUSTER, "s3": {"region": "eu-west-1"}}[kind]

    look_up_with(look_up)
    for _ in range(3):
        found = options_of(
            ["hdfs://nn1:8020/a", "hdfs://c@x/b", "s3://c@bucket/k", "/local", "rel"]
        )
    assert found == {
        "hdfs://nn1:8020": CLUSTER,
        "hdfs://c@x": CLUSTER,
        "s3://c@bucket": {"region": "eu-west-1"},
    }
    assert asked == [("hdfs", "c"), ("hdfs", None), ("s3", "c")]


def test_the_address_in_a_webhdfs_url_is_where_it_goes(monkeypatch):
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    look_up_with(lambda kind, name: CLUSTER)
    assert options_of(["webhdfs://nn9:9870/a", "swebhdfs://c@nn9:9871/a"]) == {
        "webhdfs://nn9:9870": {"servers": ["http://nn9:9870"], "user": "bob"},
        "swebhdfs://c@nn9:9871": {"servers": ["https://nn9:9871"], "user": "alice"},
    }
    assert options_of(["webhdfs://c@/a"]) == {"webhdfs://c@": CLUSTER}


def test_personal_data_does_not_go_to_another_cluster_than_the_url_names():
    look_up_with(lambda kind, name: CLUSTER)
    with pytest.raises(InputError, match="nn9 is not one of the known NameNodes"):
        options_of(["hdfs://nn9:8020/a"])
    assert options_of(["hdfs://nameservice/a", "hdfs://c@nn9:8020/a"]).keys() == {
        "hdfs://nameservice",
        "hdfs://c@nn9:8020",
    }


def test_the_environment_outside_airflow(monkeypatch):
    monkeypatch.setenv("MONDRIAN_OPS_WEBHDFS", "http://nn1:9870/, https://nn2:9871")
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    assert options_of(["hdfs://nn/a", "s3://b/k"]) == {
        "hdfs://nn": {"servers": ["http://nn1:9870", "https://nn2:9871"], "user": "bob"},
        "s3://b": {"region": "eu-west-1", "scheme": "http", "endpoint_override": "minio:9000"},
    }


def test_options_that_were_sent_come_first(monkeypatch):
    monkeypatch.setenv("MONDRIAN_OPS_WEBHDFS", "http://other:9870")
    use_options({"hdfs://nn": CLUSTER})
    assert options_of(["hdfs://nn/a"]) == {"hdfs://nn": CLUSTER}
