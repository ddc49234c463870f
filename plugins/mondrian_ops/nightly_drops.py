"""The landing folder of the nightly DAG: the drops of a data interval, and their jobs.

A drop is the delivery of one dataset for one day::

    LANDING/DATASET/2025-06-01.parquet          one file
    LANDING/DATASET/2025-06-01-a.csv, …-b.csv   or several whose names start with the day

``JOBS/DATASET.yaml`` is the dataset's job; its ``input`` and ``output`` are filled in. The release
of a drop is ``RELEASES/DATASET/2025-06-01``, so a second run for the same day replaces it.
LANDING and RELEASES are paths or URLs.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any

from mondrian_ops import storage
from mondrian_ops.core.errors import InputError

__all__ = ["Drop", "find_drops"]

_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d).*\.(parquet|csv)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Drop:
    """The delivery of one dataset for one day; ``files`` are sorted."""

    dataset: str
    day: date
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        """``DATASET/DAY``."""
        return f"{self.dataset}/{self.day}"

    def job(self, jobs: Path, releases: str) -> dict[str, Any]:
        """The job that anonymizes this drop, as the operators take it.

        It names the job file even if that is missing, so that only this dataset's tasks fail.
        """
        file = jobs / f"{self.dataset}.yaml"
        return {
            "name": self.name,
            "file": str(file),
            "set": [
                f"input={json.dumps(self.input)}",
                f"output={json.dumps(storage.joined(releases, self.dataset, str(self.day)))}",
            ],
        }

    @property
    def input(self) -> str:
        """The file, or a pattern that matches the files."""
        first = self.files[0]
        if len(self.files) == 1:
            return first
        # A pattern without an ending matches several formats, which the reader refuses.
        endings = {PurePosixPath(file).suffix for file in self.files}
        ending = endings.pop() if len(endings) == 1 else ""
        folder = first.rpartition("/")[0]
        return f"{glob.escape(f'{folder}/{self.day}')}*{ending}"


def find_drops(landing: str, first: date, last: date) -> list[Drop]:
    """The drops of the days ``first`` to ``last``, sorted by dataset and day.

    Files of other kinds are ignored, and so are names that start with ``.`` or ``_``: give such a
    name to a delivery that is still being written.

    Raises InputError if the landing folder does not exist, JobError if jobs may not read it.
    """
    storage.check_location("landing", landing, exact=True)
    files_by_drop: dict[tuple[str, date], list[str]] = {}
    try:
        for dataset, file, day in _dated_files(landing):
            if first <= day <= last:
                files_by_drop.setdefault((dataset, day), []).append(file)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{storage.shown(landing)}: no such landing folder; create it, or name another"
        ) from None
    return [
        Drop(key[0], key[1], tuple(sorted(files))) for key, files in sorted(files_by_drop.items())
    ]


def _dated_files(landing: str) -> Iterator[tuple[str, str, date]]:
    for dataset, is_directory in storage.names_in(landing).items():
        if not is_directory or dataset.startswith((".", "_")):
            continue
        folder = storage.joined(landing, dataset)
        for name in storage.names_in(folder):
            match = _DATED.fullmatch(name)
            if match is None:
                continue
            try:
                yield dataset, storage.joined(folder, name), date.fromisoformat(match[1])
            except ValueError:  # such as a 13th month
                continue
