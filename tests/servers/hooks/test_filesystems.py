"""``ObjectStoragePath`` on a real HDFS: by a call, and by the wheel's entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import own_wheel
from local_airflow import CHECKOUT
from servers.stores import HdfsFolder

pytestmark = pytest.mark.hdfs

USE = textwrap.dedent(
    """
    import sys
    from airflow.sdk import ObjectStoragePath

    if sys.argv[2] == "attached":
        from mondrian_ops.hooks.filesystems import attach_hdfs
        attach_hdfs("webhdfs_default")

    base = ObjectStoragePath(sys.argv[1])
    path = base / "people.csv"
    with path.open("wb") as file:
        file.write(b"n" * 3_000_000)
    assert path.exists() and not (base / "absent").exists()
    assert path.stat().st_size == 3_000_000
    assert path.read_bytes() == b"n" * 3_000_000
    (base / "deep" / "er").mkdir(parents=True)
    path.rename(base / "deep" / "renamed.csv")
    assert [each.name for each in base.iterdir()] == ["deep"]
    assert sorted(each.name for each in (base / "deep").glob("*")) == ["er", "renamed.csv"]
    (base / "deep" / "renamed.csv").unlink()
    assert [each.name for each in (base / "deep").iterdir()] == ["er"]
    print("used", base.fs.__class__.__module__)
    """
)


def use(folder: HdfsFolder, url: str, how: str, packages: Path) -> subprocess.CompletedProcess[str]:
    """Run the script in a process of its own, which finds this project in ``packages``."""
    port = int(folder.server.servers[0].rpartition(":")[2])
    fields = {"conn_type": "webhdfs", "host": "127.0.0.1", "port": port, "login": "alice"}
    return subprocess.run(
        [sys.executable, "-c", USE, url, how],
        env={
            **os.environ,
            "PYTHONPATH": str(packages),
            "AIRFLOW_CONN_WEBHDFS_DEFAULT": json.dumps(fields),
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The project's wheel, installed into a folder of its own."""
    target = tmp_path_factory.mktemp("installed") / "site"
    own_wheel.installed(own_wheel.built(tmp_path_factory), target)
    return target


@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])
def test_the_wheel_s_entry_point_is_enough(hdfs_folder, installed, scheme):
    url = f"{scheme}://webhdfs_default@namenode:8020{hdfs_folder.path()}"
    done = use(hdfs_folder, url, "found", installed)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "used mondrian_ops.stores.webhdfs" in done.stdout


def test_a_plugins_folder_needs_a_call(hdfs_folder):
    url = f"hdfs://webhdfs_default@namenode:8020{hdfs_folder.path()}"
    plugins = CHECKOUT / "plugins"
    done = use(hdfs_folder, url, "attached", plugins)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "used mondrian_ops.stores.webhdfs" in done.stdout
    without = use(hdfs_folder, url, "found", plugins)
    assert without.returncode != 0
    assert "No filesystem registered for scheme hdfs" in without.stderr
