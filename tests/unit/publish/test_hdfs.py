"""What needs no rename, and so no server: the rest is in tests/servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from mondrian_ops.publish import hdfs
from staged_releases import names


@pytest.mark.parametrize(
    ("name", "left"), [("note.txt", [".out.mondrian_ops-previous", "out"]), ("_SUCCESS", ["out"])]
)
def test_a_release_set_aside_is_removed_only_for_another_one(
    tmp_path: Path, name: str, left: list[str]
) -> None:
    (tmp_path / ".out.mondrian_ops-previous").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).touch()
    hdfs.HdfsPublication().recover(f"file://{tmp_path}/out")
    assert names(tmp_path) == left
