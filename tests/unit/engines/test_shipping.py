"""Which files of packages that extend this one travel to executors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mondrian_ops.engines import shipping


def installed(folder: Path, value: str, *files: str) -> None:
    """A package that adds a criterion, in a folder."""
    for file in files:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    listed = folder / "widened-1.dist-info"
    listed.mkdir()
    listed.joinpath("METADATA").write_text("Name: widened\nVersion: 1\n")
    listed.joinpath("entry_points.txt").write_text(f"[mondrian_ops.criteria]\nwide = {value}\n")


@pytest.mark.parametrize(
    ("value", "files"),
    [
        ("widened:Wide", ["widened.py"]),
        ("widened.rules:Wide", ["widened/__init__.py", "widened/rules.py", "widened/a/table.csv"]),
        ("widened.rules:Wide", ["widened/rules.py", "widened/a/table.csv"]),  # no __init__.py
        ("widened.a.rules:Wide", ["widened/a/__init__.py", "widened/a/rules.py"]),
    ],
    ids=["module", "package", "namespace", "package of a namespace"],
)
def test_all_files_of_a_package_travel(
    value: str, files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, value, *files)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    added = shipping._added()
    assert {name for name in added if name.startswith("widened")} == set(files)
    assert f"wide = {value}" in added[f"{shipping._ADDED}/entry_points.txt"].decode()


def test_a_package_without_its_files_travels_as_its_entry_point_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "widened:Wide")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert not [name for name in shipping._added() if name.startswith("widened")]
