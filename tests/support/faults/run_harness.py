"""One run, taken to any of its steps again and again, disturbed there, recovered and looked at."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from faults.injection import Fault
from faults.process import Ended, Processes, Within, job_of
from mondrian_ops import datasets, publish

STEPS = ("partition", "anonymize_fragment", "anonymize_fragment", "wrap_up", "clean_up")
"""The tasks of a run of two fragments."""

_TIMES = frozenset({"at", "created", "timings_s", "phases", "seconds", "finished"})


class Harness:
    """A run of two fragments, in a folder that can be set back to before each of its steps.

    Attributes:
        folder: where its output and its working files are.
        seen: that folder, and the source beside it; points lie in it.
        passed: by number of a step, the points that it comes by when nothing disturbs it.
    """

    def __init__(
        self,
        place: Path,
        processes: Processes,
        retrieval: str,
        replaces: bool,
        within: Within | None = None,
    ) -> None:
        self.within = within
        self.seen = place / "seen"
        self.folder = self.seen / "here"
        self.output = self.folder / "out"
        self.work = publish.work_path(str(self.output), "run")
        self.processes = processes
        self.passed: list[tuple[str, ...]] = []
        self._place = place
        self._values: list[Any] = []
        self.source = self.seen / "people.parquet"
        self.folder.mkdir(parents=True)
        datasets.generate("people", rows=300, seed=0, output=str(self.source))
        pq.write_table(pq.read_table(self.source), self.source, row_group_size=150)
        self.job = job_of(str(self.source), str(self.output), retrieval)
        if replaces:
            self._publish_another()
        self.old = contents(self.output)
        self._go_through()

    def another(self, run_id: str) -> Harness:
        """Another run of the same job, to the same output."""
        other = copy.copy(self)
        other.work, other._values = publish.work_path(str(self.output), run_id), []
        return other

    def go(self, step: int, last: int, fault: Fault | None = None) -> Ended:
        """Some steps of a run of its own, which take up what those before them gave."""
        ended = self.run(step, fault, last)
        if ended.how == "done":
            self._values = ended.value
        return ended

    def set_back(self, step: int) -> None:
        """Everything as it was before the step."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._place / f"before-{step}", self.folder)

    def run(
        self,
        step: int,
        fault: Fault | None = None,
        last: int | None = None,
    ) -> Ended:
        """A step as its task would do it, or those up to another."""
        names = STEPS[step : step + 1 if last is None else last + 1]
        given = {"job": self.job, "work": self.work, "values": self._values[:step]}
        return self.processes.run(names, self.seen, fault, self.within, **given)

    def run_from(self, step: int) -> None:
        """A step and all that follow it, which have to succeed."""
        ended = self.run(step, last=len(STEPS))
        assert ended.how == "done", str(ended)

    def standing(self) -> str:
        """Which release stands, whole and as it was published: ``old``, ``new`` or ``none``."""
        found = contents(self.output)
        if not found:
            return "none"
        if found == self.old:
            return "old"
        assert rows_and_report(self.output) == self.expected, f"neither release: {sorted(found)}"
        return "new"

    @property
    def good(self) -> set[str]:
        """What may stand while the run is not over; between two renames, nothing does."""
        exchanges = (self.within or {}).get("exchange", True)
        return {"new", "old"} if self.old and exchanges else {"new", "old", "none"}

    def check_private(self) -> None:
        """Nobody else may look into working files."""
        for path in self.folder.glob(".*mondrian_ops-????????????"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700, path

    def check_over(self) -> None:
        """The release is that of an undisturbed run, and nothing else is left."""
        assert self.standing() == "new"
        self.check_nothing_left()

    def check_nothing_left(self) -> None:
        """No working file is left, here or in the release."""
        assert [path.name for path in self.folder.glob("*")] in (["out"], [])
        assert not list(self.folder.rglob(".*")), sorted(self.folder.rglob("*"))

    def _publish_another(self) -> None:
        from mondrian_ops import pipeline

        pipeline.run(pipeline.load_job({**self.job, "k": 7}))

    def _go_through(self) -> None:
        for step in range(len(STEPS)):
            shutil.copytree(self.folder, self._place / f"before-{step}")
            ended = self.run(step)
            assert ended.how == "done", str(ended)
            self._values = ended.value
            self.passed.append(ended.passed)
        self.expected = rows_and_report(self.output)


def contents(folder: Path) -> Mapping[str, str]:
    """A digest of each file; nothing where there is no folder."""
    files = sorted(folder.rglob("*"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def rows_and_report(release: Path) -> tuple[list[tuple[Any, ...]], Any]:
    """A release's rows and its report without the times; both are what ``_SUCCESS`` says."""
    files = json.loads((release / "_SUCCESS").read_text())["files"]
    names = sorted(path.name for path in release.iterdir())
    marks = ["_SUCCESS", "_report.html", "_report.json"]
    assert names == sorted([*marks, *(each["name"] for each in files)])
    rows: list[tuple[Any, ...]] = []
    for each in files:
        part = pq.read_table(release / each["name"])
        assert (release / each["name"]).stat().st_size == each["bytes"]
        rows += [tuple(row.values()) for row in part.to_pylist()]
    report = json.loads((release / "_report.json").read_text())
    return sorted(rows, key=repr), _without_times(report)


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(each) for key, each in value.items() if key not in _TIMES}
    return [_without_times(each) for each in value] if isinstance(value, list) else value
