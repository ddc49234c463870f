"""The landing folder of the nightly DAG: which drops a data interval has, and their jobs.

A drop is what a data set delivered for one day::

    LANDING/DATASET/2025-06-01.parquet          one file
    LANDING/DATASET/2025-06-01-a.csv, …-b.csv   or several whose names start with the day

``JOBS/DATASET.yaml`` says how a data set is anonymized; its ``input`` and ``output`` are filled in.
The release of a drop is ``RELEASES/DATASET/2025-06-01``, so doing a day again replaces it.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from mondrian_ops.core.errors import InputError

__all__ = ["Drop", "find_drops"]

_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d).*\.(parquet|csv)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Drop:
    """What one data set delivered for one day; ``files`` are sorted."""

    dataset: str
    day: date
    files: tuple[Path, ...]

    @property
    def name(self) -> str:
        """``DATASET/DAY``."""
        return f"{self.dataset}/{self.day}"

    def job(self, jobs: Path, releases: Path) -> dict[str, Any]:
        """The job that anonymizes this drop, as the operators take it.

        A data set without a job file gets the path of the missing file: its own tasks then say
        so, and the other drops are none the worse.
        """
        file = jobs / f"{self.dataset}.yaml"
        return {
            "name": self.name,
            "file": str(file),
            "set": [
                f"input={json.dumps(self.input)}",
                f"output={json.dumps(str(releases / self.dataset / str(self.day)))}",
            ],
        }

    @property
    def input(self) -> str:
        """The file, or a pattern that matches the files."""
        first = self.files[0]
        if len(self.files) == 1:
            return str(first)
        # Of several formats: let the job's reader say what is wrong with that.
        endings = {file.suffix for file in self.files}
        ending = first.suffix if len(endings) == 1 else ""
        return f"{glob.escape(str(first.parent / str(self.day)))}*{ending}"


def find_drops(landing: Path, first: date, last: date) -> list[Drop]:
    """The drops of the days ``first`` to ``last``, by data set and day.

    Names that start with ``.`` or ``_``, and files of other kinds, are not looked at: that is how
    a delivery that is still being written is kept out.

    Raises InputError when there is no landing folder.
    """
    if not landing.is_dir():
        raise InputError(f"{landing}: no such landing folder; make it or name another")
    found: dict[tuple[str, date], list[Path]] = {}
    for path, day in _dated_files(landing):
        if first <= day <= last:
            found.setdefault((path.parent.name, day), []).append(path)
    return [Drop(key[0], key[1], tuple(sorted(files))) for key, files in sorted(found.items())]


def _dated_files(landing: Path) -> Iterator[tuple[Path, date]]:
    for path in landing.glob("*/*"):
        match = _DATED.fullmatch(path.name)
        if match is None or path.parent.name.startswith((".", "_")):
            continue
        try:
            yield path, date.fromisoformat(match[1])
        except ValueError:  # a 13th month: not a day, so not a drop
            continue
