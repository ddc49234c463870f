from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from mondrian_ops.errors import StorageError
from mondrian_ops.publish import (
    FragmentWriter,
    Owner,
    WorkDir,
    is_work_path,
    may_publish,
    publish,
    read_fragment,
    work_path,
    workdir,
    write_part,
)


@pytest.fixture
def work(tmp_path):
    made = WorkDir(work_path(str(tmp_path / "out"), "dag/run/group"))
    made.create()
    return made


def test_work_path_is_hidden_beside_the_output_and_its_own_for_each_run(tmp_path):
    one = work_path(str(tmp_path / "out"), "run 1")
    assert Path(one).parent == tmp_path
    assert Path(one).name.startswith(".out.mondrian_ops-")
    assert one == work_path(f"{tmp_path}/out/", "run 1")
    assert one != work_path(str(tmp_path / "out"), "run 2")


def test_nobody_else_may_look_in_whatever_the_umask(tmp_path):
    work = WorkDir(str(tmp_path / "deep" / "er" / ".w"))
    before = os.umask(0)
    try:
        work.create()
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path(work.root).stat().st_mode) == 0o700


def test_what_is_spilled_is_private_and_ends_with_the_process(work, tmp_path, monkeypatch):
    """It has no name at any time, so that nothing is left where the process is killed."""
    monkeypatch.setattr(tempfile, "_mkstemp_inner", None)
    before = sorted(os.listdir(work.root))
    with work.spill() as file:
        file.write(b"classes")
        file.flush()
        status = os.fstat(file.fileno())
        assert (status.st_nlink, status.st_mode & 0o777, status.st_size) == (0, 0o600, 7)
        assert status.st_dev == os.stat(work.root).st_dev
        assert sorted(os.listdir(work.root)) == before
    work.remove()
    with pytest.raises(StorageError, match="vanished"), work.spill():
        pass


def test_create_wipes_an_earlier_attempt(work):
    work.write_json("plan.json", {"a": 1})
    token = work.token
    work.create()
    assert work.token != token
    with pytest.raises(StorageError, match="run again from the partition task"):
        work.read_json("plan.json")


def test_create_leaves_the_files_of_another_task_alone(work):
    work.create(Owner("dag/run", "one.partition"))
    work.create(Owner("dag/run", "one.partition"))
    token = work.token
    with pytest.raises(StorageError, match=r"the task one\.partition of this run"):
        work.create(Owner("dag/run", "another.partition"))
    assert (work.token, work.owner) == (token, Owner("dag/run", "one.partition"))


def test_what_is_kept_for_a_repair_cannot_be_published_before_it(work, tmp_path):
    """A stale attempt may have been suspended right before it published."""
    part = pa.table({"age": ["[1, 2]"]})
    write_part(work.part_path(0), part)
    late = WorkDir.attach(work.root)
    work.keep()
    assert work.has_release
    with pytest.raises(StorageError, match="vanished"):
        publish(late.staging, str(tmp_path / "out"), late.token)
    again = WorkDir.attach(work.root)
    publish(again.staging, str(tmp_path / "out"), again.token)
    assert not work.has_release


def test_remove_tolerates_what_is_missing(work):
    work.remove()
    work.remove()
    assert not Path(work.root).exists()


def test_remove_takes_along_what_somebody_late_puts_there_meanwhile(work, monkeypatch):
    """Spark's tasks that were given up go on for a moment."""
    late, real = [Path(work.root, name) for name in ("fragments/late", "late")], os.rmdir

    def rmdir(*args, **options):
        if late and late[0].parent.name == os.path.basename(args[0]):
            late.pop(0).write_text("")
        real(*args, **options)

    monkeypatch.setattr(os, "rmdir", rmdir)
    work.remove()
    assert not late
    assert not Path(work.root).exists()


