"""What is noted in the catalogue of a release: what its job asks for, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from mondrian_ops import series
from mondrian_ops.pipeline import catalogued, contract, overlap_check

CASES = list(product([False, True], repeat=4))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is called, in order; each context as it begins and as it ends."""
    called: list[str] = []

    def noting(name: str) -> Callable[..., None]:
        return lambda *_: called.append(name)

    def around(name: str) -> Any:
        @contextmanager
        def context(*_: Any) -> Iterator[None]:
            called.append(name)
            yield
            called.append(f"end of {name}")

        return context

    for module, name in ((contract, "contract"), (series, "series"), (overlap_check, "people")):
        monkeypatch.setattr(module, "note", noting(name), raising=False)
        monkeypatch.setattr(module, "confirm", noting(name))
        context = "committed" if module is series else "recorded"
        monkeypatch.setattr(module, context, around(name))
    monkeypatch.setattr(contract, "settled", lambda *_: "what its values decided")
    return called


def given(has_contract: bool, is_night: bool, compares: bool, held: bool) -> tuple[Any, Any, Any]:
    """A job, its run and its report."""
    dataset = SimpleNamespace(
        contract="its" if has_contract else None, night="a night" if is_night else None
    )
    run = SimpleNamespace(dataset=dataset, work="working files", state="its state")
    state = {"outcome": {"state": "held" if held else "published"}}
    return SimpleNamespace(compares_people=compares), run, state


@pytest.mark.parametrize(("has_contract", "is_night", "compares", "held"), CASES)
def test_what_is_noted_recorded_and_confirmed(
    calls: list[str], has_contract: bool, is_night: bool, compares: bool, held: bool
) -> None:
    """A night that publishes nothing is over all the same, but nobody was released."""
    args = given(has_contract, is_night, compares, held)
    catalogued.note(*args)
    assert calls == ["contract"] * has_contract + ["people"] * compares
    calls.clear()
    with catalogued.recorded(*args):
        calls.append("published")
    around = (
        ["contract"] * has_contract + ["series"] * is_night + ["people"] * (compares and not held)
    )
    assert calls == [*around, "published", *(f"end of {name}" for name in reversed(around))]
    calls.clear()
    catalogued.confirm(*args)
    confirmed = ["people"] * (compares and not held) + ["series"] * (is_night and not held)
    assert calls == confirmed + ["contract"] * has_contract
