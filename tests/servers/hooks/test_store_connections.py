"""Real stores through a connection of Airflow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from mondrian_ops import stores, tables
from servers.stores import HdfsFolder, S3Folder


@pytest.fixture
def connected(monkeypatch) -> Iterator[Callable[..., None]]:
    """Make a connection as Airflow finds it in the environment, and use it."""
    from mondrian_ops.hooks.store_credentials import use_connections  # late: it imports Airflow

    def connect(name: str, **fields: object) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(fields))
        use_connections()

    yield connect
    stores.look_up_with(None)


@pytest.mark.hdfs
@pytest.mark.parametrize("conn_id", ["webhdfs_default", "other"])
def test_hdfs_through_a_connection(hdfs_folder: HdfsFolder, monkeypatch, connected, conn_id):
    monkeypatch.delenv("HADOOP_USER_NAME")
    ports = [server.rpartition(":")[2] for server in hdfs_folder.server.servers]
    fields = {"conn_type": "webhdfs", "host": "127.0.0.1", "port": int(ports[0]), "login": "alice"}
    connected(conn_id, **fields)
    named = "" if conn_id == "webhdfs_default" else f"{conn_id}@"
    hdfs_folder.put("in.csv", b"n\n1\n")
    source = tables.open_table(f"hdfs://{named}127.0.0.1:8020{hdfs_folder.path('in.csv')}")
    assert source.rows == 1
    stores.write_file(f"hdfs://{named}{hdfs_folder.path('f')}", b"by alice")
    (told,) = hdfs_folder.server.call("LISTSTATUS", hdfs_folder.path("f"))["FileStatuses"][
        "FileStatus"
    ]
    assert told["owner"] == "alice"


@pytest.mark.s3
@pytest.mark.parametrize("conn_id", ["aws_default", "other"])
def test_s3_through_a_connection(s3_folder: S3Folder, monkeypatch, connected, conn_id):
    for name in s3_folder.server.environment:
        monkeypatch.delenv(name)
    extra = {"endpoint_url": s3_folder.server.endpoint, "region_name": "us-east-1"}
    connected(conn_id, conn_type="aws", login="k", password="s", extra=extra)
    named = "" if conn_id == "aws_default" else f"{conn_id}@"
    s3_folder.put("in.csv", b"n\n1\n")
    url = s3_folder.url("in.csv").replace("s3://", f"s3://{named}")
    assert tables.open_table(url).rows == 1
    sent = json.loads(json.dumps(stores.options_of([url])))
    assert next(iter(sent.values()))["secret_key"] == "s"
