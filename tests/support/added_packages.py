"""The package of examples/extension, as if it were installed in this process."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from added_criteria import EXAMPLE
from mondrian_ops.stores import places, store


@contextmanager
def example_installed(folder: Path) -> Iterator[None]:
    """Jobs find its store ``shelf://``, whose shelves are in ``folder``, and its tables."""
    metadata = folder / "site" / "example-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Name: example\nVersion: 1.0\n")
    text = f"[{store.GROUP}]\nshelf = shelf:ShelfStore\n"
    (metadata / "entry_points.txt").write_text(
        f"{text}[{places.GROUP}]\nsqlite = sqlite_table:SqliteTable\n"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(metadata.parent))
        patched.syspath_prepend(str(EXAMPLE))
        patched.setenv("SHELF_ROOT", str(folder / "shelves"))
        _forget()
        try:
            yield
        finally:
            _forget()
            shutil.rmtree(metadata.parent)


def _forget() -> None:
    store._store.cache_clear()
    places._opener.cache_clear()


def add_table(database: Path, name: str, rows: Sequence[dict[str, Any]]) -> str:
    """Put rows, all with the same columns, into a table of SQLite; its URL."""
    kinds = {int: "INTEGER", float: "REAL", str: "TEXT"}
    columns = {column: kinds[type(value)] for column, value in rows[0].items()}
    with sqlite3.connect(database) as opened:
        declared = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
        opened.execute(f'CREATE TABLE "{name}" ({declared})')
        marks = ", ".join("?" * len(columns))
        values = [tuple(row.values()) for row in rows]
        opened.executemany(f'INSERT INTO "{name}" VALUES ({marks})', values)  # noqa: S608
    return f"sqlite://{database}/{name}"
