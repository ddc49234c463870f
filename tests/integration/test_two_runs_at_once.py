"""Two runs that publish overlapping drops at the same moment: never both, in whatever order."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ledger_runs import Run, impatient, make_ledger
from mondrian_ops import storage
from mondrian_ops.core.errors import PrivacyError
from mondrian_ops.pipeline import overlap_check
from servers.stores import S3Folder

ORDERS = sorted(set(itertools.permutations("AAAABBBB")))
PATIENCE = 120.0
"""Seconds, after which a step cannot be on its way: its run waits for what nobody gives it."""


class Turns:
    """Threads, each of which takes its next step when it is its turn.

    A step that does not end is an error: its thread is left behind, and keeps nobody waiting.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._change = threading.Condition()
        self._turn = ""
        self._over: set[str] = set()

    def step(self) -> None:
        """This thread's step is done; wait for its next turn."""
        with self._change:
            self._turn = ""
            self._change.notify_all()
        self._await_turn()

    def _await_turn(self) -> None:
        name = threading.current_thread().name
        with self._change:
            self._change.wait_for(lambda: self._turn == name)

    def _run(self, run: Callable[[], None], outcomes: dict[str, Exception | None]) -> None:
        name = threading.current_thread().name
        self._await_turn()
        outcomes[name] = None
        try:
            run()
        except Exception as error:
            outcomes[name] = error
        with self._change:
            self._over.add(name)
            self._turn = ""
            self._change.notify_all()

    def _give(self, name: str) -> None:
        with self._change:
            self._turn = name
            self._change.notify_all()
            ended = self._change.wait_for(lambda: not self._turn, self._patience)
        if not ended:
            raise AssertionError(f"{name} has not ended its step in {self._patience:g} s")

    def take(
        self, runs: dict[str, Callable[[], None]], order: Sequence[str]
    ) -> dict[str, Exception | None]:
        """Let each take a step in this order, and then the rest; what each raised."""
        outcomes: dict[str, Exception | None] = {}
        for name, run in runs.items():
            threading.Thread(target=self._run, args=[run, outcomes], name=name, daemon=True).start()
        for name in order:
            if name not in self._over:
                self._give(name)
        for name in runs:
            while name not in self._over:
                self._give(name)
        self._over.clear()
        return outcomes


def test_a_run_that_never_ends_its_step_is_told_of() -> None:
    answer = threading.Event()

    def waits() -> None:
        answer.wait()

    with pytest.raises(AssertionError, match=r"A has not ended its step in 0\.1 s"):
        Turns(patience=0.1).take({"A": waits}, "A")
    answer.set()


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    """Each writing and reading of the ledger is a step, and so is the publication."""
    taken = Turns()

    def as_step(function: Callable[..., object]) -> Callable[..., object]:
        def step(*args: object) -> object:
            found = function(*args)
            if threading.current_thread() is not threading.main_thread():
                taken.step()
            return found

        return step

    for name in ("write", "read", "mark_published"):
        monkeypatch.setattr(storage.Ledger, name, as_step(getattr(storage.Ledger, name)))
    impatient(monkeypatch)
    monkeypatch.setattr(storage, "publish", as_step(storage.publish))
    return taken


def two_runs(place: str, **second: object) -> dict[str, Run]:
    """Runs of two drops which share a person."""
    make_ledger(f"{place}/ledger")
    keys = {"people": range(19, 40), **second}
    return {"A": Run(place, "A", range(20)), "B": Run(place, "B", **keys)}  # type: ignore[arg-type]


def never_both(turns: Turns, place: str, order: Sequence[str]) -> None:
    runs = two_runs(place)
    outcomes = turns.take({name: run.publish for name, run in runs.items()}, order)
    for _ in range(2):  # then again, as a retry does, one after the other
        published = {name for name, run in runs.items() if run.is_published}
        assert len(published) < 2
        assert {name for name, error in outcomes.items() if error is None} == published
        noted = storage.Ledger(f"{place}/ledger").read()
        assert [(entry["output"], entry["sure"]) for entry in noted.entries] == [
            (runs[name].output, True) for name in published
        ]
        for name in sorted(runs.keys() - published):
            (again,) = turns.take({name: runs[name].publish}, "").values()
            outcomes[name] = again
            assert again is None if not published else isinstance(again, PrivacyError)
            published = {name for name, run in runs.items() if run.is_published}
    assert len(published) == 1


