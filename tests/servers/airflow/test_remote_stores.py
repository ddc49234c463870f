"""The DAG in a real Airflow, on a real HDFS and an S3 server, through Airflow's connections."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest

from dag_runs import form, states
from servers.stores import S3Folder

pytestmark = pytest.mark.airflow

PEOPLE = 2000
DAG = "mondrian_anonymize"


def connect(project, name, **fields):
    """Make a connection as a user does, and a run through it."""
    body = {"connection_id": name, **fields, "extra": json.dumps(fields.get("extra", {}))}
    project.airflow.request("POST", "/api/v2/connections", body)


def check(project, store, source, output):
    """Anonymize from and to the store; look at the release, what is left, and what was logged."""
    people = project.root / "include" / "examples" / "people.csv"
    store.put("in/people.csv", people.read_bytes())
    job = project.job("unused", input=source, output=output)
    run = project.airflow.trigger(DAG, form(job, retrieval="scatter"))
    state = project.airflow.finish(DAG, run)
    tasks = project.airflow.tasks(DAG, run)
    logs = "".join(str(project.airflow.log_of(DAG, run, task)) for task in tasks)
    assert state == "success", logs[-3000:]
    assert states(tasks)["anonymize_fragment", "success"] == 3
    assert store.names("out") == ["people"]
    told = json.loads(store.fetch("out/people/_SUCCESS"))
    parts = [store.fetch(f"out/people/{each['name']}") for each in told["files"]]
    report = json.loads(store.fetch("out/people/_report.json"))
    assert sum(pq.read_table(io.BytesIO(part)).num_rows for part in parts) == PEOPLE
    assert report["rows"] == {"input": PEOPLE, "published": PEOPLE, "suppressed": 0}
    assert "published" in logs
    for text in (json.dumps(report), logs):
        assert "not_to_be_told" not in text


@pytest.mark.soak  # a run on HDFS and HDFS through a connection are shown without Airflow too
@pytest.mark.hdfs
def test_hdfs_by_the_connection_that_the_url_names(project, hdfs_folder):
    fields = {"host": "127.0.0.1", "login": "alice", "password": None}
    port = int(hdfs_folder.server.servers[0].rpartition(":")[2])
    connect(project, "hdfs_not_to_be_told", conn_type="webhdfs", port=port, **fields)
    base = f"hdfs://hdfs_not_to_be_told@namenode:8020{hdfs_folder.path()}"
    check(project, hdfs_folder, f"{base}/in", f"{base}/out/people")


@pytest.mark.s3
def test_s3_by_the_default_connection(project, s3_server):
    s3_folder = S3Folder(s3_server, "airflow-bucket")
    extra = {"endpoint_url": s3_server.endpoint, "region_name": "us-east-1"}
    fields = {"login": "a key", "password": "a secret not_to_be_told"}
    connect(project, "aws_default", conn_type="aws", extra=extra, **fields)
    check(project, s3_folder, s3_folder.url("in/*.csv"), s3_folder.url("out/people"))
