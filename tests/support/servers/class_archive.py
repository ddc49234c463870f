"""Spark's classes as an archive that each JVM maps, instead of loading and checking them anew.

It takes six of sixteen seconds of processor time off a JVM that runs one small query (JEP 350). A
JVM whose class path is not that of the archive runs without it, and says nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from local_airflow import CHECKOUT, free_port
from servers.java import java_home
from servers.processes import ServerError

SPARK_HOME = Path(find_spec("pyspark").origin).parent

CONF = SPARK_HOME / "conf"
"""Spark's SPARK_CONF_DIR, on the class path: the same for all, and not there, as archives ask."""

BRIEF = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""A JVM that lives for seconds gains nothing from the compiler that is meant for hours."""

# What most JVMs of the tests do: a driver that serves Spark Connect, and tasks with Python in them.
_PROGRAM = """
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as Client

def same(batches):
    yield from batches

server = SparkSession.builder.getOrCreate()
port = server.conf.get("spark.connect.grpc.binding.port")
session = Client.builder.remote(f"sc://127.0.0.1:{port}").create()
rows = session.createDataFrame(pa.table({"number": list(range(100))}))
rows.groupBy("number").count().write.parquet("rows")
read = session.read.parquet("rows")
read.mapInArrow(same, read.schema).repartition(2).mapInArrow(same, read.schema).toArrow()
session.stop()
server.stop()
"""


def archived() -> list[str]:
    """The options of a JVM that maps the classes, quoted; the first to ask makes the archive."""
    state = hashlib.sha256()
    for path in (SPARK_HOME, SPARK_HOME / "jars", Path(java_home() or "") / "release"):
        state.update(f"{path} {path.stat().st_mtime_ns}".encode())
    archive = CHECKOUT / "build" / f"spark-{state.hexdigest()[:12]}.jsa"
    archive.parent.mkdir(exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            _make(archive)
    return [f'"-XX:SharedArchiveFile={archive}"', "-Xlog:disable"]


def _make(archive: Path) -> None:
    new = archive.with_suffix(".new")
    options = {
        "spark.connect.grpc.binding.port": free_port(),
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.sql.artifact.isolation.enabled": "false",
        "spark.ui.enabled": "false",
    }
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(_PROGRAM)
        done = subprocess.run(
            [
                str(SPARK_HOME / "bin" / "spark-submit"),
                *("--master", "local[1]"),
                *(f"--conf={name}={value}" for name, value in options.items()),
                str(program),
            ],
            cwd=folder,
            env={
                **os.environ,
                "JAVA_HOME": java_home() or "",
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_CONF_DIR": str(CONF),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_SUBMIT_OPTS": f'{BRIEF} -Xlog:disable "-XX:ArchiveClassesAtExit={new}"',
            },
            capture_output=True,
            text=True,
        )
    if done.returncode or not new.exists():
        raise ServerError(f"no archive of Spark's classes:\n{done.stdout}{done.stderr[-1500:]}")
    new.replace(archive)
