"""Cases of a test that run in the soak, or with the tests of servers: others show the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def in_soak(cases: Iterable[Any]) -> list[Any]:
    """The cases of ``parametrize``, marked; a tuple is a case of several parameters."""
    return [_marked(case, pytest.mark.soak) for case in cases]


def one_in(number: int, cases: Iterable[Any]) -> list[Any]:
    """The cases of ``parametrize``, of which one in ``number`` is not marked."""
    return [
        _marked(case, pytest.mark.soak) if at % number else case for at, case in enumerate(cases)
    ]


def one_here(cases: Iterable[Any], of: int | None = None) -> list[Any]:
    """The cases of ``parametrize``, of which `make test` has the first, or one ``of`` so many.

    The others run with the tests of servers, but for those that are for the soak already.
    """
    listed, short = list(cases), 0
    for at, case in enumerate(listed):
        if not any(mark.name == "soak" for mark in getattr(case, "marks", ())):
            if short % (of or len(listed)):
                listed[at] = _marked(case, pytest.mark.servers)
            short += 1
    return listed


def _marked(case: Any, mark: pytest.MarkDecorator) -> Any:
    if hasattr(case, "marks"):  # of pytest.param
        return pytest.param(*case.values, marks=[*case.marks, mark], id=case.id)
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=mark)