def test_in_no_order_of_their_steps_both_are_published(turns: Turns, tmp_path: Path) -> None:
    assert len(ORDERS) == 70
    for at, order in enumerate(ORDERS):
        never_both(turns, str(tmp_path / str(at)), order)


@pytest.mark.s3
@pytest.mark.parametrize("order", ["ABBAAABB", "ABABABAB", "AABBBBAA", "AAABBBBA", "ABBBBAAA"])
def test_nor_are_they_on_a_remote_store(turns: Turns, s3_folder: S3Folder, order: str) -> None:
    never_both(turns, s3_folder.url("here").rstrip("/"), order)


@pytest.mark.parametrize(
    ("order", "outcomes"),
    [
        ("AAAABBBB", (type(None), PrivacyError)),  # one after the other
        ("ABBBBAAA", (type(None), OSError)),  # B between the writing and the reading of A
        ("AABBBBAA", (type(None), OSError)),  # and between its reading and its publication
        ("AAABBBBA", (type(None), PrivacyError)),  # and before it is sure
        ("ABABABAB", (OSError, OSError)),  # both write, then both read
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_who_is_published_and_who_may_try_again(turns, tmp_path, order, outcomes, swapped):
    if swapped:
        order = order.translate(str.maketrans("AB", "BA"))
        outcomes = outcomes[::-1]
    runs = two_runs(str(tmp_path))
    found = turns.take({name: run.publish for name, run in runs.items()}, order)
    assert tuple(type(found[name]) for name in "AB") == outcomes


@pytest.mark.parametrize("order", ["AABBBBAA", "ABABABAB", "ABBBBAAA"])
def test_who_shares_nobody_or_is_only_warned_is_not_held_up(turns, tmp_path, order):
    runs = two_runs(str(tmp_path / "apart"), people=range(20, 40))
    found = turns.take({name: run.publish for name, run in runs.items()}, order)
    assert found == {"A": None, "B": None}
    runs = two_runs(str(tmp_path / "warned"), overlap="warn")
    found = turns.take({name: run.publish for name, run in runs.items()}, order)
    assert found["B"] is None
    assert (found["A"] is None) == (order == "AABBBBAA")  # nobody was there when it looked


def test_a_release_that_appears_while_it_is_looked_for_is_found(tmp_path, monkeypatch):
    """Its working files go and it appears between two looks: in one of them it is there."""
    runs = two_runs(str(tmp_path), overlap="warn")
    entry = overlap_check._entry(runs["B"].job, runs["B"].work, {"rows": {}, "achieved": {}})
    storage.Ledger(str(runs["B"].job.ledger)).write(entry)
    looks = {name: getattr(storage, name) for name in ("may_publish", "published")}

    def looked(name):
        def look(*args):
            found = looks[name](*args)
            monkeypatch.undo()
            storage.publish(runs["B"].work.staging, runs["B"].output, runs["B"].work.token)
            return found

        return look

    for name in looks:
        monkeypatch.setattr(storage, name, looked(name))
    with pytest.raises(PrivacyError):
        runs["A"].publish()


def test_an_attempt_that_is_still_alive_keeps_its_entry_whatever_becomes_of_the_next(
    turns, tmp_path
):
    """A's first attempt found nobody and stalls; its second finds B's entry, and gives way."""
    runs = two_runs(str(tmp_path))
    first, second = runs["A"].publish, runs["A"].publish
    found = turns.take(
        {"first": first, "second": second, "B": runs["B"].publish},
        ["first", "first", "B", "second", "second", "second", "B", "B", "B", "first"],
    )
    assert isinstance(found["second"], OSError)
    assert isinstance(found["B"], OSError)
    assert found["first"] is None
    assert not runs["B"].is_published
