"""What is on the disk when nights are over."""

from __future__ import annotations

from pathlib import Path

__all__ = ["State", "check_archive", "state"]

State = dict[str, tuple[int, int]]

_ENTRY = 1024
"""Bytes that the index of the archive may take for a night."""
_FILES = 32 + 8
"""Files of the index: loose entries, and segments, which grow by doubling."""
_REPORT = 16 * 1024


def state(release: Path) -> State:
    """Each file of a release, and what changes when somebody touches it; none if there is none."""
    paths = list(release.iterdir()) if release.exists() else []
    return {path.name: (path.stat().st_ino, path.stat().st_ctime_ns) for path in paths}


def check_archive(location: Path, releases: int, recorded: int) -> None:
    """Assert that it holds a report of each release, a line of each night, and nothing more."""
    reports = [path for path in (location / "reports").rglob("*") if path.is_file()]
    assert [path.name for path in reports] == ["_report.json"] * releases
    assert max(path.stat().st_size for path in reports) <= _REPORT
    index = list((location / "index").iterdir())
    assert len(index) <= _FILES
    assert sum(path.stat().st_size for path in index) <= _ENTRY * recorded
    assert sorted(path.name for path in location.iterdir()) == ["index", "key", "reports"]
