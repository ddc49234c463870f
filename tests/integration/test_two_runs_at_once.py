"""Two runs that publish overlapping drops at the same moment: never both, in whatever order."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mondrian_ops import publish
from mondrian_ops.errors import PrivacyError, StorageError
from mondrian_ops.pipeline import overlap_check
from mondrian_ops.pipeline.overlap_check import Comparison
from people_runs import PeopleRun, publications

ORDERS = sorted({"".join(order) for order in itertools.permutations("AAABBB")})
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
    """The comparison, the intention and the publication are a step each."""
    taken = Turns()

    def as_step(function: Callable[..., object]) -> Callable[..., object]:
        def step(*args: object) -> object:
            found = function(*args)
            if threading.current_thread() is not threading.main_thread():
                taken.step()
            return found

        return step

    monkeypatch.setattr(Comparison, "read_on", as_step(Comparison.read_on))
    monkeypatch.setattr(overlap_check, "_intention", as_step(overlap_check._intention))
    monkeypatch.setattr(publish, "publish", as_step(publish.publish))
    return taken


def two_runs(place: Path, **second: Any) -> dict[str, PeopleRun]:
    """Runs of two drops which share a person."""
    keys = {"numbers": range(19, 40), "population": place.name, **second}
    first = PeopleRun(place, "A", range(20), population=place.name)
    return {"A": first, "B": PeopleRun(place, "B", **keys)}


def test_in_every_order_of_their_steps_one_is_published(turns: Turns, tmp_path: Path) -> None:
    assert len(ORDERS) == 20
    for order in ORDERS:
        runs = two_runs(tmp_path / order)
        outcomes = turns.take({name: run.publish for name, run in runs.items()}, order)
        (published,) = (name for name, run in runs.items() if run.is_published)
        (other,) = runs.keys() - {published}
        assert outcomes[published] is None
        assert isinstance(outcomes[other], (OSError, PrivacyError))
        noted = [(each.intention.output, each.published) for each in publications(order)]
        assert noted == [(runs[published].output, True)]
        with pytest.raises(PrivacyError):  # as its retry finds
            runs[other].publish()


@pytest.mark.parametrize(
    ("order", "outcomes"),
    [
        ("AAABBB", (type(None), PrivacyError)),  # one after the other
        ("AABBBA", (type(None), OSError)),  # B before A is published
        ("ABABAB", (type(None), OSError)),  # both look, and A is the first to intend
        ("ABBABA", (OSError, type(None))),  # or B is
    ],
)
def test_who_intends_first_is_published_and_the_other_may_try_again(
    turns, tmp_path, order, outcomes
):
    runs = two_runs(tmp_path)
    found = turns.take({name: run.publish for name, run in runs.items()}, order)
    assert tuple(type(found[name]) for name in "AB") == outcomes


@pytest.mark.parametrize("order", ["AABBBA", "ABABAB", "ABBABA"])
def test_who_shares_nobody_or_is_only_warned_is_not_held_up(turns, tmp_path, order):
    runs = two_runs(tmp_path / "apart", numbers=range(20, 40))
    found = turns.take({name: run.publish for name, run in runs.items()}, order)
    assert found == {"A": None, "B": None}
    runs = two_runs(tmp_path / "warned", overlap="warn")
    found = turns.take({name: run.publish for name, run in runs.items()}, order)
    assert found["B"] is None


def test_an_attempt_that_is_still_alive_keeps_its_intention_whatever_becomes_of_the_next(
    turns, tmp_path
):
    """A's first attempt intends and stalls; its second is refused for good; B finds the first."""
    runs = two_runs(tmp_path)

    def refused() -> None:
        with overlap_check.recorded(runs["A"].job, runs["A"].work):
            raise StorageError("no")

    found = turns.take(
        {"first": runs["A"].publish, "second": refused, "B": runs["B"].publish},
        ["first", "first", "second", "second", "second", "B", "B", "first"],
    )
    assert isinstance(found["second"], StorageError)
    assert isinstance(found["B"], OSError)
    assert found["first"] is None
    assert not runs["B"].is_published
    assert [each.published for each in publications(tmp_path.name)] == [True]
