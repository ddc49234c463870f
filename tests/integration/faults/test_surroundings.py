"""What a run finds around it: a full disk, no permission, a source that changes, a clock."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faults.process import Ended, Processes, job_of
from faults.run_harness import Harness, contents, rows_and_report
from kept_folder import KeptFolder
from mondrian_ops import datasets, pipeline, publish
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.errors import InputError
from mondrian_ops.tables import files as sources
from servers.needs import own_mounts

# Disk full


ON_SMALL_DISKS = textwrap.dedent(
    """
    import hashlib, json, os, subprocess, sys
    from pathlib import Path
    from faults.run_harness import contents
    from mondrian_ops import pipeline

    here, job = Path(sys.argv[1]), json.loads(sys.argv[2])
    def resized(size):
        subprocess.run(["mount", "-o", f"remount,size={size}k", str(here)], check=True)
    pipeline.run(pipeline.load_job({**job, "k": 7}))
    old = contents(here / "out")
    disk = os.statvfs(here)
    used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize // 1024
    for step in range(12):
        resized(used + int(8 * 1.7**step))
        try:
            pipeline.run(pipeline.load_job(job))
            outcome = "done"
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        kept = contents(here / "out") == old
        print(json.dumps([outcome, kept, sorted(os.listdir(here))]), flush=True)
        if outcome == "done":
            break
    """
)


@pytest.mark.mounts
def test_a_disk_that_is_full_leaves_the_last_release(tmp_path: Path) -> None:
    """The disk is larger each time, so it is full later and later, and large enough at last."""
    source, disk = tmp_path / "people.parquet", tmp_path / "disk"
    datasets.generate("people", rows=600, seed=0, output=str(source))
    disk.mkdir()
    job = job_of(str(source), str(disk / "out"), "scatter")
    mount = 'mount -t tmpfs -o size=64m tmpfs "$1" && shift && exec "$@"'
    python = [sys.executable, "-c", ON_SMALL_DISKS, str(disk), json.dumps(job)]
    done = subprocess.run(
        [*own_mounts(), "sh", "-c", mount, "sh", str(disk), *python],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    *full, last = outcomes
    assert last == ["done", False, ["out"]]
    assert len(full) >= 3
    for outcome, kept, names in full:
        assert "No space left on device" in outcome
        assert kept
        assert names == ["out"]


# No permission


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may look into."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)  # noqa: S103 - that is what is tested
        yield Path(name)


@pytest.fixture
def as_another(processes: Processes) -> Callable[[Path, dict[str, Any]], Ended]:
    """A partition by a user who is not root."""

    def partition(folder: Path, job: dict[str, Any]) -> Ended:
        work = publish.work_path(job["output"], "run")
        return processes.run(
            ["partition"], folder, within={"root": False}, job=job, work=work, values=[]
        )

    return partition


def test_a_folder_that_is_not_ours_is_refused_before_any_work(open_folder, as_another) -> None:
    out = open_folder / "releases"
    out.mkdir(mode=0o555)
    source = open_folder / "people.parquet"
    datasets.generate("people", rows=300, seed=0, output=str(source))
    ended = as_another(open_folder, job_of(str(source), str(out / "people"), "auto"))
    assert (ended.how, ended.final) == ("failed", True)
    assert f"output: {out} is not a directory this process may write to" in ended.error
    assert not any("people.parquet" in point for point in ended.passed if "stat" not in point)
    assert not list(out.iterdir())


def test_a_source_that_is_not_ours_is_named(open_folder, as_another) -> None:
    out = open_folder / "releases"
    out.mkdir()
    out.chmod(0o777)
    source = open_folder / "people.parquet"
    datasets.generate("people", rows=300, seed=0, output=str(source))
    source.chmod(0 if os.geteuid() else 0o600)
    ended = as_another(open_folder, job_of(str(source), str(out / "people"), "auto"))
    assert (ended.how, ended.final) == ("failed", True)
    assert f"{source}: permission denied; let this process read it" in ended.error
    assert not list(out.iterdir())


@pytest.mark.mounts
def test_a_read_only_file_system_is_refused_before_any_work(tmp_path: Path) -> None:
    source, disk = tmp_path / "people.parquet", tmp_path / "disk"
    datasets.generate("people", rows=300, seed=0, output=str(source))
    disk.mkdir()
    file = tmp_path / "job.json"
    file.write_text(json.dumps(job_of(str(source), str(disk / "out"), "auto")))
    mount = 'mount -t tmpfs -o ro tmpfs "$1" && shift && exec "$@"'
    run = [sys.executable, "-m", "mondrian_ops", "run", str(file)]
    done = subprocess.run(
        [*own_mounts(), "sh", "-c", mount, "sh", str(disk), *run],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "is not a directory this process may write to; choose another `output`" in done.stderr
    assert "Traceback" not in done.stderr


# A source that changes


def rewritten(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.take(list(reversed(range(table.num_rows)))), path, row_group_size=150)


def rewritten_unseen(path: Path) -> None:
    """In place, of the same size, with the old time of modification."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[100:200] = bytes(100)
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def dated_back(path: Path) -> None:
    """By a clock that was put back a day."""
    rewritten(path)
    yesterday = path.stat().st_mtime - 86_400
    os.utime(path, (yesterday, yesterday))


