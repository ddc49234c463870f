"""The pages over an archive of made-up releases, without Airflow around them."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.api_fastapi.core_api.security import get_user
from fastapi import FastAPI
from fastapi.testclient import TestClient

from mondrian_ops.storage import ReportArchive
from mondrian_ops.web import reader
from mondrian_ops.web.pages import create


@pytest.fixture
def archive(tmp_path) -> ReportArchive:
    """An archive without releases."""
    return ReportArchive(str(tmp_path / "reports"))


@pytest.fixture
def hidden() -> set[str]:
    """The DAGs that the user of :func:`client` may not read."""
    return set()


@pytest.fixture
def client(archive, hidden, monkeypatch) -> TestClient:
    """A user who may read all DAGs but the hidden ones, at an Airflow below /airflow.

    test_access.py has the tests with Airflow's own users and permissions.
    """

    def readable(_user: Any, dag_ids: Any) -> set[str]:
        return set(dag_ids) - hidden

    monkeypatch.setattr(reader, "readable_dags", readable)
    app = create(archive)
    app.dependency_overrides[get_user] = lambda: None
    airflow = FastAPI(root_path="/airflow")
    airflow.mount("/mondrian_ops", app)
    return TestClient(airflow, base_url="http://testserver/airflow/mondrian_ops/")
