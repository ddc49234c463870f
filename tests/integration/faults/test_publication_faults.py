"""Several processes at one output: two runs, or a run and its own first attempt."""

from __future__ import annotations

import errno
import fcntl
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faults.injection import Fault
from faults.run_harness import Harness, contents
from mondrian_ops import pipeline

ANOTHER_RUN = "another run has published to"


@pytest.fixture
def one(scattered: Harness) -> Harness:
    """A run that is all done but for its wrap-up."""
    scattered.set_back(3)
    return scattered


@pytest.fixture
def other(one: Harness) -> Harness:
    """Another one that began before the first was wrapped up."""
    begun = one.another("other")
    assert begun.go(0, 2).how == "done"
    return begun


def test_of_two_runs_at_once_one_wins_and_the_other_says_so(one: Harness, other: Harness) -> None:
    assert one.run(3, last=5).how == "done"
    late = other.go(3, 3)
    assert (late.how, late.final) == ("failed", True)
    assert ANOTHER_RUN in late.error
    assert other.go(4, 4).how == "done"
    one.check_over()


def test_a_run_that_began_after_the_other_replaces_it(one: Harness) -> None:
    assert one.run(3, last=5).how == "done"
    later = one.another("later")
    assert later.go(0, 4).how == "done"
    one.check_over()


@pytest.mark.parametrize("point", ["exchange out 1", "fsync here 1", "unlink part 1"])
def test_in_the_middle_of_a_publication_no_other_can_begin(
    one: Harness, other: Harness, point: str
) -> None:
    """The other waits, is told to come back, and finds that it came too late."""
    stopped = one.run(3, Fault(point, "stopped"))
    waiting = other.go(3, 3)
    assert (waiting.how, waiting.final) == ("failed", False)
    assert "another process has been publishing" in waiting.error
    assert one.processes.resume(stopped).how == "done"
    again = other.go(3, 3)
    assert again.final
    assert ANOTHER_RUN in again.error
    assert other.go(4, 4).how == one.run(4).how == "done"
    one.check_over()


def test_who_is_killed_in_the_middle_of_a_publication_stops_nobody(
    one: Harness, other: Harness
) -> None:
    assert one.run(3, Fault("exchange out 1", "killed before")).how == "killed"
    assert other.go(3, 4).how == "done"
    assert one.run(3).final
    assert one.run(4).how == "done"
    one.check_over()


def test_a_release_that_somebody_removed_is_none_to_lose(one: Harness) -> None:
    shutil.rmtree(one.output)
    one.run_from(3)
    one.check_over()


def test_a_release_that_is_half_removed_is_not_published(one: Harness) -> None:
    """The wrap-up was given up, its run is over, and then it goes on."""
    stopped = one.run(3, Fault("exchange out 1", "stopped"))
    assert one.run(4, Fault("unlink part 1", "killed after")).how == "killed"
    assert one.processes.resume(stopped).how == "failed"
    assert one.standing() == "old"
    assert one.run(4).how == "done"
    one.check_nothing_left()


def test_what_a_late_attempt_writes_is_not_published(one: Harness) -> None:
    """The first attempt at a fragment goes on at last, in the middle of the publication."""
    one.set_back(1)
    late = one.run(1, Fault("write part 1", "stopped"))
    assert one.run(1, last=2).how == "done"
    (staging,) = one.folder.glob(".*/release")
    checked = contents(staging)
    publication = one.run(3, Fault("exchange out 1", "stopped"))
    assert one.processes.resume(late).how == "done"
    assert one.processes.resume(publication).how == "done"
    assert contents(one.output).items() >= checked.items()
    assert one.run(4).how == "done"
    one.check_over()


def overtake_a_check(one: Harness, point: str) -> None:
    """The first attempt holds the lock, and goes on when the second is in its check."""
    one.set_back(3)
    first = one.run(3, Fault("exchange out 1", "stopped"))
    second = one.run(3, Fault(point, "stopped"))
    assert (first.how, second.how) == ("stopped", "stopped")
    assert one.processes.resume(first).how == "done"
    ended = one.processes.resume(second)
    assert ended.how == "done", f"{point}: {ended}"
    assert one.run(4).how == "done"
    one.check_over()


@pytest.mark.parametrize("point", ["read part 1", "write _report.json 1", "rename _report.html 1"])
def test_who_checks_while_a_late_attempt_publishes_finds_the_release(
    one: Harness, point: str
) -> None:
    overtake_a_check(one, point)


@pytest.mark.soak
def test_who_checks_anything_while_a_late_attempt_publishes_finds_the_release(
    one: Harness,
) -> None:
    points = one.passed[3]
    for point in points[: points.index("rename _report.html 1") + 1]:
        overtake_a_check(one, point)


@pytest.fixture
def without_exchange(one: Harness) -> Iterator[Harness]:
    one.within = {"exchange": False}
    yield one
    one.within = None


def test_between_two_renames_no_other_run_begins(without_exchange: Harness) -> None:
    """It would take the old release, which stepped aside, for one that a dead run has left."""
    one = without_exchange
    stopped = one.run(3, Fault("rename out 1", "stopped"))
    assert not one.output.exists()
    begun = one.another("other").go(0, 0)
    assert (begun.how, begun.final) == ("failed", False)
    assert "another process has been publishing" in begun.error
    assert one.processes.resume(stopped).how == "done"
    assert one.run(4).how == "done"
    one.check_over()


def test_a_file_system_without_locks_gets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_handle: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", unknown)
    pq.write_table(pa.table({"x": list(range(20))}), tmp_path / "in.parquet")
    job = {
        "input": str(tmp_path / "in.parquet"),
        "output": str(tmp_path / "out"),
        "k": 2,
        "quasi_identifiers": ["x"],
    }
    pipeline.run(pipeline.load_job(job))
    assert pq.read_table(tmp_path / "out").num_rows == 20
