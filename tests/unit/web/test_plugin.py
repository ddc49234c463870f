"""The plugin's pages, over the catalogue that Airflow's configuration names."""

from __future__ import annotations

import pytest
from airflow.api_fastapi.core_api.security import get_user
from fastapi.testclient import TestClient

from mondrian_ops import airflow_plugin
from mondrian_ops.catalogue import Catalogue
from mondrian_ops.hooks import settings
from releases import keep


@pytest.fixture
def plugin(user):
    """The plugin's application with the configuration of a test; everybody may read everything."""

    def start() -> TestClient:
        airflow_plugin._catalogue.cache_clear()
        app = airflow_plugin._pages.__wrapped__()
        app.dependency_overrides[get_user] = lambda: user
        return TestClient(app)

    yield start
    airflow_plugin._catalogue.cache_clear()


def test_the_drift_that_is_marked_is_an_option(plugin, monkeypatch):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__DRIFT", "0.5")
    for number, loss in enumerate((0.10, 0.14)):
        keep(Catalogue(settings.catalogue_place()), number, GCP=loss)
    assert "+40 %" not in plugin().get("/releases").text
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__DRIFT", "0.3")
    assert "+40 %" in plugin().get("/releases").text


def test_a_connection_that_is_missing_is_said_in_the_log_alone(plugin, monkeypatch, caplog):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE_CONN_ID", "no_such_conn")
    client = plugin()
    answer = client.get("/releases")
    assert answer.status_code == 503
    assert "no_such_conn" not in answer.text
    assert "no_such_conn" in caplog.text
    monkeypatch.delenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE_CONN_ID")
    assert client.get("/releases").status_code == 200  # as soon as it is there


def test_the_pages_need_no_key(plugin, monkeypatch):
    keep(Catalogue(settings.catalogue_place()), 1)
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE_KEY_CONN_ID", "no_such_conn")
    assert "1 release." in plugin().get("/releases").text


def test_a_database_that_is_away_is_told_at_once(plugin, monkeypatch, caplog):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE_CONN_ID", "away")
    monkeypatch.setenv("AIRFLOW_CONN_AWAY", "postgres://somebody:wordpass@127.0.0.1:1/catalogue")
    answer = plugin().get("/releases")
    assert answer.status_code == 503
    assert "Traceback" not in answer.text
    assert "127.0.0.1" not in answer.text
    assert "wordpass" not in answer.text + caplog.text
    assert "the database does not answer" in caplog.text
