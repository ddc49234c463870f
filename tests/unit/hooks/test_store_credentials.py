from __future__ import annotations

import json
import sys

import pytest

from mondrian_ops import stores, tables
from mondrian_ops.errors import InputError
from mondrian_ops.hooks.store_credentials import connection_options, use_connections
from mondrian_ops.stores.hdfs import WEBHDFS_VARIABLE


@pytest.fixture(autouse=True)
def no_connections(monkeypatch):
    """None but those that a test makes, and none afterwards."""
    yield
    stores.look_up_with(None)


def connection(monkeypatch, name: str, **fields) -> None:
    """A connection as Airflow finds it in the environment."""
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(fields))


def test_hdfs_by_several_hosts(monkeypatch):
    connection(monkeypatch, "c", conn_type="webhdfs", host="nn1, nn2", login="alice")
    assert connection_options("hdfs", "c") == {
        "servers": ["http://nn1:9870", "http://nn2:9870"],
        "user": "alice",
        "kerberos": False,
    }


def test_hdfs_behind_a_gateway_over_https(monkeypatch):
    extra = {"use_ssl": True, "verify": "/ca.pem", "cert": "/c.pem", "key": "/k.pem"}
    fields = {"host": "knox", "port": 8443, "schema": "gateway/default", "login": "a"}
    connection(monkeypatch, "c", conn_type="webhdfs", password="p", extra=extra, **fields)
    assert connection_options("hdfs", "c") == {
        "servers": ["https://knox:8443/gateway/default"],
        "user": "a",
        "password": "p",
        "kerberos": False,
        "verify": "/ca.pem",
        "cert": ["/c.pem", "/k.pem"],
    }


def test_an_iceberg_catalog_by_its_fields(monkeypatch):
    extra = {"type": "rest", "warehouse": "prod"}
    fields = {"host": "https://catalog:8181", "login": "client", "password": "secret"}
    connection(monkeypatch, "lake", conn_type="iceberg", extra=extra, **fields)
    assert connection_options("iceberg", "lake") == {
        "type": "rest",
        "warehouse": "prod",
        "uri": "https://catalog:8181",
        "credential": "client:secret",
    }
    assert connection_options("iceberg", "sea") is None


def test_s3_by_its_fields(monkeypatch):
    extra = {
        "endpoint_url": "http://minio:9000",
        "region_name": "eu-west-1",
        "aws_session_token": "t",
    }
    connection(monkeypatch, "c", conn_type="aws", login="key", password="secret", extra=extra)
    assert connection_options("s3", "c") == {
        "access_key": "key",
        "secret_key": "secret",
        "session_token": "t",
        "region": "eu-west-1",
        "scheme": "http",
        "endpoint_override": "minio:9000",
    }


def test_s3_by_an_endpoint_of_the_service_or_a_role(monkeypatch):
    extra = {"service_config": {"s3": {"endpoint_url": "https://s3.example"}}, "role_arn": "r"}
    connection(monkeypatch, "c", conn_type="aws", extra=extra)
    assert connection_options("s3", "c") == {
        "role_arn": "r",
        "scheme": "https",
        "endpoint_override": "s3.example",
    }
    connection(monkeypatch, "c", conn_type="aws", login="k", password="s", extra=extra)
    with pytest.raises(InputError, match="install apache-airflow-providers-amazon"):
        connection_options("s3", "c")


def test_a_connection_without_a_host_says_so(monkeypatch):
    connection(monkeypatch, "c", conn_type="webhdfs")
    with pytest.raises(InputError, match="'c': it has no host"):
        connection_options("hdfs", "c")


def test_a_missing_provider_is_named(monkeypatch):
    connection(monkeypatch, "c", conn_type="webhdfs", host="nn")
    monkeypatch.setitem(sys.modules, "airflow.providers.apache.hdfs.hooks", None)
    with pytest.raises(InputError, match="install apache-airflow-providers-apache-hdfs"):
        connection_options("hdfs", "c")


@pytest.mark.parametrize(
    "url", ["hdfs://nobody@nn/x", "webhdfs://nobody@nn:9870/x", "s3://nobody@b/x"]
)
def test_a_missing_connection_is_named(url):
    assert connection_options("hdfs", "nobody") is None
    use_connections()
    with pytest.raises(InputError, match="no Airflow connection 'nobody', which the URL names"):
        tables.open_table(url)
    stores.look_up_with(None)
    with pytest.raises(
        InputError, match="an Airflow connection, but this process runs outside Airflow"
    ):
        tables.open_table(url)


def test_without_any_connection_hdfs_says_what_may_be_done(monkeypatch):
    monkeypatch.delenv(WEBHDFS_VARIABLE, raising=False)
    use_connections()
    with pytest.raises(
        InputError, match=r"create the connection webhdfs_default, set MONDRIAN_OPS"
    ):
        tables.open_table("hdfs://nn/x")


def test_a_password_in_a_url_is_refused_and_not_repeated():
    with pytest.raises(InputError, match="the URL holds a password") as caught:
        tables.open_table("webhdfs://alice:hunter2@nn:9870/x")
    assert "hunter2" not in str(caught.value)
