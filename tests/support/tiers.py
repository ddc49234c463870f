"""Cases of a test that run in the soak: the cases that `make test` has show the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def in_soak(cases: Iterable[Any]) -> list[Any]:
    """The cases of ``parametrize``, marked; a tuple is a case of several parameters."""
    return [_marked(case) for case in cases]


def one_in(number: int, cases: Iterable[Any]) -> list[Any]:
    """The cases of ``parametrize``, of which one in ``number`` is not marked."""
    return [_marked(case) if at % number else case for at, case in enumerate(cases)]


def _marked(case: Any) -> Any:
    if hasattr(case, "marks"):  # of pytest.param
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.soak], id=case.id)
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.soak)
