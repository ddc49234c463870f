"""What an HDFS does to its clients: NameNodes that fail over, DataNodes that die, permissions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import psutil
import pyarrow as pa
import pytest

from local_airflow import free_port
from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.publish import (
    FragmentWriter,
    WorkDir,
    check_output,
    publish,
    read_fragment,
    release_files,
    work_path,
)
from mondrian_ops.stores import read_file, write_file
from mondrian_ops.stores import webhdfs as hdfs_module
from mondrian_ops.stores.webhdfs import Hdfs
from mondrian_ops.tables import open_table
from servers.hdfs import BLOCK
from servers.stores import USER, HdfsFolder
from staged_releases import stage, version_on

pytestmark = pytest.mark.hdfs

CONTENT = os.urandom(BLOCK) * 24


@pytest.fixture
def folder(hdfs_folder: HdfsFolder) -> Iterator[HdfsFolder]:
    """A folder on an HDFS which is whole again afterwards."""
    yield hdfs_folder
    hdfs_folder.server.restart_data_nodes()


def client(folder: HdfsFolder, servers: list[str] | None = None, user: str = USER) -> Hdfs:
    """A client without connections."""
    return Hdfs(servers or folder.server.servers, user=user, skip_instance_cache=True)


# NameNodes


@pytest.mark.parametrize("first", ["unreachable", "standby"])
def test_the_next_name_node_is_asked(folder, first):
    active, standby = folder.server.servers
    servers = [f"http://127.0.0.1:{free_port()}" if first == "unreachable" else standby, active]
    hdfs = client(folder, servers)
    hdfs.mkdir(folder.path("a/b"))
    with hdfs.open(folder.path("a/b/f"), "wb") as file:
        file.write(CONTENT)
    assert hdfs.cat_file(folder.path("a/b/f")) == CONTENT
    hdfs.mv(folder.path("a/b/f"), folder.path("a/g"))
    hdfs.rm(folder.path("a/b"))
    assert folder.names("a") == ["g"]


def test_a_fail_over_in_between_is_followed(folder):
    hdfs = client(folder)
    hdfs.mkdir(folder.path("before"))
    folder.server.fail_over()
    hdfs.mkdir(folder.path("after"))
    assert folder.names() == ["after", "before"]
    folder.server.fail_over()
    assert [each.rpartition("/")[2] for each in hdfs.ls(folder.path())] == ["after", "before"]


def test_two_name_nodes_by_the_environment(folder, monkeypatch):
    active, standby = folder.server.servers
    monkeypatch.setenv("MONDRIAN_OPS_WEBHDFS", f"{standby}, {active}/")
    write_file(f"hdfs://nameservice{folder.path('f')}", b"content")
    assert folder.fetch("f") == b"content"
    assert read_file(f"hdfs://127.0.0.1:8020{folder.path('f')}") == b"content"
    with pytest.raises(InputError, match=r"other-cluster is not one of the known NameNodes"):
        read_file(f"hdfs://other-cluster:8020{folder.path('f')}")


def test_no_name_node_at_all_is_an_error_that_a_retry_may_cure(folder, monkeypatch):
    monkeypatch.setattr(hdfs_module, "_PAUSES", (0.0, 0.0))
    with pytest.raises(ConnectionError, match="no active NameNode answers at http://127"):
        client(folder, [f"http://127.0.0.1:{free_port()}"]).ls("/")
    with pytest.raises(ConnectionError, match="no active NameNode answers"):
        client(folder, folder.server.servers[1:]).ls("/")


# DataNodes


def in_use(folder: HdfsFolder) -> int:
    """The DataNode to which this process is connected."""
    hosts = [folder.server.data_node_host(number) for number in (0, 1)]
    connected = {
        each.raddr.ip
        for each in psutil.Process().net_connections("tcp")
        if each.raddr and each.raddr.ip in hosts and each.status == psutil.CONN_ESTABLISHED
    }
    (host,) = connected
    return hosts.index(host)


def test_a_read_goes_on_at_the_other_data_node_where_it_stopped(folder, monkeypatch):
    write_file(folder.url("f"), CONTENT)
    hdfs = client(folder)
    chunks = Hdfs._chunks
    killed = []

    def deadly(*arguments):
        for chunk in chunks(*arguments):
            if not killed:
                killed.append(in_use(folder))
                folder.server.kill_data_node(killed[0])
            yield chunk

    monkeypatch.setattr(Hdfs, "_chunks", deadly)
    assert hdfs.cat_file(folder.path("f")) == CONTENT
    asked = [
        (number, int(told["offset"]))
        for number, told in folder.server.requests("OPEN")
        if told["path"] == folder.path("f")
    ]
    ((number, offset),) = [each for each in asked if each[1] > 0]
    assert number != killed[0]
    assert offset < len(CONTENT)


def test_reads_do_without_a_dead_data_node_that_is_still_named(folder, monkeypatch):
    # Two attempts without a pause: by chance alone, one of these reads would fail.
    monkeypatch.setattr(hdfs_module, "_PAUSES", (0.0, 0.0))
    write_file(folder.url("f"), CONTENT)
    folder.server.kill_data_node(1)
    hdfs = client(folder)
    for _ in range(20):
        assert hdfs.cat_file(folder.path("f"), 3, 10) == CONTENT[3:10]


class Deadly:
    """Content that, once part of it has been sent, kills a DataNode."""

    def __init__(self, folder: HdfsFolder, which: str) -> None:
        self._folder = folder
        self._which = which
        self._at = 0
        self.killed: int | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = len(CONTENT) if whence == os.SEEK_END else offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int) -> bytes:
        if self._at > len(CONTENT) // 2 and self.killed is None:
            used = in_use(self._folder)
            self.killed = used if self._which == "serving" else 1 - used
            self._folder.server.kill_data_node(self.killed)
        self._at += size
        return CONTENT[self._at - size : self._at]

    def __iter__(self):
        raise AssertionError("sent by size")


@pytest.mark.parametrize(
    "which", ["serving", pytest.param("next in the pipeline", marks=pytest.mark.soak)]
)
def test_a_write_outlives_the_death_of_a_data_node(folder, which):
    content = Deadly(folder, which)
    client(folder).upload(folder.path("f"), content)
    assert content.killed is not None
    assert read_file(folder.url("f")) == CONTENT
    assert folder.names() == ["f"]


def test_no_data_node_at_all_leaves_what_was_there(folder, monkeypatch):
    monkeypatch.setattr(hdfs_module, "_PAUSES", (0.0, 0.0))
    write_file(folder.url("f"), b"old")
    for number in (0, 1):
        folder.server.kill_data_node(number)
    with pytest.raises(OSError, match=r"HDFS|DataNode"):
        write_file(folder.url("f"), CONTENT)
    with pytest.raises(OSError, match=r"HDFS|DataNode"):
        read_file(folder.url("f"))
    folder.server.restart_data_nodes()
    assert folder.names() == ["f"]
    assert folder.fetch("f") == b"old"


# permissions


def test_working_files_are_private(folder, monkeypatch):
    work = WorkDir(work_path(folder.url("out"), "run"))
    work.create()
    (name,) = folder.names()
    (status,) = folder.server.call("LISTSTATUS", folder.path())["FileStatuses"]["FileStatus"]
    assert (status["permission"], status["owner"]) == ("700", USER)
    write_file(folder.url(f"{name}/secret.csv"), b"n\n1\n")
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    with pytest.raises(InputError, match="permission denied; let this process read it"):
        open_table(folder.url(f"{name}/secret.csv"))
    with pytest.raises(PermissionError):
        work.read_json("run.json")


def test_an_output_this_user_may_not_write_is_refused_at_once(folder, monkeypatch):
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    with pytest.raises(StorageError, match="not a directory this user may write to"):
        check_output("/in", folder.url("deep/er/out"))
    with pytest.raises(StorageError, match="cannot be created; let this process write"):
        WorkDir(work_path(folder.url("out"), "run")).create()
    write_file(folder.server.url("/bob"), b"")
    with pytest.raises(StorageError, match="not a directory this user may write to"):
        check_output("/in", folder.server.url("/bob/out"))


def test_a_release_is_as_open_as_its_users_expect(folder):
    stage(folder.url("staging"), 1)
    publish(folder.url("staging"), folder.url("out"))
    told = folder.server.call("LISTSTATUS", folder.path())["FileStatuses"]["FileStatus"]
    assert [each["permission"] for each in told] == ["755"]
    told = folder.server.call("LISTSTATUS", folder.path("out"))["FileStatuses"]["FileStatus"]
    assert {each["permission"] for each in told} == {"644"}


# what fsspec's client does differently


def test_a_rename_that_cannot_be_is_an_error(folder):
    hdfs = client(folder)
    folder.put("a/x", b"1")
    folder.put("b/y", b"2")
    with pytest.raises(OSError, match="a"):
        hdfs.mv(folder.path("a"), folder.path("b"))
    with pytest.raises(FileNotFoundError):
        hdfs.mv(folder.path("c"), folder.path("d"))
    with pytest.raises(FileNotFoundError):
        hdfs.rm(folder.path("c"))
    assert (folder.names("a"), folder.names("b")) == (["x"], ["y"])


def test_an_error_is_no_content(folder, monkeypatch):
    monkeypatch.setattr(hdfs_module, "_PAUSES", (0.0,))
    folder.put("f", CONTENT)
    with client(folder).open(folder.path("f")) as file:
        folder.server.call("DELETE", folder.path("f"), method="DELETE")
        with pytest.raises(FileNotFoundError):
            file.read()


# publication

KILLED = textwrap.dedent(
    """
    import os, signal, sys
    from mondrian_ops.publish import publish
    from mondrian_ops.stores.webhdfs import Hdfs
    staging, output, token, step = sys.argv[1:]
    left = int(step)
    call = Hdfs._call

    def counted(self, op, method="get", *args, **kwargs):
        global left
        if method.lower() == "get":
            return call(self, op, method, *args, **kwargs)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return call(self, op, method, *args, **kwargs)

    Hdfs._call = counted
    publish(staging, output, token)
    """
)


@pytest.mark.parametrize("has_old", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_killed_at_any_step_old_or_new_stands_and_a_retry_publishes(folder, has_old):
    seen = set()
    for step in range(30):
        hdfs = client(folder)
        for leftover in folder.names():
            hdfs.rm(folder.path(leftover), recursive=True)
        if has_old:
            stage(folder.url("staging"), 1, parts=1)
            publish(folder.url("staging"), folder.url("out"), "old")
        stage(folder.url("staging"), 2, parts=1)
        folder.put("staging/.part-00000.parquet.0123.tmp", b"half")
        code = subprocess.run(
            [
                sys.executable,
                "-c",
                KILLED,
                folder.url("staging"),
                folder.url("out"),
                "new",
                str(step),
            ],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        ).returncode
        if has_old and "out" not in folder.names():
            seen.add("between")
            check_output("/in", folder.url("out"))  # what the next run does first
        stands = version_on(folder) if "out" in folder.names() else 0
        assert stands in ({1, 2} if has_old else {0, 2})
        seen.add(stands)
        publish(folder.url("staging"), folder.url("out"), "new")
        assert version_on(folder) == 2
        assert folder.names() == ["out"]
        assert all(name.startswith(("part-", "_")) for name in folder.names("out"))
        if code == 0:
            break
        assert code == -signal.SIGKILL
    else:
        pytest.fail("never ran to its end")
    assert seen == ({"between", 1, 2} if has_old else {0, 2})


def test_a_first_release_appears_whole(folder, monkeypatch):
    """Looked at after each change, where a process could have been killed."""
    seen = []
    call = Hdfs._call

    def watched(self, op, method="get", *arguments, **options):
        answer = call(self, op, method, *arguments, **options)
        if method.lower() != "get":
            seen.append(version_on(folder) if "out" in folder.names() else 0)
        return answer

    stage(folder.url("staging"), 1)
    with monkeypatch.context() as patched:
        patched.setattr(Hdfs, "_call", watched)
        publish(folder.url("staging"), folder.url("out"), "new")
    assert seen == sorted(seen)
    assert {*seen} == {0, 1}


def test_a_release_takes_as_many_requests_however_many_parts_it_has(folder, monkeypatch):
    def requests_for(parts: int) -> list[str]:
        asked = []
        stage(folder.url("staging"), parts, parts)
        call = Hdfs._call
        with monkeypatch.context() as patched:
            patched.setattr(
                Hdfs,
                "_call",
                lambda self, op, *args, **options: (
                    asked.append(op) or call(self, op, *args, **options)
                ),
            )
            publish(folder.url("staging"), folder.url("out"), f"of {parts}")
        assert version_on(folder) == parts
        return asked

    requests_for(1)
    few, many = requests_for(2), requests_for(9)
    assert few == many
    assert many.count("RENAME") == 3  # the old release, the new one, and _SUCCESS when written


def test_fragments_and_a_release_while_a_data_node_is_dead(folder):
    folder.server.kill_data_node(0)
    work = WorkDir(work_path(folder.url("out"), "run"))
    work.create()
    rows = pa.table({"n": range(1000)})
    with FragmentWriter(work) as writer:
        writer.append(0, rows)
    assert read_fragment(work, 0).equals(rows)
    stage(work.staging, 1)
    publish(work.staging, folder.url("out"), work.token)
    assert (
        sum(batch.num_rows for file in release_files(folder.url("out")) for batch in file.batches())
        == 20
    )