def test_create_says_where_it_cannot_write(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be created"):
        WorkDir(str(tmp_path / "file" / ".w")).create()


def test_json_and_arrow_round_trip(work):
    work.write_json("plan.json", {"schema": 1, "where": ["age <= 3"]})
    assert work.read_json("plan.json") == {"schema": 1, "where": ["age <= 3"]}
    table = pa.table({"n": [1, None], "t": pa.array(["a", "b"]).dictionary_encode()})
    work.write_arrow("t.arrow", table)
    assert work.read_arrow("t.arrow").equals(table)
    assert not list(Path(work.root).rglob("*.tmp"))


def test_what_vanished_or_was_cut_short_is_a_storage_error(work):
    work.write_arrow("t.arrow", pa.table({"n": list(range(1000))}))
    os.truncate(work.path("t.arrow"), 700)
    with pytest.raises(StorageError, match="vanished or are damaged"):
        work.read_arrow("t.arrow")
    with pytest.raises(StorageError, match="vanished"):
        read_fragment(work, 3)
    writer = FragmentWriter(work)
    work.remove()
    with pytest.raises(StorageError, match="vanished"):
        writer.append(0, pa.table({"n": [1]}))
    with pytest.raises(StorageError, match="vanished"):
        _ = work.token


def test_staged_names_leave_out_what_is_still_written(work):
    assert work.staged() == set()
    write_part(work.part_path(0), pa.table({"n": [1]}))
    Path(work.staging, ".part-00001.parquet.ab.tmp").write_bytes(b"half")
    assert work.staged() == {Path(work.part_path(0)).name}
    work.remove()
    with pytest.raises(StorageError, match="vanished"):
        work.staged()


def test_bytes_round_trip(work):
    work.write_bytes("a.zip", b"\x00\xff")
    assert work.read_bytes("a.zip") == b"\x00\xff"
    with pytest.raises(StorageError, match="vanished"):
        work.read_bytes("b.zip")


@pytest.mark.parametrize("output", ["/out/people", "s3://conn@bucket/out/people"])
def test_the_working_directories_of_a_run_are_told_from_others(output):
    path = work_path(output, "a run")
    assert is_work_path(path, "a run")
    assert not is_work_path(path, "another run")
    for other in (output, f"{path}/release", path.replace(".people", "people"), "/", ""):
        assert not is_work_path(other, "a run")


def test_part_names_differ_between_attempts_but_not_within_one(work):
    name = work.part_path(3)
    assert re.fullmatch("part-[0-9a-f]{16}[.]parquet", Path(name).name)
    assert name == WorkDir(work.root).part_path(3)
    assert len({work.part_path(number) for number in range(50)}) == 50
    work.create()
    assert name != work.part_path(3)


def test_part_names_come_in_no_order_of_the_fragments(work):
    names = [work.part_path(number) for number in range(50)]
    assert names != sorted(names)


def test_an_obsolete_attempt_writes_nothing_into_its_successors_files(work):
    obsolete = WorkDir.attach(work.root)
    writer = FragmentWriter(obsolete)
    rows = pa.table({"n": [1]})
    writer.append(0, rows)
    WorkDir(work.root).create()
    assert obsolete.staging == work.staging
    for act in (
        lambda: obsolete.token,
        lambda: obsolete.part_path(0),
        lambda: obsolete.write_json("run.json", {}),
        lambda: obsolete.write_arrow("t.arrow", rows),
        writer.close,
    ):
        with pytest.raises(StorageError, match="belongs to a later attempt"):
            act()
    assert {path.name for path in Path(work.root).rglob("*")} == {
        *("attempt", "part-key", "fragments", "release")
    }


def test_a_working_file_nested_without_end_is_damaged(tmp_path):
    work = WorkDir(str(tmp_path))
    (tmp_path / "run.json").write_text("[" * 50_000)
    with pytest.raises(StorageError, match="vanished or are damaged"):
        work.read_json("run.json")


# The scattered rows of fragments come back whole and in order, or not at all


def test_an_attempt_may_publish_while_the_working_files_are_its_own(work, tmp_path):
    token = work.token
    assert may_publish(work.root, token)
    for other in ("0" * 32, "z" * 32):  # of an earlier or a later attempt
        assert not may_publish(work.root, other)
    publish(work.staging, str(tmp_path / "out"), token)
    assert not may_publish(work.root, token)
    work.remove()
    assert not may_publish(work.root, token)


@pytest.mark.parametrize("error", [PermissionError, StorageError, FileNotFoundError])
def test_who_cannot_look_into_working_files_takes_it_that_they_may_be_published(
    work, monkeypatch, error
):
    """Unless there are none, as after a removal; while that goes on, the release is there still."""

    def fails(*_):
        raise error("gone or another user's")

    with monkeypatch.context() as patched:
        patched.setattr(WorkDir, "has_release", property(fails))
        assert may_publish(work.root, work.token) is (error is not FileNotFoundError)
    if error is not StorageError:
        monkeypatch.setattr(workdir, "read_file", fails)
        assert may_publish(work.root, "of another attempt")
