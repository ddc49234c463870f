"""The servers as fixtures: started for the first test that asks, stopped after the last."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers.needs import needs
from servers.postgres import postgres_server
from servers.redis import redis_server
from servers.spark import SparkCluster


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A Spark master, two workers and a Connect server."""
    needs("java")
    with SparkCluster(tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Redis."""
    needs("redis")
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """SQLAlchemy's URL of a database in a PostgreSQL."""
    needs("postgres")
    with postgres_server(tmp_path_factory.mktemp("postgres")) as url:
        yield url
