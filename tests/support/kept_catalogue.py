"""Of the new catalogues of a process of tests, the later ones are copies of the first one.

The migrations take longer than all else that a small night does, and always make the same.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from mondrian_ops.catalogue import database

_FOLDER = tempfile.TemporaryDirectory(prefix="mondrian_ops-catalogue-")
_KEPT = Path(_FOLDER.name) / "kept.db"
_migrate = database.Catalogue._migrate


def keep_tables(patched: pytest.MonkeyPatch) -> None:
    """Until ``patched`` is undone, copy the tables into each new SQLite file."""
    patched.setattr(database.Catalogue, "_migrate", _copied)


def _copied(catalogue: database.Catalogue) -> None:
    path = str(catalogue._engine.url.database)
    if not catalogue.is_sqlite or database._version(catalogue._reader) is not None:
        _migrate(catalogue)
    elif _KEPT.exists():
        _copy(str(_KEPT), path)
    else:
        _migrate(catalogue)
        _copy(path, str(_KEPT))


def _copy(source: str, target: str) -> None:
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)
