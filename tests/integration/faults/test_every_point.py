"""Each step of a run is disturbed at each of its points, and then done again.

What then stands is exactly the release of an undisturbed run; until then it is the one before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest

from faults.injection import KILLS, STOPS, Fault, faults_at
from faults.process import Ended
from faults.run_harness import STEPS, Harness

DISTURBED = (0, 1, 3, 4)
"""Steps; the second fragment is as the first."""

STRUCK = [
    pytest.param(("killed after",), id="killed"),
    pytest.param(("EIO", *STOPS), id="failed or stopped", marks=pytest.mark.servers),
]
"""What strikes at the points of a step, in turn."""


def disturb(harness: Harness, step: int, fault: Fault) -> None:
    """One case, from the fault to what is left at the end."""
    harness.set_back(step)
    ended = harness.run(step, fault)
    if fault.kind in STOPS:
        assert ended.how == "stopped", f"not reached: {ended}"
        outlive = overtaken if fault.kind == "stopped" else outlived
        outlive(harness, step, ended)
        return
    assert ended.how == "killed" if fault.kind in KILLS else ended.how in ("done", "failed")
    assert harness.standing() in harness.good
    harness.check_private()
    assert not ended.final, f"a retry would cure it: {ended}"
    harness.run_from(step)
    harness.check_over()


def overtaken(harness: Harness, step: int, stopped: Ended) -> None:
    """The first attempt goes on when the second is through, and before the tasks that follow."""
    again = harness.run(step)
    assert not again.final, str(again)
    assert harness.processes.resume(stopped).how in ("done", "failed")
    if again.how == "failed":  # the first held the lock, and is through by now
        again = harness.run(step)
    assert again.how == "done", str(again)
    ended = harness.run(step + 1, last=len(STEPS))
    if not is_before_its_files(stopped, step):
        assert ended.how == "done", str(ended)
    if ended.how == "done":
        harness.check_over()
        return
    assert harness.run(4).how == "done"
    assert harness.standing() in harness.good
    harness.check_nothing_left()


def outlived(harness: Harness, step: int, stopped: Ended) -> None:
    """The first attempt goes on when the run is over and its working files are removed."""
    ended = harness.run(step, last=len(STEPS))
    assert not ended.final, str(ended)
    assert harness.run(4).how == "done"
    late = harness.processes.resume(stopped)
    assert late.how in ("done", "failed")
    if is_before_its_files(stopped, step):
        harness.run(4)  # as its `on_kill` does, when Airflow finds it
    harness.check_nothing_left()
    if ended.how == "done":
        assert harness.standing() == "new"
    else:  # it could not publish beside the first
        assert harness.standing() in harness.good


def is_before_its_files(stopped: Ended, step: int) -> bool:
    """Whether a first attempt at the partition was stopped before its working files were its own.

    There it cannot know that it was given up: its files are those of the last who made them.
    """
    return step == 0 and "rename attempt 1" not in stopped.passed


def some(harness: Harness, step: int, kinds: Sequence[str]) -> Iterator[Fault]:
    """Of each operation on each kind of file the last call, and one kind of fault in turn."""
    last: dict[str, str] = {}
    for point in harness.passed[step]:
        last[point.rpartition(" ")[0]] = point
    points = [point for point in last.values() if not point.startswith("stat")]
    yield from map(Fault, points, itertools.cycle(kinds))


def every(harness: Harness, step: int) -> Iterator[Fault]:
    """Each fault at each point."""
    for point in harness.passed[step]:
        for kind in faults_at(point):
            yield Fault(point, kind)


def disturb_all(harness: Harness, step: int, faults: Iterator[Fault]) -> None:
    wrong = {}
    count = 0
    for fault in faults:
        count += 1
        try:
            disturb(harness, step, fault)
        except AssertionError as error:
            wrong[fault] = error
    lines = [f"{fault.kind} at {fault.point}: {error}" for fault, error in wrong.items()]
    assert not wrong, f"{len(wrong)} of {count} cases of {STEPS[step]}:\n" + "\n".join(lines)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(step, id=STEPS[step], marks=[pytest.mark.servers] if step < 3 else [])
        for step in DISTURBED
    ],
)
@pytest.mark.parametrize("kinds", STRUCK)
def test_a_step_disturbed_anywhere_is_made_good(
    scattered: Harness, step: int, kinds: Sequence[str]
) -> None:
    disturb_all(scattered, step, some(scattered, step, kinds))


@pytest.mark.servers
@pytest.mark.parametrize("kinds", STRUCK)
def test_a_first_publication_disturbed_anywhere_is_made_good(
    pushed_down: Harness, kinds: Sequence[str]
) -> None:
    """Nothing that could be taken for a release stands before the whole one does."""
    disturb_all(pushed_down, 3, some(pushed_down, 3, kinds))


@pytest.mark.soak
@pytest.mark.parametrize("step", DISTURBED, ids=[STEPS[step] for step in DISTURBED])
@pytest.mark.parametrize("name", ["scattered", "pushed_down"])
def test_a_step_disturbed_at_every_point_is_made_good(
    name: str, step: int, request: pytest.FixtureRequest
) -> None:
    harness = request.getfixturevalue(name)
    disturb_all(harness, step, every(harness, step))


@pytest.mark.soak
def test_a_publication_by_two_renames_disturbed_anywhere_is_made_good(
    scattered: Harness,
) -> None:
    """Where directories cannot be exchanged, there is a moment without a release."""
    scattered.within = {"exchange": False}
    try:
        scattered.set_back(3)
        points = scattered.run(3).passed
        faults = [Fault(point, kind) for point in points for kind in faults_at(point)]
        disturb_all(scattered, 3, iter(faults))
    finally:
        scattered.within = None
