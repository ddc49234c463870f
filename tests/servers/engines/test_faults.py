"""Workers that are lost, tasks that run twice, a server that is gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.executors import Task, tasks, unfinished
from mondrian_ops import datasets, pipeline
from mondrian_ops.engines import Engine, spark
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.spark import SparkEngine, session_of
from published_text import in_any_order
from servers.processes import wait_until
from servers.spark import SparkCluster

pytestmark = pytest.mark.java

ROWS = 200_000
APPLICATION = {"shape": "application"}


@pytest.fixture(scope="module")
def cluster(fragile_cluster: SparkCluster) -> SparkCluster:
    """One of its own, for it does not survive unharmed."""
    return fragile_cluster


@pytest.fixture
def engine(cluster: SparkCluster) -> Iterator[SparkEngine]:
    session = session_of(cluster.remote)
    yield SparkEngine(session, split_rows=30_000)
    session.stop()


@pytest.fixture(scope="module")
def hands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Poker hands that take some seconds to cut, with a number for each."""
    path = tmp_path_factory.mktemp("hands") / "hands.parquet"
    datasets.generate("poker", rows=ROWS, seed=1, output=str(path))
    table = pq.read_table(path).append_column("row", pa.array(range(ROWS)))
    pq.write_table(table, path, row_group_size=20_000)
    return path


def job_of(hands: Path, output: Path, **keys: Any) -> Any:
    return pipeline.load_job(
        {
            "input": str(hands),
            "output": str(output),
            "k": 5,
            "l": 2,
            "quasi_identifiers": [f"{kind}{at}" for at in range(1, 6) for kind in "sr"],
            "sensitive": ["hand"],
            "unlisted": "publish",
            "cut": "lookahead",
            "cut_budget_s": 5,
            "partitioning": {"fragments": 3},
            "engine": "spark",
            **keys,
        }
    )


@pytest.fixture(scope="module")
def expected(hands: Path, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """The release that nothing disturbed."""
    output = tmp_path_factory.mktemp("expected") / "out"
    pipeline.run(job_of(hands, output), engine=LocalEngine())
    return pq.read_table(output)


class Going:
    """A run in a thread, and how far it is."""

    def __init__(self, job: Any, engine: Engine) -> None:
        self._begun: dict[str, threading.Event] = {
            name: threading.Event() for name in ("profile", "partition", "anonymize", "wrap_up")
        }
        pool = ThreadPoolExecutor(1)
        self._run: Future[Any] = pool.submit(pipeline.run, job, progress=self._told, engine=engine)
        pool.shutdown(wait=False)

    def _told(self, phase: str, done: int, total: int) -> None:
        self._begun[phase].set()

    def until(self, phase: str) -> None:
        wait_until(lambda: self._begun[phase].is_set() or self._run.done())

    def result(self) -> Any:
        return self._run.result(300)


def busy(cluster: SparkCluster, killed: set[Task]) -> int:
    """The number of a worker that is at one task for a second already."""
    since: dict[Task, float] = {}
    found: list[int] = []

    def look() -> bool:
        now = time.monotonic()
        for task in unfinished(cluster) - killed:
            if now - since.setdefault(task, now) > 1:
                found.append(task[1])
        return bool(found)

    wait_until(look)
    return found[0]


def used_last(cluster: SparkCluster) -> int:
    """The number of the worker that had the last task."""
    return max(tasks(cluster, "Running"))[1]


def numberless(table: pa.Table) -> list[str]:
    """The rows without their numbers: which of two equal hands is in a class is drawn by lot."""
    return in_any_order(table.drop_columns(["row"]))


def check(output: Path, expected: pa.Table) -> None:
    """Nothing is missing, nothing is there twice, nothing is different."""
    found = pq.read_table(output)
    assert sorted(found["row"].to_pylist()) == list(range(ROWS))
    assert numberless(found) == numberless(expected)
    assert [path.name for path in output.parent.iterdir()] == [output.name]


def connect_log(cluster: SparkCluster) -> str:
    return (cluster.logs / "connect.log").read_text(errors="replace")


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({"retrieval": "scatter"}, id="fragments", marks=pytest.mark.soak),
        pytest.param({"spark": APPLICATION}, id="application"),
    ],
)
def test_a_worker_that_is_killed_in_mid_fragment(
    keys: dict[str, Any],
    cluster: SparkCluster,
    engine: SparkEngine,
    hands: Path,
    expected: pa.Table,
    tmp_path: Path,
) -> None:
    """Costs no row and doubles none: Spark does the task again elsewhere."""
    killed = unfinished(cluster)
    going = Going(job_of(hands, tmp_path / "out", **keys), engine)
    going.until("anonymize")
    with lost(cluster, busy(cluster, killed)):
        going.result()
    check(tmp_path / "out", expected)


@pytest.mark.soak
def test_a_worker_that_is_killed_while_rows_are_scattered(
    cluster: SparkCluster, engine: SparkEngine, hands: Path, expected: pa.Table, tmp_path: Path
) -> None:
    going = Going(job_of(hands, tmp_path / "out", retrieval="scatter"), engine)
    going.until("profile")
    with lost(cluster, used_last(cluster)):
        going.result()
    check(tmp_path / "out", expected)


@contextmanager
def lost(cluster: SparkCluster, worker: int) -> Iterator[None]:
    """Without a worker, whose executor Spark must notice to have lost."""
    before = connect_log(cluster).count("Lost executor")
    cluster.kill_worker(worker)
    try:
        yield
        assert connect_log(cluster).count("Lost executor") > before
    finally:
        cluster.restart_worker(worker)


def test_a_task_that_runs_twice_is_harmless(
    cluster: SparkCluster, engine: SparkEngine, hands: Path, expected: pa.Table, tmp_path: Path
) -> None:
    """Two fragments of three are done; the third is begun again beside itself."""
    before = connect_log(cluster).count("as speculatable")
    for number in range(5):
        output = tmp_path / f"out-{number}"
        pipeline.run(job_of(hands, output, retrieval="scatter"), engine=engine)
        assert numberless(pq.read_table(output)) == numberless(expected)
        if connect_log(cluster).count("as speculatable") > before:
            return
    pytest.fail("no task was run twice")


def test_a_server_that_is_gone(
    cluster: SparkCluster, hands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that a retry may cure, and that says what to look for; the session is over."""
    monkeypatch.setattr(spark, "_TRIES", 2)  # a second of pauses instead of a minute
    sessions = [session_of(cluster.remote) for _ in range(2)]
    engines = [SparkEngine(session) for session in sessions]
    job = job_of(hands, tmp_path / "out")
    cluster.stop_connect()
    try:
        with pytest.raises(ConnectionError, match="Spark Connect server does not answer"):
            pipeline.run(job, engine=engines[0])
        assert sessions[0].is_stopped
        assert not list(tmp_path.iterdir())
    finally:
        cluster.restart_connect()
    with pytest.raises(ConnectionError, match="was restarted"):
        pipeline.run(job, engine=engines[1])
    assert sessions[1].is_stopped
