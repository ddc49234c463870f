"""The pages over a catalogue of made-up releases, without Airflow around them."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.core_api.security import get_user
from fastapi import FastAPI
from fastapi.testclient import TestClient

from mondrian_ops.catalogue import Catalogue, Place
from mondrian_ops.web import reader
from mondrian_ops.web.pages import create


@pytest.fixture
def catalogue(tmp_path) -> Catalogue:
    """A catalogue without releases."""
    return Catalogue(Place.of(str(tmp_path / "catalogue.db")))


@pytest.fixture
def hidden() -> set[str]:
    """The DAGs that the user of :func:`client` may not read."""
    return set()


@pytest.fixture
def user(hidden, monkeypatch) -> BaseUser:
    """A user who may read all DAGs but the hidden ones.

    test_access.py has the tests with Airflow's own users and permissions.
    """

    def readable(_user: Any, dag_ids: Any) -> set[str]:
        return set(dag_ids) - hidden

    monkeypatch.setattr(reader, "readable_dags", readable)
    return Mock(spec=BaseUser)


class Mounted:
    """The pages below an Airflow at /airflow, of the ``catalogue`` that is set."""

    def __init__(self) -> None:
        self.catalogue: Catalogue | None = None
        self.pages = create(lambda: self.catalogue)
        self.airflow = FastAPI(root_path="/airflow")
        self.airflow.mount("/mondrian_ops", self.pages)


@pytest.fixture(scope="session")
def mounted() -> Mounted:
    return Mounted()


@pytest.fixture
def client(mounted, catalogue, user) -> TestClient:
    """The user at an Airflow below /airflow."""
    mounted.catalogue = catalogue
    mounted.pages.dependency_overrides[get_user] = lambda: user
    return TestClient(mounted.airflow, base_url="http://testserver/airflow/mondrian_ops/")
