"""What is on the disk when nights are over."""

from __future__ import annotations

from pathlib import Path

from releases import recorded_releases

State = dict[str, tuple[int, int]]

_NIGHT = 16 * 1024
"""Bytes that the catalogue may take for a night, with its report."""
_EMPTY = 512 * 1024
"""Bytes of a catalogue without nights."""


def state(release: Path) -> State:
    """Each file of a release, and what changes when somebody touches it; none if there is none."""
    paths = list(release.iterdir()) if release.exists() else []
    return {path.name: (path.stat().st_ino, path.stat().st_ctime_ns) for path in paths}


def check_catalogue(path: Path, releases: int, recorded: int) -> None:
    """Assert that it holds an entry of each night, and a report of each release."""
    entries = recorded_releases(path)
    assert len(entries) == recorded
    reports = [name for entry in entries for name in entry["documents"]]
    assert reports == ["_report.json"] * releases
    assert path.stat().st_size <= _EMPTY + _NIGHT * recorded
