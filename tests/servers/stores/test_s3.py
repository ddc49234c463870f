"""What S3 cannot do in one step, and what its readers see meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.publish import WorkDir, check_output, objects, publish, read_release, work_path
from mondrian_ops.stores import write_file
from mondrian_ops.tables import open_table
from servers.s3 import Request
from servers.stores import S3Folder
from staged_releases import stage, version_on

pytestmark = pytest.mark.s3

PUBLISH = """
import sys
from mondrian_ops.publish import publish
publish(*sys.argv[1:])
"""


def versions(read):
    return {v for file in read for batch in file.batches() for v in batch["version"].to_pylist()}


class Killer:
    """Kills a process with its n-th request that changes something, which is then carried out."""

    def __init__(self, number: int) -> None:
        self.left = number
        self._lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self, request: Request) -> None:
        if request.method == "GET" or request.method == "HEAD":
            return
        with self._lock:
            self.left -= 1
            if self.left == 0:
                self.process.kill()
                self.process.wait()


def publish_and_kill(folder: S3Folder, token: str, number: int) -> int:
    """Publish in a process that is killed with its n-th change; its exit code."""
    killer = Killer(number)
    killer.process = subprocess.Popen(
        [sys.executable, "-c", PUBLISH, folder.url("staging"), folder.url("out"), token],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    folder.server.watch = killer
    try:
        return killer.process.wait()
    finally:
        folder.server.watch = None
        folder.server.settle()


@pytest.mark.parametrize("has_old", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_killed_at_any_step_the_manifest_names_one_whole_release(s3_folder, has_old):
    stands = []
    for number in range(1, 60):
        for leftover in ("out", "staging"):
            WorkDir(s3_folder.url(leftover)).remove()
        if has_old:
            stage(s3_folder.url("staging"), 1)
            publish(s3_folder.url("staging"), s3_folder.url("out"), "old")
        stage(s3_folder.url("staging"), 2)
        code = publish_and_kill(s3_folder, "new", number)
        stands.append(version_on(s3_folder) if "_SUCCESS" in s3_folder.names("out") else 0)
        if stands[-1]:
            read = read_release(s3_folder.url("out"))
            assert versions(read) == {stands[-1]}
        check_output("/in", s3_folder.url("out"))  # what a next run would do first
        left = [name for name in s3_folder.names("out") if name.startswith("part-")]
        assert all(name.endswith(f"-v{stands[-1]}.parquet") for name in left)
        publish(s3_folder.url("staging"), s3_folder.url("out"), "new")
        assert version_on(s3_folder) == 2
        assert s3_folder.names("out") == [
            "_SUCCESS",
            "_report.json",
            "part-00000-v2.parquet",
            "part-00001-v2.parquet",
        ]
        assert s3_folder.names() == ["out"]
        if code == 0:
            break
        assert code == -signal.SIGKILL
    else:
        pytest.fail("never ran to its end")
    # The old one until the one step, the new one from then on.
    assert stands == sorted(stands)
    assert {*stands} == {1 if has_old else 0, 2}
    assert stands.count(1 if has_old else 0) >= 4
    assert stands.count(2) >= 4


def test_the_retry_of_a_killed_publication_copies_what_is_missing(s3_folder):
    parts = 60
    stage(s3_folder.url("staging"), 1, parts)
    staged = int(time.time())
    while int(time.time()) == staged:  # a copy has to be younger than its part
        time.sleep(0.01)
    publish_and_kill(s3_folder, "new", 20)
    there = sum(name.startswith("part-") for name in s3_folder.names("out"))
    assert 0 < there < parts
    s3_folder.server.requests.clear()
    publish(s3_folder.url("staging"), s3_folder.url("out"), "new")
    copied = [
        each
        for each in s3_folder.server.requests
        if each.method == "PUT" and "/out/part-" in each.path
    ]
    assert len(copied) == parts - there
    assert version_on(s3_folder) == 1
    assert len(s3_folder.names("out")) == parts + 2
    assert s3_folder.names() == ["out"]


def test_a_first_publication_that_was_killed_stands_in_nobodys_way(s3_folder):
    stage(s3_folder.url("staging"), 1)
    publish_and_kill(s3_folder, "new", 5)  # the manifest is copied next
    assert "_report.json" in s3_folder.names("out")
    assert "_SUCCESS" not in s3_folder.names("out")
    check_output("/in", s3_folder.url("out"))  # what a next run would do first
    assert s3_folder.names("out") == []
    publish(s3_folder.url("staging"), s3_folder.url("out"), "new")
    assert version_on(s3_folder) == 1


def test_readers_that_follow_the_manifest_read_one_release_while_another_comes(s3_folder):
    stage(s3_folder.url("staging"), 1)
    publish(s3_folder.url("staging"), s3_folder.url("out"), "old")
    stage(s3_folder.url("staging"), 2)
    publish_and_kill(s3_folder, "new", 4)  # the marker, two parts, the report
    listed = [name for name in s3_folder.names("out") if name.startswith("part-")]
    assert len(listed) == 4  # who lists, sees both
    assert [file.name for file in read_release(s3_folder.url("out"))] == [
        "part-00000-v1.parquet",
        "part-00001-v1.parquet",
    ]


def test_a_run_that_begins_during_a_publication_cannot_make_it_a_damaged_one(
    s3_folder, monkeypatch
):
    stage(s3_folder.url("staging"), 1)
    publish(s3_folder.url("staging"), s3_folder.url("out"), "old")
    stage(s3_folder.url("staging"), 2)
    refuse_loss = objects._refuse_loss

    def begun_meanwhile(*arguments):
        check_output("/in", s3_folder.url("out"))
        refuse_loss(*arguments)

    with monkeypatch.context() as patched, pytest.raises(OSError, match="2 of the copied parts"):
        patched.setattr(objects, "_refuse_loss", begun_meanwhile)
        publish(s3_folder.url("staging"), s3_folder.url("out"), "new")
    assert versions(read_release(s3_folder.url("out"))) == {1}
    publish(s3_folder.url("staging"), s3_folder.url("out"), "new")
    assert version_on(s3_folder) == 2


def test_a_part_that_the_manifest_names_and_that_is_gone_is_an_error(s3_folder):
    stage(s3_folder.url("staging"), 1)
    publish(s3_folder.url("staging"), s3_folder.url("out"), "old")
    s3_folder.delete("out/part-00001-v1.parquet")
    with pytest.raises(InputError, match=r"part-00001-v1\.parquet: missing, though _SUCCESS"):
        list(read_release(s3_folder.url("out")))


def test_what_a_bucket_does_not_allow_or_have_is_said(s3_folder, monkeypatch):
    with pytest.raises(InputError, match="no such file or directory"):
        open_table("s3://no-such-bucket/in")
    with pytest.raises(StorageError, match="cannot be created"):
        WorkDir(work_path("s3://no-such-bucket/out", "run")).create()
    with pytest.raises(FileNotFoundError):
        write_file("s3://no-such-bucket/f", b"")
    with pytest.raises(InputError, match="names no bucket"):
        open_table("s3:///in")


def test_a_server_that_does_not_answer_is_an_error_that_a_retry_may_cure(s3_folder, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(OSError, match="AWS Error NETWORK_CONNECTION"):
        open_table(s3_folder.url("in"))