def of_other_columns(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["zip"]).append_column("z", table["zip"]), path)


def of_other_types(path: Path) -> None:
    table = pq.read_table(path)
    ages = pa.array([f"{age} years" for age in table["age"].to_pylist()])
    pq.write_table(table.set_column(table.column_names.index("age"), "age", ages), path)


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def removed(path: Path) -> None:
    path.unlink()


CHANGES = (
    rewritten,
    rewritten_unseen,
    dated_back,
    of_other_columns,
    of_other_types,
    cut_short,
    removed,
)


class Changing:
    """A job whose source changes at a moment."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "people.parquet"
        self.output = folder / "out"
        self.job = pipeline.load_job(job_of(str(self.source), str(self.output), "pushdown"))
        self._change: Callable[[Path], None] | None = None

    def make(self) -> None:
        """Have a source, and a release of it."""
        datasets.generate("people", rows=600, seed=0, output=str(self.source))
        pq.write_table(pq.read_table(self.source), self.source, row_group_size=150)
        pipeline.run(self.job)

    def begin(self, change: Callable[[Path], None]) -> None:
        self._change, self.old = change, contents(self.output)

    def now(self) -> None:
        assert self._change is not None
        self._change(self.source)

    def check(self, refused: BaseException) -> None:
        assert str(self.source) in str(refused)
        assert "changed while it was read; run again from the partition task" in str(refused)
        assert contents(self.output) == self.old
        assert not [each for each in self.output.parent.iterdir() if each.name.startswith(".")]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> KeptFolder:
    return KeptFolder(tmp_path_factory.mktemp("changing"), lambda folder: Changing(folder).make())


@pytest.fixture(params=CHANGES, ids=lambda change: change.__name__)
def changing(
    kept: KeptFolder, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Changing:
    begun = Changing(kept.brought_back(monkeypatch))
    begun.begin(request.param)
    return begun


def test_a_source_that_changes_between_the_passes_is_refused(changing: Changing) -> None:
    class Engine(LocalEngine):
        def count(self, *args: Any, **kwargs: Any) -> Any:
            changing.now()
            return super().count(*args, **kwargs)

    with pytest.raises(InputError) as refused:
        pipeline.run(changing.job, engine=Engine())
    changing.check(refused.value)


def test_a_source_that_changes_between_two_fragments_is_refused(changing: Changing) -> None:
    work = publish.work_path(str(changing.output), "run")
    first, second = pipeline.partition(changing.job, work=work)
    pipeline.anonymize_fragment(first)
    changing.now()
    with pytest.raises(InputError) as refused:
        pipeline.anonymize_fragment(second)
    pipeline.discard(work)
    changing.check(refused.value)


@pytest.mark.parametrize(
    "reading",
    [1, pytest.param(2, marks=pytest.mark.soak), 3],
    ids=["profile", "first fragment", "second fragment"],
)
def test_a_source_that_changes_in_the_middle_of_a_reading_is_refused(
    changing: Changing, reading: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its first row group, in each of the readings of a run."""
    real, begun = sources.parquet_files.batches, itertools.count(1)

    def batches(*args: Any, **keys: Any) -> Iterator[pa.RecordBatch]:
        changes = next(begun) == reading
        for number, batch in enumerate(real(*args, **keys)):
            yield batch
            if changes and number == 0:
                changing.now()

    monkeypatch.setattr(sources.parquet_files, "batches", batches)
    with pytest.raises(InputError) as refused:
        pipeline.run(changing.job)
    changing.check(refused.value)


# A clock that jumps


@pytest.mark.parametrize("jump", [-86_400, 86_400], ids=["back", "ahead"])
def test_a_clock_that_jumps_by_a_day_changes_nothing(
    scattered: Harness, jump: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at it tells a time a day before, or after, the one that it told before."""
    scattered.set_back(0)
    real, looks = time.time, itertools.count(1)
    monkeypatch.setattr(time, "time", lambda: real() + jump * next(looks))
    work = scattered.work
    job = pipeline.load_job(scattered.job)
    fragments = pipeline.partition(job, work=work)
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]
    pipeline.wrap_up(job, work=work, summaries=summaries)
    pipeline.discard(work)
    assert rows_and_report(scattered.output) == scattered.expected
    scattered.check_nothing_left()
    assert next(looks) > 1
    assert all(each.seconds >= 0 for each in summaries)
    timings = json.loads((scattered.output / "_report.json").read_text())["timings_s"]
    assert all(seconds >= 0 for seconds in timings.values())


def test_working_files_and_source_from_the_future_are_as_good(scattered: Harness) -> None:
    """As after a clock that was put back: nothing is older or newer, only another."""
    scattered.set_back(1)
    tomorrow = time.time() + 86_400
    for path in [scattered.folder, *scattered.folder.rglob("*")]:
        os.utime(path, (tomorrow, tomorrow))
    scattered.run_from(1)
    scattered.check_over()
