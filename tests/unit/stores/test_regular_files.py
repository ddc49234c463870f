"""Special files in place of those that somebody names: refused, and never waited for."""

from __future__ import annotations

import os
import socket

import pytest

from jobs import minimal
from mondrian_ops import pipeline, publish, stores
from mondrian_ops.catalogue import secret_key
from mondrian_ops.catalogue.database import Catalogue
from mondrian_ops.catalogue.place import Place
from mondrian_ops.errors import (
    HierarchyError,
    InputError,
    JobError,
    MondrianOpsError,
    StorageError,
)
from mondrian_ops.job.job import Job
from mondrian_ops.nightly.landing import read_landing
from mondrian_ops.publish import digest_of, manifest, policy_check
from mondrian_ops.stores import policies, regular_files
from mondrian_ops.stores.files import open_file, open_stream
from mondrian_ops.stores.regular_files import open_regular

# By the name of a file, who opens it, given its folder, and with what it is refused.
OPENED = {
    "job.yaml": (lambda at: stores.read_job(str(at / "job.yaml")), JobError),
    "ages.csv": (lambda at: stores.read_hierarchy(str(at / "ages.csv")), HierarchyError),
    "_SUCCESS": (lambda at: manifest.read(str(at)), StorageError),
    "_report.json": (lambda at: publish.report_of(str(at)), StorageError),
    "part-0.parquet": (lambda at: pipeline.verify(Job.from_dict(minimal()), str(at)), InputError),
    "part-1.parquet": (lambda at: digest_of(str(at / "part-1.parquet")), StorageError),
    "key": (lambda at: secret_key.read(None, str(at / "key"), may_make=True), StorageError),
    "stream": (lambda at: open_stream(str(at / "stream")), StorageError),
    "file": (lambda at: open_file(str(at / "file")), StorageError),
    "c.db": (lambda at: Catalogue(Place.of(str(at / "c.db"))).is_there, StorageError),
}


@pytest.mark.parametrize("name", OPENED)
def test_a_pipe_is_refused_wherever_a_file_is_named(tmp_path, name):
    os.mkfifo(tmp_path / name)
    opens, error = OPENED[name]
    with pytest.raises(error, match=rf"{name}: is a named pipe, not a regular file"):
        opens(tmp_path)


def test_policies_in_a_pipe_refuse_every_job(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "policies.yaml")
    monkeypatch.setattr(policies, "_in_use", str(tmp_path / "policies.yaml"))
    with pytest.raises(JobError, match=r"is a named pipe, .* no job runs until an administrator"):
        policy_check.check_job(Job.from_dict(minimal()))


@pytest.mark.parametrize("name", ["_SUCCESS", "_report.json"])
def test_an_output_with_a_pipe_in_it_is_refused(tmp_path, name):
    (tmp_path / "in.csv").write_text("age\n1\n")
    out = tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / name)
    (out / "_report.json").touch()
    with pytest.raises(StorageError, match=r"named pipe|not a release"):
        publish.check_output(str(tmp_path / "in.csv"), str(out))


def test_a_drop_whose_marker_is_a_pipe_is_incomplete(tmp_path):
    day = tmp_path / "people" / "2025-06-01"
    day.mkdir(parents=True)
    (day / "p.csv").write_text("a\n1\n")
    os.mkfifo(day / "_SUCCESS")
    (drop,) = read_landing(str(tmp_path)).drops["people"]
    assert drop._marked() is None


def test_working_files_with_a_pipe_for_their_owner_belong_to_nobody(tmp_path):
    work = tmp_path / ".out.mondrian_ops-0123456789ab"
    work.mkdir()
    os.mkfifo(work / "owner.json")
    assert publish.WorkDir(str(work)).owner is None


def test_a_socket_and_a_device_are_refused(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        with pytest.raises(StorageError, match="s: is a socket"):
            open_regular(str(tmp_path / "s"))
    with pytest.raises(StorageError, match="/dev/zero: is a device"):
        open_regular("/dev/zero")


def test_what_becomes_a_pipe_before_it_is_opened_is_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "p")
    looked_at: list[int] = []
    refuse = regular_files.refuse_special

    def late(path: str, mode: int, *more: object) -> None:
        looked_at.append(mode)
        if len(looked_at) > 1:  # the first look was at another file
            refuse(path, mode, *more)

    monkeypatch.setattr(regular_files, "refuse_special", late)
    with pytest.raises(JobError, match="p: is a named pipe"):
        open_regular(str(tmp_path / "p"), JobError)
    assert len(looked_at) == 2


def test_other_errors_are_those_of_the_machine(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_regular(str(tmp_path / "absent"))
    with pytest.raises(IsADirectoryError):
        open_regular(str(tmp_path))
    assert not issubclass(FileNotFoundError, MondrianOpsError)
