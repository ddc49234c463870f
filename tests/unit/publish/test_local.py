"""A release replaces another one on a local disk, whoever is killed or reads meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pyarrow.parquet as pq
import pytest

from mondrian_ops.errors import StorageError
from mondrian_ops.publish import check_output, local, publish, published
from mondrian_ops.stores.files import remove_tree
from staged_releases import names, stage, version_of


@pytest.fixture(params=["exchange", "two renames"])
def way(request, monkeypatch):
    if request.param == "two renames":
        monkeypatch.setattr(local, "_exchange", lambda one, other: False)
    return request.param


def test_first_and_later_releases_replace_what_was_there(tmp_path, way):
    output = tmp_path / "out"
    for version in (1, 2, 3):
        publish(str(stage(tmp_path / "staging", version)), str(output))
        assert version_of(output) == version
        assert names(tmp_path) == ["out"]


def test_all_of_a_release_is_on_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    """A part is there before it has its name: see test_release.py."""
    done = []
    sync, swap = local.sync, local._swap

    def noted(path):
        done.append(path.name)
        sync(path)

    def swapped(*folders):
        done.append("swap")
        swap(*folders)

    monkeypatch.setattr(local, "sync", noted)
    monkeypatch.setattr(local, "_swap", swapped)
    staging = stage(tmp_path / "staging", 1)
    publish(str(staging), str(tmp_path / "out"))
    at = done.index("swap")
    assert {*done[:at]} == {"_report.json", "_SUCCESS", "staging"}
    assert done[at + 1 :] == [tmp_path.name]


def test_an_output_that_is_a_link_stays_one(tmp_path, way):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    for version in (1, 2):
        publish(str(stage(tmp_path / "staging", version)), str(tmp_path / "out"))
        assert version_of(tmp_path / "real") == version
    assert (tmp_path / "out").is_symlink()


def test_a_retry_with_the_same_token_does_not_bring_the_old_release_back(tmp_path, way):
    output = tmp_path / "out"
    publish(str(stage(tmp_path / "staging", 1)), str(output), "first")
    publish(str(stage(tmp_path / "staging", 2)), str(output), "second")
    assert published(str(output), "second")
    assert not published(str(output), "first")
    assert not published(str(tmp_path / "none"), "first")
    stage(tmp_path / "staging", 1)  # as a kill after the exchange leaves it
    publish(str(tmp_path / "staging"), str(output), "second")
    assert version_of(output) == 2
    assert not (tmp_path / "staging").exists()


def test_a_vanished_staging_directory_leaves_the_old_release(tmp_path, way):
    output = tmp_path / "out"
    publish(str(stage(tmp_path / "staging", 1)), str(output))
    with pytest.raises(StorageError, match="run again from the partition task"):
        publish(str(tmp_path / "staging"), str(output))
    assert version_of(output) == 1


def test_an_empty_directory_in_place_of_a_release_set_aside_does_not_cost_it(tmp_path):
    """Somebody makes it after a process was killed between two renames."""
    output, aside = tmp_path / "out", tmp_path / ".out.mondrian_ops-previous"
    publish(str(stage(tmp_path / "staging", 1)), str(output))
    output.rename(aside)
    output.mkdir()
    check_output(str(tmp_path / "in.parquet"), str(output))
    assert version_of(output) == 1
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["note.txt", ".nfs0001"])
def test_a_foreign_file_in_place_of_a_release_set_aside_does_not_cost_it(tmp_path, name):
    """The output is refused; the old release is back when the file is gone."""
    output, aside = tmp_path / "out", tmp_path / ".out.mondrian_ops-previous"
    publish(str(stage(tmp_path / "staging", 1)), str(output))
    output.rename(aside)
    output.mkdir()
    (output / name).touch()
    with pytest.raises(StorageError, match="holds something that is not a release"):
        publish(str(stage(tmp_path / "staging", 2)), str(output))
    assert version_of(aside) == 1
    (output / name).unlink()
    check_output(str(tmp_path / "in.parquet"), str(output))
    assert version_of(output) == 1
    assert not aside.exists()


def test_a_release_set_aside_is_removed_when_another_took_its_place(tmp_path):
    output, aside = tmp_path / "out", tmp_path / ".out.mondrian_ops-previous"
    publish(str(stage(tmp_path / "staging", 1)), str(output))
    output.rename(aside)
    stage(tmp_path / "staging", 2)
    publish(str(tmp_path / "staging"), str(tmp_path / "new"))
    (tmp_path / "new").rename(output)
    check_output(str(tmp_path / "in.parquet"), str(output))
    assert version_of(output) == 2
    assert names(tmp_path) == ["out"]


def test_a_failed_second_rename_puts_the_old_release_back(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_exchange", lambda one, other: False)
    output = tmp_path / "out"
    publish(str(stage(tmp_path / "staging", 1)), str(output))
    real, calls = os.rename, []

    def failing(source, target, **folders):
        calls.append(source)
        if len(calls) == 2:
            raise OSError(5, "I/O error")
        real(source, target, **folders)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(OSError, match="I/O error"):
        publish(str(stage(tmp_path / "staging", 2)), str(output))
    assert version_of(output) == 1


KILLED = textwrap.dedent(
    """
    import os, shutil, signal, sys
    from mondrian_ops.publish import publish
    from mondrian_ops.publish import local as local_publication
    staging, output, token, exchange = sys.argv[1:]
    for line in sys.stdin:  # a process for each, forked from one that has imported all
        if not (child := os.fork()):
            break
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    else:
        sys.exit()
    left = int(line)

    def counted(function):
        def call(*args, **kwargs):
            global left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return function(*args, **kwargs)
        return call

    if exchange == "no":
        local_publication._exchange = lambda one, other: False
    else:
        local_publication._exchange = counted(local_publication._exchange)
    for name in ("rename", "replace", "fsync", "unlink", "rmdir", "open", "close"):
        setattr(os, name, counted(getattr(os, name)))
    publish(staging, output, token)
    """
)


@pytest.fixture
def killed_at(tmp_path, exchange):
    """Publishes in a process that is killed at a step; returns the process's exit code."""
    words = (str(tmp_path / "staging"), str(tmp_path / "out"), "new", exchange)
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, *words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def of_step(step):
            process.stdin.write(f"{step}\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield of_step
        process.stdin.close()


@pytest.mark.parametrize(
    ("has_old", "exchange"),
    [
        (True, "yes"),
        pytest.param(True, "no", marks=pytest.mark.servers),
        pytest.param(False, "yes", marks=pytest.mark.soak),
        pytest.param(False, "no", marks=pytest.mark.soak),
    ],
)
def test_killed_at_any_step_old_or_new_stands_and_a_retry_publishes(
    tmp_path, killed_at, exchange, has_old
):
    output, staging = tmp_path / "out", tmp_path / "staging"
    seen = set()
    for step in range(200):
        for leftover in ("out", "staging", ".out.mondrian_ops-previous"):
            remove_tree(str(tmp_path / leftover))
        if has_old:
            publish(str(stage(staging, 1, parts=1)), str(output), "old")
        stage(staging, 2, parts=1)
        code = killed_at(step)
        if exchange == "no" and not output.exists():
            seen.add("between")
            check_output("in.parquet", str(output))  # what the next run does first
        stands = version_of(output) if output.exists() else 0
        assert stands in ({1, 2} if has_old else {0, 2})
        seen.add(stands)
        publish(str(staging), str(output), "new")
        assert version_of(output) == 2
        assert names(tmp_path) == ["out"]
        if code == 0:
            break
        assert code == -signal.SIGKILL
    else:
        pytest.fail("never ran to its end")
    assert {2, 1 if has_old else 0} <= seen


def test_a_reader_never_sees_half_a_release(tmp_path):
    output = tmp_path / "out"
    publish(str(stage(tmp_path / "staging", 0)), str(output))
    over = threading.Event()
    seen: list[int] = []
    wrong: list[str] = []

    def reader():
        while not over.is_set():
            parts = [name for name in names(output) if name.endswith(".parquet")]
            try:
                versions = [pq.read_table(output / name)["version"][0].as_py() for name in parts]
            except FileNotFoundError:
                continue  # replaced meanwhile: noticed, and read again
            if not parts:  # listed while the replaced release was removed
                continue
            if len(versions) != 2 or len(set(versions)) != 1:
                wrong.append(f"{versions}")
            seen.append(versions[0])

    thread = threading.Thread(target=reader)
    thread.start()
    for version in range(1, 60):
        publish(str(stage(tmp_path / "staging", version)), str(output))
    over.set()
    thread.join()
    assert wrong == []
    assert len(set(seen)) > 1
