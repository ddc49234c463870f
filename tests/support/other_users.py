"""Files of another user, as far as the package can tell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mondrian_ops.stores import shared_folders

_STRANGER = 54_321


class _NobodyElse(dict[int, int]):
    """Of every file system it is known that it leaves this user's files to this user."""

    def __contains__(self, _device: object) -> bool:
        return True

    def get(self, _device: int, _default: Any = None) -> int:
        return -1


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a file another user's.

    Only the superuser can; for others this process becomes another user in the package's eyes.
    """
    if os.geteuid() == 0:
        os.chown(path, _STRANGER, -1)
        return
    monkeypatch.setattr(os, "geteuid", lambda: _STRANGER)
    monkeypatch.setattr(shared_folders, "_owners", _NobodyElse())
