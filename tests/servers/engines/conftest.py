"""The engines, each made once: a local one, and one on a Spark cluster of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from engines.samples import Site
from mondrian_ops.engines.local import LocalEngine

if TYPE_CHECKING:
    from faults.mailbox import Mailbox
    from mondrian_ops.engines import Engine
    from mondrian_ops.engines.spark import SparkEngine
    from servers.spark import SparkCluster


@pytest.fixture(scope="session")
def spark_engine(spark_cluster: SparkCluster) -> Iterator[SparkEngine]:
    """The Spark engine over Spark Connect; splits of few rows, so that a small dataset has many."""
    from mondrian_ops.engines.spark import SparkEngine, session_of

    session = session_of(spark_cluster.remote)
    yield SparkEngine(session, split_rows=100)
    session.stop()


@pytest.fixture(scope="package")
def mailbox(tmp_path_factory: pytest.TempPathFactory) -> Mailbox:
    """Where the Python workers of the fragile cluster are told to fail."""
    from faults.mailbox import Mailbox

    mailbox = Mailbox(tmp_path_factory.mktemp("mailbox"))
    mailbox.make()
    return mailbox


@pytest.fixture(scope="package")
def fragile_cluster(
    tmp_path_factory: pytest.TempPathFactory, mailbox: Mailbox
) -> Iterator[SparkCluster]:
    """A cluster to do harm to; slow tasks are run twice there."""
    from faults.spark_harness import watching
    from servers.fixtures import KEPT
    from servers.needs import needs
    from servers.spark import SparkCluster

    needs("java")
    conf = {
        **KEPT,
        **watching(mailbox),
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.5",
        # That of a task which is the only one of its stage.
        "spark.speculation.task.duration.threshold": "5s",
    }
    with SparkCluster(
        tmp_path_factory.mktemp("faults"), conf=conf, brief=True, hosts_apart=True
    ) as cluster:
        yield cluster


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.java)])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    if request.param == "local":
        return LocalEngine()
    found: SparkEngine = request.getfixturevalue("spark_engine")
    return found


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The dataset that the tests of engines share; none of them changes it."""
    return Site(tmp_path_factory.mktemp("site"))
