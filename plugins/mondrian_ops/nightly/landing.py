"""The landing folder of the nightly DAG: its drops, and their jobs.

A drop is the delivery of one dataset for one day::

    LANDING/DATASET/2025-06-01.parquet          one file
    LANDING/DATASET/2025-06-01-a.csv, …-b.csv   or several whose names start with the day
    LANDING/DATASET/2025-06-01/                 or a directory, complete with its _SUCCESS

``JOBS/DATASET.yaml`` is the dataset's job; its ``input`` and ``output`` are filled in. The release
of a drop is ``RELEASES/DATASET/2025-06-01``. LANDING and RELEASES are paths or URLs.
"""

from __future__ import annotations

import glob
import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from mondrian_ops import stores
from mondrian_ops.errors import InputError, MondrianOpsError
from mondrian_ops.late_methods import dataclass
from mondrian_ops.tables.discovery import data_file, data_files

MARKER = "_SUCCESS"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATED = re.compile(rf"({_DAY.pattern})(?!\d).*\.(parquet|parq|pq|[ct]sv(\.gz)?)", re.IGNORECASE)
# A name that means the same in a path, a URL, a pattern and a log line.
_DATASET = re.compile(r"\w[\w. +-]{0,199}")


@dataclass(frozen=True)
class Drop:
    """The delivery of one dataset for one day: sorted files, or one directory."""

    dataset: str
    day: date
    files: tuple[str, ...]
    is_directory: bool = False

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
            "defaults": {"schema": "keep"},  # its releases are to be alike
            "set": [
                f"input={json.dumps(self.input)}",
                f"output={json.dumps(self.output(releases))}",
            ],
        }

    def output(self, releases: str) -> str:
        """Where its release is."""
        return stores.joined(releases, self.dataset, str(self.day))

    @property
    def input(self) -> str:
        """The file or directory, or a pattern that matches the files."""
        first = self.files[0]
        if len(self.files) == 1:
            return first
        # A pattern without an ending matches several formats, which the reader refuses.
        endings = {PurePosixPath(file).suffix for file in self.files}
        ending = endings.pop() if len(endings) == 1 else ""
        folder = first.rpartition("/")[0]
        return f"{glob.escape(f'{folder}/{self.day}')}*{ending}"

    @cached_property
    def version(self) -> str | None:
        """A text that changes when a file is delivered again; None if they cannot be read."""
        try:
            files = data_files(self.input)
        except MondrianOpsError:
            return None
        seen = sorted((file.name, file.bytes, file.modified) for file in files)
        return hashlib.sha256(json.dumps(seen).encode()).hexdigest()

    def incomplete(self, now: datetime, settle: timedelta) -> str | None:
        """Why it may still be being written; None if it is complete.

        A directory is complete with a marker that is no older than its files. Anything else is
        complete when nothing in it has changed for the time ``settle``.
        """
        marked = self._marked() if self.is_directory else None
        if self.is_directory and marked is None:
            return f"the directory has no {MARKER}"
        try:
            written = max(file.changed for file in data_files(self.input))
        except MondrianOpsError:  # the tasks of the drop will tell
            return None
        if marked is not None and marked >= written:
            return None
        since = now - datetime.fromtimestamp(written / 1e9, UTC)
        if since >= settle:
            return None
        return f"it changed {_minutes(since)} minutes ago, and settles in {_minutes(settle)}"

    def _marked(self) -> int | None:
        """When the marker of the directory was written; None if there is none."""
        with suppress(OSError):
            marker = data_file(stores.joined(self.files[0], MARKER))
            if not (marker.is_directory or marker.special):
                return marker.changed
        return None


def _minutes(time: timedelta) -> int:
    return round(time.total_seconds() / 60)


class Landing(NamedTuple):
    """What a landing folder holds."""

    drops: dict[str, list[Drop]]
    """By dataset, the oldest first."""
    unusable: dict[str, str]
    """Names that look like drops or datasets but cannot be used, with what to do."""


def read_landing(landing: str, only: str = "") -> Landing:
    """The drops in a landing folder; ``only``: of this dataset.

    Files of other kinds are ignored, and so are names that start with ``.`` or ``_``.

    Raises InputError if the landing folder does not exist, JobError if jobs may not read it.
    """
    stores.check_location("landing", landing, exact=True)
    try:
        folders = stores.names_in(landing)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{stores.shown(landing)}: no such landing folder; create it, or name another"
        ) from None
    found = Landing({}, {})
    for dataset in sorted(folders):
        if folders[dataset] and not dataset.startswith((".", "_")) and only in ("", dataset):
            _read_dataset(landing, dataset, found)
    return found


def _read_dataset(landing: str, dataset: str, found: Landing) -> None:
    folder, is_usable = stores.joined(landing, dataset), _DATASET.fullmatch(dataset) is not None
    try:
        names = stores.names_in(folder)
    except FileNotFoundError:  # removed meanwhile
        return
    except PermissionError:
        if is_usable:
            found.unusable[dataset] = "the folder cannot be read; let this process read it"
        return
    by_day = _by_day(names)
    if by_day and not is_usable:
        found.unusable[ascii(dataset)] = (
            "a dataset's name has letters, digits and _ . + - and spaces only; rename the folder"
        )
        return
    for day in sorted(by_day):
        here = sorted(by_day[day])
        is_directory = any(names[name] for name in here)
        drop = Drop(dataset, day, tuple(stores.joined(folder, name) for name in here), is_directory)
        if is_directory and len(here) > 1:
            found.unusable[drop.name] = "both a directory and files have this day; remove one"
        else:
            found.drops.setdefault(dataset, []).append(drop)


def _by_day(names: Mapping[str, bool]) -> dict[date, list[str]]:
    """The names of drops, by day; each name with whether it is a directory."""
    by_day: dict[date, list[str]] = {}
    for name, is_directory in names.items():
        match = (_DAY if is_directory else _DATED).fullmatch(name)
        if match is None:
            continue
        with suppress(ValueError):  # such as a 13th month
            by_day.setdefault(date.fromisoformat(name[:10]), []).append(name)
    return by_day
