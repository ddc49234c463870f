"""The landing folder of the nightly DAG: the drops of a data interval, and their jobs.

A drop is what a data set delivered for one day::

    LANDING/DATASET/2025-06-01.parquet          one file
    LANDING/DATASET/2025-06-01-a.csv, …-b.csv   or several whose names start with the day

``JOBS/DATASET.yaml`` says how a data set is anonymized; its ``input`` and ``output`` are filled in.
The release of a drop is ``RELEASES/DATASET/2025-06-01``, so a second run for a day replaces it.
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
    """What one data set delivered for one day; ``files`` are sorted."""

    dataset: str
    day: date
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        """``DATASET/DAY``."""
        return f"{self.dataset}/{self.day}"

    def job(self, jobs: Path, releases: str) -> dict[str, Any]:
        """The job that anonymizes this drop, as the operators take it.

        A data set without a job file gets the path of the missing file, so that only its own tasks
        fail.
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
        # Files of several formats: the source's reader refuses them.
        endings = {PurePosixPath(file).suffix for file in self.files}
        ending = endings.pop() if len(endings) == 1 else ""
        folder = first.rpartition("/")[0]
        return f"{glob.escape(f'{folder}/{self.day}')}*{ending}"


def find_drops(landing: str, first: date, last: date) -> list[Drop]:
    """The drops of the days ``first`` to ``last``, by data set and day.

    Names that start with ``.`` or ``_``, and files of other kinds, are ignored: give such a name to
    a delivery that is still being written.

    Raises InputError if there is no landing folder, JobError if it may not be read.
    """
    storage.check_location("landing", landing, exact=True)
    files_by_drop: dict[tuple[str, date], list[str]] = {}
    try:
        for dataset, file, day in _dated_files(landing):
            if first <= day <= last:
                files_by_drop.setdefault((dataset, day), []).append(file)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{storage.shown(landing)}: no such landing folder; make it or name another"
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
            except ValueError:  # a 13th month: not a day, so not a drop
                continue
