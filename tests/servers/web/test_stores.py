"""The plugin's pages over an archive on a remote store, reached as an Airflow connection says."""

from __future__ import annotations

import json

import pytest
from airflow.api_fastapi.core_api.security import get_user
from fastapi.testclient import TestClient

from mondrian_ops import storage
from mondrian_ops.airflow_plugin import _pages
from mondrian_ops.operators.report_archiving import release_id
from mondrian_ops.storage import ReportArchive
from mondrian_ops.web import reader
from releases import entry_id, keep


@pytest.fixture
def plugin(monkeypatch):
    """The plugin's application with the configuration of a test; everybody may read everything."""
    monkeypatch.setattr(reader, "readable_dags", lambda _user, dag_ids: set(dag_ids))

    def start() -> TestClient:
        app = _pages.__wrapped__()
        app.dependency_overrides[get_user] = lambda: None
        return TestClient(app)

    yield start
    storage.look_up_with(None)


@pytest.fixture
def on_s3(s3_folder, monkeypatch) -> None:
    """The archive is on S3, which only an Airflow connection says how to reach."""
    for name in s3_folder.server.environment:
        monkeypatch.delenv(name)
    connection = {
        "conn_type": "aws",
        "login": "test",
        "password": "test",
        "extra": {"region_name": "us-east-1", "endpoint_url": s3_folder.server.endpoint},
    }
    monkeypatch.setenv("AIRFLOW_CONN_REPORTS_CONN", json.dumps(connection))
    there = s3_folder.url("reports").replace("s3://", "s3://reports_conn@")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__REPORTS", there)


@pytest.mark.s3
def test_the_archive_may_be_on_s3(plugin, s3_folder, request):
    keep(ReportArchive(s3_folder.url("reports")), 1)
    request.getfixturevalue("on_s3")
    client = plugin()
    assert "1 release." in client.get("/releases").text
    page = client.get(f"/releases/{entry_id(1)}")
    assert "k-anonymity" in page.text
    assert "reports_conn" not in page.text


@pytest.mark.s3
def test_a_task_that_has_read_no_job_yet_links_to_its_release(on_s3):
    storage.look_up_with(None)
    try:
        assert release_id("a_dag", "a run", "", -1) == release_id("a_dag", "a run", "", -1)
    finally:
        storage.look_up_with(None)


def test_the_drift_that_is_marked_is_an_option(plugin, monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__REPORTS", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__DRIFT", "0.5")
    for number, loss in enumerate((0.10, 0.14)):
        keep(ReportArchive(str(tmp_path)), number, GCP=loss)
    assert "+40 %" not in plugin().get("/releases").text
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__DRIFT", "0.3")
    assert "+40 %" in plugin().get("/releases").text


def test_a_connection_that_is_missing_is_said_in_the_log_alone(plugin, monkeypatch, caplog):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__REPORTS", "s3://no_such_conn@bucket/reports")
    answer = plugin().get("/releases")
    assert answer.status_code == 503
    assert "no_such_conn" not in answer.text
    assert "no_such_conn" in caplog.text
