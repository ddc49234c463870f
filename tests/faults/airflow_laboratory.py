"""Runs of a DAG whose tasks are disturbed in Celery's processes, several at once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from faults.desk import VARIABLE, Desk, Order, Passed
from faults.laboratory import contents, told
from mondrian_ops import pipeline
from observing import nested
from projects import Project

__all__ = ["TASKS", "AirflowLaboratory", "watching"]

TASKS = ("partition", "anonymize_fragment", "wrap_up", "clean_up")
_DAG = "disturbed"


def watching(root: Path) -> dict[str, str]:
    """Settings of an Airflow whose processes look at the desk of a project in ``root``."""
    site = Path(__file__).with_name("site")
    return {
        VARIABLE: str(root / "out" / "desk"),
        "PYTHONPATH": os.pathsep.join([str(site), os.environ["PYTHONPATH"]]),
    }


class AirflowLaboratory:
    """Runs of one job, each in a folder of its own where the release of another job stands.

    Attributes:
        passed: the points that tasks come by in a run that nothing disturbs.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._desk = Desk(project.root / "out" / "desk")
        self._desk.make()
        self._old = self._desk.seen / "old"
        old = project.job("old", output=str(self._old), k=7)
        pipeline.run(pipeline.load_job(old))
        self._desk.forget()
        (self._expected,) = self.through([self.begin("undisturbed", [])])
        self.passed: Sequence[Passed] = self._desk.passed()

    def begin(self, name: str, faults: Sequence[tuple[Passed, str]]) -> tuple[str, str]:
        """Start a run with faults in its tasks; its name and its id."""
        folder = self._folder(name)
        job = self._job(name)
        shutil.copytree(self._old, folder / "out")
        shutil.copy(self._project.job(name)["input"], job["input"])
        for number, (passed, kind) in enumerate(faults):
            self._desk.order(f"{name}-{number}", Order(*passed, kind, str(folder)))
        return name, self._project.airflow.trigger(_DAG, nested(job))

    def through(self, begun: Sequence[tuple[str, str]]) -> list[Any]:
        """Wait for runs, all of which have to succeed; their releases, of which all is there."""
        airflow = self._project.airflow
        ended = {name: airflow.finish(_DAG, run_id) for name, run_id in begun}
        assert set(ended.values()) == {"success"}, ended
        return [self._told(name) for name, _ in begun]

    def check_made_good(self, cases: dict[str, Sequence[tuple[Passed, str]]]) -> None:
        """Runs with faults, at once: all struck once, and in the end nothing is to be seen."""
        begun = [self.begin(name, faults) for name, faults in cases.items()]
        wrong = [
            f"{name}: {cases[name]}"
            for (name, _), found in zip(begun, self.through(begun), strict=True)
            if found != self._expected
        ]
        assert not wrong, "another release:\n" + "\n".join(wrong)
        missed = [
            f"{name}: {fault}"
            for name, faults in cases.items()
            for number, fault in enumerate(faults)
            if len(self._desk.struck(f"{name}-{number}")) != 1
        ]
        assert not missed, "not reached:\n" + "\n".join(missed)

    def _job(self, name: str) -> dict[str, Any]:
        folder = self._folder(name)
        source = folder / "people.csv"
        return self._project.job(
            name, input=str(source), output=str(folder / "out"), retrieval="scatter"
        )

    def _folder(self, name: str) -> Path:
        return self._desk.seen / f"run-{name}"

    def _told(self, name: str) -> Any:
        folder = self._folder(name)
        assert sorted(each.name for each in folder.iterdir()) == ["out", "people.csv"]
        assert not [each for each in contents(folder / "out") if each.startswith(".")]
        rows, report = told(folder / "out")
        return rows, json.loads(json.dumps(report).replace(str(folder), ""))
