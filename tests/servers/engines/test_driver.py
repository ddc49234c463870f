"""Rows stay on the cluster: all that comes back to who drives it, byte by byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sql_oracle
from mondrian_ops import pipeline
from mondrian_ops.engines.spark import SparkEngine
from servers.spark import SparkCluster

pytestmark = pytest.mark.java

ROWS = 60_000


class Wiretap(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):
    """Keeps what a Spark Connect server answers."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        call = continuation(details, request)
        self.heard.append(call.result().SerializeToString())
        return call

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return _Tapped(continuation(details, request), self.heard)


class _Tapped:
    def __init__(self, call: Any, heard: list[bytes]) -> None:
        self._call = call
        self._heard = heard

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        answer = next(self._call)
        self._heard.append(answer.SerializeToString())
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)


@pytest.fixture(scope="module")
def wiretap() -> Wiretap:
    return Wiretap()


@pytest.fixture(scope="module")
def tapped_session(spark_cluster: SparkCluster, wiretap: Wiretap) -> Iterator[Any]:
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession

    channel = DefaultChannelBuilder(spark_cluster.remote)
    channel.add_interceptor(wiretap)
    session = SparkSession.builder.channelBuilder(channel).create()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def tapped_engine(tapped_session: Any) -> SparkEngine:
    return SparkEngine(tapped_session, split_rows=10_000)


@pytest.mark.parametrize("shape", ["fragments", "application"])
def test_no_row_comes_back(
    shape: str,
    tapped_session: Any,
    tapped_engine: SparkEngine,
    wiretap: Wiretap,
    tmp_path: Path,
) -> None:
    """With the whole dataset as the sample, too: what comes are counts and summaries."""
    rng = np.random.default_rng(9)
    numbers = 10**12 + rng.permutation(ROWS)
    table = pa.table(
        {
            "ssn": [f"Ssn{at:06}" for at in range(ROWS)],
            "x": numbers,
            "y": rng.normal(size=ROWS),
            "zip": [f"Zip{at % 40:02}" for at in range(ROWS)],
            "note": [f"Remark{at:06}" for at in range(ROWS)],
            "illness": [f"Illness{at % 5}" for at in range(ROWS)],
        }
    )
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=5_000, compression="none")
    job = {
        "input": str(tmp_path / "in.parquet"),
        "output": str(tmp_path / "out"),
        "k": 5,
        "l": 2,
        "identifiers": ["ssn"],
        "quasi_identifiers": ["x", "y", "zip"],
        "sensitive": ["illness"],
        "partitioning": {"fragments": 6, "sample": 1.0},
        "engine": "spark",
        "cut": "median",
        "spark": {"shape": shape},
    }
    wiretap.heard.clear()
    report = pipeline.run(pipeline.load_job(job), engine=tapped_engine)
    assert report["partitioning"]["sample_rows"] == ROWS == report["rows"]["published"]
    heard = b"".join(wiretap.heard)
    for query in (sql_oracle.by_duckdb, sql_oracle.by_spark(tapped_session)):
        sql_oracle.agree(report, tmp_path / "out", query)
    assert b"equivalence_classes" in heard
    assert len(heard) < table.nbytes / 50
    assert b"Ssn" not in heard
    assert b"Remark" not in heard
    text = "".join(fragment["where"] for fragment in report["fragments"])
    for number in numbers[:3_000]:  # but where the plan cuts, and the ends of the range
        if number in (numbers.min(), numbers.max()) or str(number) in text:
            continue
        assert int(number).to_bytes(8, "little") not in heard
        assert str(number).encode() not in heard
