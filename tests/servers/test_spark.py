"""The Spark cluster of the tests is one: executors of their own, over Connect, that can be lost."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def session(spark_cluster):
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(spark_cluster.remote).create()
    yield session
    session.stop()


def counted(session):
    """Rows, process and whether this project is installed, by task."""

    def count(batches):  # in here, it travels by value: executors know no module of the tests
        import os
        from importlib.util import find_spec

        import pyarrow as pa

        yield pa.RecordBatch.from_pydict(
            {
                "rows": [sum(batch.num_rows for batch in batches)],
                "process": [os.getpid()],
                "installed": [find_spec("mondrian_ops") is not None],
            }
        )

    frame = session.range(0, 10_000, 1, 4)
    return frame.mapInArrow(count, "rows long, process long, installed boolean").toPandas()


def test_arrow_goes_to_executors_and_back_over_connect(session, spark_cluster):
    found = counted(session)
    assert found["rows"].sum() == 10_000
    assert len(found) == 4
    assert os.getpid() not in set(found["process"])
    assert not found["installed"].any()
    assert list(spark_cluster.events.iterdir())


@pytest.mark.soak  # a run that loses one is shown by the tests of the engine
def test_a_worker_that_is_lost_is_done_without(session, spark_cluster):
    spark_cluster.kill_worker(1)
    try:
        assert counted(session)["rows"].sum() == 10_000
    finally:
        spark_cluster.restart_worker(1)
    assert spark_cluster.alive_workers() == 2
