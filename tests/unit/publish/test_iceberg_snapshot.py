"""Whether a branch of a table has the parts of a release, by their paths, rows and bytes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mondrian_ops.errors import StorageError
from mondrian_ops.publish import iceberg_snapshot
from mondrian_ops.publish.iceberg_snapshot import audit, is_staged

PARTS = {"a.parquet": (10, 900), "b.parquet": (7, 800)}
FOUND = [
    (PARTS, 0),
    ({}, 2),
    ({"a.parquet": (10, 900)}, 1),
    ({**PARTS, "c.parquet": (1, 1)}, 1),
    ({**PARTS, "b.parquet": (6, 800)}, 2),  # one that lacks, and one that is not a part
    ({**PARTS, "b.parquet": (-1, 800)}, 2),  # some rows of which are deleted
]


@pytest.mark.parametrize(("found", "differing"), FOUND)
def test_a_branch_has_the_parts_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, tuple[int, int]], differing: int
) -> None:
    monkeypatch.setattr(iceberg_snapshot, "_expected", lambda *_: PARTS)
    monkeypatch.setattr(iceberg_snapshot, "_found", lambda *_: found)
    table: Any = SimpleNamespace(refs=lambda: {"its": "a snapshot", "main": "another"})
    candidate: Any = None
    assert is_staged(table, "its", candidate) is not bool(differing)
    assert not is_staged(table, "of another attempt", candidate)
    if differing:
        with pytest.raises(StorageError, match=f"{differing} of its data files are not those"):
            audit(table, "iceberg://lake/a.b", "its", candidate)
