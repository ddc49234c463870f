"""The servers as fixtures: started for the first test that asks, stopped after the last."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from servers.azure import azure_server, connection_string
from servers.gcs import gcs_server
from servers.hdfs import Hdfs
from servers.needs import NEEDS, needs
from servers.postgres import new_database, postgres_server
from servers.proxy import Proxy
from servers.redis import redis_server
from servers.s3 import S3
from servers.spark import SparkCluster
from servers.stores import USER, AzureFolder, GcsFolder, HdfsFolder, ObjectFolder, S3Folder, Store

KEPT = {
    "spark.dynamicAllocation.executorIdleTimeout": "1h",
    "spark.dynamicAllocation.shuffleTracking.timeout": "1h",
}
"""Executors stay where no other application waits for them: to start some takes ten seconds."""

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A Spark master, two workers and a Connect server."""
    needs("java")
    with SparkCluster(tmp_path_factory.mktemp("spark"), conf=KEPT, brief=True) as cluster:
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


@pytest.fixture(scope="session")
def airflow_database(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Gives at each call SQLAlchemy's URL of a new database for an Airflow.

    An empty URL on a machine without PostgreSQL: SQLite then, which may turn away one of several
    who write at once.
    """
    if NEEDS["postgres"]():
        return str
    server: str = request.getfixturevalue("postgres_url")
    return lambda: new_database(server, f"airflow_{next(_NUMBERS)}")


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """An HDFS of two NameNodes and two DataNodes."""
    needs("hdfs")
    with Hdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3]:
    """An S3 server."""
    needs("s3")
    with S3() as server:
        yield server


@pytest.fixture(scope="session")
def gcs_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Google Cloud Storage, behind a proxy."""
    needs("gcs")
    with gcs_server(tmp_path_factory.mktemp("gcs")) as server:
        yield server


@pytest.fixture(scope="session")
def azure_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Azure's storage, behind a proxy."""
    needs("azure")
    with azure_server(tmp_path_factory.mktemp("azure")) as server:
        yield server


@pytest.fixture
def gcs_folder(gcs_emulator: Proxy, monkeypatch: pytest.MonkeyPatch) -> GcsFolder:
    """A bucket for one test, to which the environment leads."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_emulator.endpoint)
    return GcsFolder(gcs_emulator, f"bucket-{next(_NUMBERS)}")


@pytest.fixture
def azure_folder(azure_emulator: Proxy, monkeypatch: pytest.MonkeyPatch) -> AzureFolder:
    """A container for one test, to which the environment leads."""
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection_string(azure_emulator))
    return AzureFolder(azure_emulator, f"container-{next(_NUMBERS)}")


@pytest.fixture(
    params=[
        pytest.param(f"{name}_folder", marks=getattr(pytest.mark, name), id=name)
        for name in ("s3", "gcs", "azure")
    ]
)
def object_folder(request: pytest.FixtureRequest) -> ObjectFolder:
    """A bucket on each object store in turn."""
    folder: ObjectFolder = request.getfixturevalue(request.param)
    return folder


@pytest.fixture
def hdfs_folder(hdfs_server: Hdfs, monkeypatch: pytest.MonkeyPatch) -> HdfsFolder:
    """A folder on HDFS for one test, which acts as the user it belongs to."""
    monkeypatch.setenv("HADOOP_USER_NAME", USER)
    return HdfsFolder(hdfs_server, f"/tests/{next(_NUMBERS)}")


@pytest.fixture
def s3_folder(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> S3Folder:
    """A bucket for one test, to which the environment leads."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return S3Folder(s3_server, f"bucket-{next(_NUMBERS)}")


@pytest.fixture(
    params=[
        pytest.param("hdfs_folder", marks=pytest.mark.hdfs, id="hdfs"),
        pytest.param("s3_folder", marks=pytest.mark.s3, id="s3"),
    ]
)
def store(request: pytest.FixtureRequest) -> Store:
    """A folder on each remote store in turn."""
    folder: Store = request.getfixturevalue(request.param)
    return folder
