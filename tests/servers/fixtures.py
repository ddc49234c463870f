"""The servers as fixtures: started for the first test that asks, stopped after the last."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers.needs import needs
from servers.spark import SparkCluster


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A Spark master, two workers and a Connect server."""
    needs("java")
    with SparkCluster(tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster
