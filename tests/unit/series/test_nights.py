"""Turns between the parts of a night's persons."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from mondrian_ops.series import nights


@pytest.mark.parametrize(("is_sqlite", "pauses"), [(True, 2), (False, 0)])
def test_only_in_sqlite_others_need_time_to_get_their_turn(
    monkeypatch: pytest.MonkeyPatch, is_sqlite: bool, pauses: int
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(nights, "sleep", slept.append)
    opened: Any = SimpleNamespace(is_sqlite=is_sqlite)
    parts = [pa.table({"hash": [number]}) for number in range(3)]
    assert [*nights._in_turns(opened, parts)] == parts
    assert len(slept) == pauses
