"""A night is killed at each step of its end, and no row is lost or published twice afterwards.

The kill is an exception that no cleanup answers; `test_nights_of_a_series.py` kills processes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kept_folder import KeptFolder
from mondrian_ops import pipeline
from mondrian_ops import publish as publishing
from mondrian_ops.engines.handover import Summary
from mondrian_ops.errors import StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.series import history, series_name, waiting
from mondrian_ops.series import nights as protocol
from nights import Nights, silent
from tiers import in_soak

HOLDING = {"hold_nights": 3, "hold_above": 0.06}
STEPS = [
    (waiting, "write", "before"),
    (waiting, "write", "after"),
    (protocol, "intend", "after"),
    (publishing, "publish", "after"),
    (protocol, "conclude", "after"),
    (waiting, "remove_used", "after"),
]
SOME_WITHOUT_SERVERS = [
    pytest.param(*step, marks=() if at % 3 == 0 else pytest.mark.servers)
    for at, step in enumerate(STEPS)
]


@pytest.fixture(scope="module")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> KeptFolder:
    return KeptFolder(
        tmp_path_factory.mktemp("nights"), lambda at: Nights(at, series=HOLDING).run(0, 150)
    )


@pytest.fixture
def nights(first_night: KeptFolder, monkeypatch: pytest.MonkeyPatch) -> Nights:
    """A series in which rows wait."""
    nights = Nights(first_night.brought_back(monkeypatch), series=HOLDING)
    nights.rows = 150
    return nights


class Killed(BaseException):
    """The process is gone."""


class Night:
    """The night of a day, up to its last task."""

    def __init__(self, nights: Nights, day: int, rows: int = 200) -> None:
        self.job: Job = (
            nights.job(day) if nights.drop(day).exists() else _delivered(nights, day, rows)
        )
        self.work = publishing.work_path(str(self.job.output), f"run of {day}")
        pipeline.partition(self.job, work=self.work, progress=silent)
        self.summaries: list[Summary] = pipeline.anonymize_all(self.work, progress=silent)

    def wrap_up(self) -> dict[str, Any]:
        return pipeline.wrap_up(self.job, work=self.work, summaries=self.summaries, progress=silent)

    def killed(self, module: Any, name: str, when: str) -> None:
        """The last task is killed at a step."""
        function: Callable[..., Any] = getattr(module, name)

        def kill(*given: Any, **more: Any) -> None:
            if when == "after":
                function(*given, **more)
            raise Killed

        with pytest.MonkeyPatch.context() as patched, pytest.raises(Killed):
            patched.setattr(protocol, "withdraw", lambda _token: None)
            patched.setattr(module, name, kill)
            self.wrap_up()


def _delivered(nights: Nights, day: int, rows: int) -> Job:
    nights.deliver(day, rows)
    return nights.job(day)


def consistent(nights: Nights) -> None:
    """The night after shows it: it reads what waits, and checks the sums of the catalogue."""
    nights.run(9, 120)
    nights.check_each_row_once()


@pytest.mark.parametrize(("module", "name", "when"), [*STEPS[1::2], *in_soak(STEPS[::2])], ids=str)
def test_the_next_try_goes_on(nights: Nights, module: Any, name: str, when: str) -> None:
    night = Night(nights, 1)
    night.killed(module, name, when)
    assert night.wrap_up()["outcome"]["state"] == "published"
    nights.check_each_row_once()
    consistent(nights)


@pytest.mark.servers
@pytest.mark.parametrize(("module", "name", "when"), SOME_WITHOUT_SERVERS, ids=str)
def test_the_run_is_cleared_and_begins_anew(
    nights: Nights, module: Any, name: str, when: str
) -> None:
    Night(nights, 1).killed(module, name, when)
    if nights.output(1).exists():
        with pytest.raises(StorageError, match="is in the series already"):
            Night(nights, 1)
    else:
        Night(nights, 1).wrap_up()
    consistent(nights)


@pytest.mark.servers
@pytest.mark.parametrize(("module", "name", "when"), SOME_WITHOUT_SERVERS, ids=str)
def test_another_night_goes_first(nights: Nights, module: Any, name: str, when: str) -> None:
    """The killed run was given up, and its working files were removed."""
    night = Night(nights, 1)
    night.killed(module, name, when)
    pipeline.discard(night.work)
    nights.run(2, 200)
    if not nights.output(1).exists():
        Night(nights, 1).wrap_up()
    consistent(nights)


def test_a_night_that_may_still_be_published_holds_up_the_next(nights: Nights) -> None:
    night = Night(nights, 1)
    night.killed(protocol, "intend", "after")
    nights.deliver(2, 200)
    with pytest.raises(TimeoutError, match="run again when that run is over"):
        pipeline.run(nights.job(2), silent)
    night.wrap_up()
    pipeline.run(nights.job(2), silent)
    consistent(nights)


@pytest.mark.servers
def test_a_night_that_cannot_publish_holds_up_nobody(nights: Nights) -> None:
    night = Night(nights, 1)
    nights.output(1).mkdir()
    (nights.output(1) / "somebody's").write_text("file")
    with pytest.raises(StorageError, match="holds something that is not a release"):
        night.wrap_up()
    nights.run(2, 200)
    (nights.output(1) / "somebody's").unlink()
    Night(nights, 1).wrap_up()
    consistent(nights)


@pytest.mark.servers
def test_a_release_that_comes_out_while_another_run_looks_is_not_taken_back(
    nights: Nights,
) -> None:
    """The other run asks whether it may come, and by then it is there."""
    night = Night(nights, 1)
    night.killed(protocol, "intend", "after")
    work = publishing.WorkDir.attach(night.work)

    def comes_out(*_: Any) -> bool:
        publishing.publish(work.staging, str(night.job.output), work.token)
        return False

    nights.deliver(2, 200)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(publishing, "may_publish", comes_out)
        protocol.settle(nights.job(2))
    pipeline.run(nights.job(2), silent)
    consistent(nights)


def published_and(night: Night, then: Callable[[str], object]) -> None:
    """The last task, in which something happens between the publication and what follows."""
    publish = publishing.publish

    def disturbed(staging: str, output: str, token: str, *more: Any) -> None:
        publish(staging, output, token, *more)
        patched.undo()
        then(token)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(publishing, "publish", disturbed)
        night.wrap_up()


@pytest.mark.servers
def test_a_night_that_the_catalogue_loses_while_it_is_published_is_noted_again(
    nights: Nights,
) -> None:
    """A stale try takes it back, or a backup of the minute before is restored."""
    published_and(Night(nights, 1), protocol.withdraw)
    consistent(nights)


@pytest.mark.servers
def test_a_night_that_the_catalogue_cannot_have_any_more_is_an_error(nights: Nights) -> None:
    def lost(token: str) -> None:
        protocol.withdraw(token)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(protocol, "refuse_forgotten", lambda _job: None)
            nights.run(2, 200)

    night = Night(nights, 1)
    with pytest.raises(StorageError, match="is published, but the catalogue lost its night"):
        published_and(night, lost)
    with pytest.raises(StorageError, match=r"one of 1 release\(s\) of nights that the catalogue"):
        nights.run(3, 200)


@pytest.mark.servers
def test_after_an_error_that_a_retry_cures_the_night_stays_pending(nights: Nights) -> None:
    """Another try of the same task may be publishing it."""
    night = Night(nights, 1)

    def busy(*_: Any) -> None:
        raise TimeoutError("another try is publishing")

    with pytest.MonkeyPatch.context() as patched, pytest.raises(TimeoutError):
        patched.setattr(publishing, "publish", busy)
        night.wrap_up()
    nights.deliver(2, 200)
    with pytest.raises(TimeoutError, match="is being published by another run"):
        pipeline.run(nights.job(2), silent)
    night.wrap_up()
    pipeline.run(nights.job(2), silent)
    consistent(nights)


def test_a_held_night_that_was_killed_is_over_once(tmp_path: Path) -> None:
    nights = Nights(tmp_path, series=HOLDING)
    night = Night(nights, 0, rows=3)
    night.killed(protocol, "intend", "after")
    assert night.wrap_up()["outcome"]["state"] == "held"
    with pytest.raises(StorageError, match=r"is in the series already \(held\)"):
        Night(nights, 0)
    consistent(nights)


@pytest.mark.servers
def test_rows_that_another_night_takes_meanwhile_are_not_missing(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next try gathers those that wait then."""
    before = history.current(series_name(nights.job(0)))
    nights.run(1, 200)
    answers = [before]
    current = history.current
    monkeypatch.setattr(
        history, "current", lambda name: answers.pop() if answers else current(name)
    )
    nights.deliver(2, 200)
    with pytest.raises(TimeoutError, match="run again"):
        pipeline.run(nights.job(2), silent)
    pipeline.run(nights.job(2), silent)
    consistent(nights)


def test_what_was_lost_is_noticed_before_anything_is_published(nights: Nights) -> None:
    (file,) = nights.waiting_files()
    kept = file.read_bytes()
    nights.deliver(1, 200)
    file.unlink()
    with pytest.raises(StorageError, match="rows that wait are missing"):
        pipeline.run(nights.job(1), silent)
    file.write_bytes(kept)
    pipeline.run(nights.job(1), silent)
    consistent(nights)
