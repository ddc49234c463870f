"""The command line with ``engine: spark``: on a Spark Connect server, or on a Spark of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from job_files import write_job, write_people
from local_airflow import free_port
from mondrian_ops import cli
from published_text import in_any_order
from servers.java import java_home
from servers.spark import SparkCluster

PLUGINS = Path(cli.__file__).resolve().parents[2]
SPARK = ("--set", "engine=spark")
PROGRESS = re.compile(r" *\d+\.\d s  (profile|partition|anonymize|wrap up): [\d,]+ of [\d,]+\n")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job file beside its data."""
    write_people(tmp_path)
    return write_job(tmp_path)


def mondrian_ops(*arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """What a shell sees, in an environment that says of Spark what ``settings`` say."""
    inherited = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    return subprocess.run(
        [sys.executable, "-m", "mondrian_ops", *map(str, arguments)],
        env={
            **inherited,
            "JAVA_HOME": java_home() or "",
            "PYTHONPATH": str(PLUGINS),
            "PYTHONIOENCODING": "utf-8",
            **settings,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def succeeds(result: subprocess.CompletedProcess[str]) -> str:
    """What it printed; on standard error there is progress, or nothing."""
    assert result.returncode == 0, result
    assert not PROGRESS.sub("", result.stderr)
    return result.stdout


def fails(result: subprocess.CompletedProcess[str]) -> str:
    """The one line on standard error of a command that failed, after that of its progress."""
    assert result.returncode == 1, result
    said = PROGRESS.sub("", result.stderr)
    assert said.count("\n") == 1, said
    assert said.startswith("mondrian_ops: ")
    assert "Secret" not in said
    return said


def released(job: Path) -> list[str]:
    return in_any_order(pq.read_table(job.parent / "out"))


@pytest.mark.java
def test_on_a_spark_connect_server(job: Path, spark_cluster: SparkCluster) -> None:
    succeeds(mondrian_ops("run", job))
    expected = released(job)
    on = {"SPARK_REMOTE": spark_cluster.remote}
    report = json.loads(succeeds(mondrian_ops("run", job, *SPARK, "--json", **on)))
    assert report["job"]["engine"] == "spark"
    assert released(job) == expected
    shown = succeeds(mondrian_ops("plan", job, *SPARK, **on))
    assert shown == succeeds(mondrian_ops("plan", job))
    said = fails(mondrian_ops("run", job, *SPARK, "--set", "l=4", **on))
    assert "'income'" in said
    assert released(job) == expected
    assert sorted(path.name for path in job.parent.iterdir()) == [
        "job.yaml",
        "out",
        "people.parquet",
    ]


@pytest.mark.java
def test_on_a_spark_of_its_own(job: Path) -> None:
    succeeds(mondrian_ops("run", job))
    expected = released(job)
    application = ("--set", "spark={shape: application, conf: {spark.driver.memory: 600m}}")
    assert succeeds(mondrian_ops("run", job, *SPARK, *application, "--quiet")) == ""
    assert released(job) == expected


def test_without_java(job: Path, tmp_path: Path) -> None:
    said = fails(mondrian_ops("run", job, *SPARK, JAVA_HOME=str(tmp_path / "nowhere")))
    for word in ("engine: spark", "Java 17", "JAVA_HOME", "SPARK_REMOTE"):
        assert word in said
    assert not (tmp_path / "out").exists()


def test_without_pyspark(job: Path, tmp_path: Path) -> None:
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for library in Path(sysconfig.get_path("purelib")).iterdir():
        if not library.name.startswith("pyspark"):
            (libraries / library.name).symlink_to(library)
    run = (
        f"import sys; sys.path += [{str(PLUGINS)!r}, {str(libraries)!r}]; "
        "from mondrian_ops.__main__ import main; sys.exit(main())"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", run, "run", str(job), *SPARK],
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    said = fails(result)
    assert "needs PySpark" in said
    assert "install the extra 'spark'" in said


@pytest.mark.soak
def test_without_an_answer(job: Path) -> None:
    nobody = f"sc://127.0.0.1:{free_port()}"
    said = fails(mondrian_ops("run", job, *SPARK, SPARK_REMOTE=nobody))
    assert "Spark Connect" in said
