"""Runs of which there is only what a publication looks at: working files with a release."""

from __future__ import annotations

from pathlib import Path

from mondrian_ops import publish, stores


class WaitingRun:
    """A run whose release was checked, and is to be published at ``place/name``."""

    def __init__(self, place: Path | str, name: str) -> None:
        self.output = f"{place}/{name}"
        self.work = publish.WorkDir(publish.work_path(self.output, name))
        self.work.create()
        stores.write_file(f"{self.work.staging}/_report.json", b'{"job": 1}')

    def place(self) -> None:
        """Make it the release at the output, as the second step of a publication does."""
        publish.publish(self.work.staging, self.output, self.work.token)

    @property
    def is_published(self) -> bool:
        return publish.current_token(self.output) is not None
