"""Runs of a DAG whose tasks are disturbed in Celery's processes, several at once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from dag_runs import nested, tries
from faults.mailbox import VARIABLE, Mailbox, Order, Passed
from faults.run_harness import contents, rows_and_report
from faults.suspended import Suspended
from mondrian_ops import pipeline
from projects import Project
from servers.processes import wait_until

TASKS: Mapping[str, tuple[str, ...]] = {
    "disturbed": ("partition", "anonymize_fragment", "wrap_up", "clean_up"),
    "mapped_first_phase": ("specialize_part", "recode"),
}
"""By DAG, which of its tasks are disturbed: in the second those that the first does not have."""

_JOBS: Mapping[str, Mapping[str, Any]] = {
    "disturbed": {},
    "mapped_first_phase": {"algorithm": "tds", "cut": "auto", "tds": {"partitions": 2}},
}

_PATIENCE_S = 600


def watching(root: Path) -> dict[str, str]:
    """Settings of an Airflow whose processes look at the mailbox of a project in ``root``.

    It finds the package where that is installed, not in the checkout.
    """
    site = Path(__file__).with_name("site")
    return {VARIABLE: str(root / "out" / "mailbox"), "PYTHONPATH": str(site)}


class AirflowHarness:
    """Runs of one job, each in a folder of its own where the release of another job stands.

    Attributes:
        dag: the DAG; ``tasks``: those of its tasks that are disturbed.
        expected: the release of a run in this process; ``undisturbed``: that of one in Airflow.
        passed: the points that tasks come by in a run that nothing disturbs.
    """

    def __init__(self, project: Project, dag: str) -> None:
        self._project = project
        self.dag = dag
        self.tasks = TASKS[dag]
        self._mailbox = Mailbox(project.root / "out" / "mailbox")
        self._mailbox.make()
        self._old = self._mailbox.seen / dag / "old"
        old = project.job("old", output=str(self._old), k=7)
        pipeline.run(pipeline.load_job(old))
        pipeline.run(pipeline.load_job(self._laid_out("in-process")["job"]))
        self.expected = self._told("in-process")
        self._mailbox.forget()
        (self.undisturbed,) = self.through([self.begin("undisturbed", [])])
        self.passed: Sequence[Passed] = self._mailbox.passed()

    def begin(self, name: str, faults: Sequence[tuple[Passed, str]]) -> tuple[str, str]:
        """Start a run with faults in its tasks; its name and its id."""
        conf = self._laid_out(name)
        for number, fault in enumerate(faults):
            self._order(name, number, *fault)
        return name, self._project.airflow.trigger(self.dag, conf)

    def through(self, begun: Sequence[tuple[str, str]]) -> list[Any]:
        """Wait for runs, all of which have to succeed; their releases, of which all is there."""
        airflow = self._project.airflow
        ended = {name: airflow.finish(self.dag, run_id) for name, run_id in begun}
        assert set(ended.values()) == {"success"}, ended
        return [self._told(name) for name, _ in begun]

    def check_made_good(self, cases: dict[str, Sequence[tuple[Passed, str]]]) -> None:
        """Runs with faults, at once: all struck once, and in the end nothing is to be seen."""
        begun = [self.begin(name, faults) for name, faults in cases.items()]
        wrong = [
            f"{name}: {cases[name]}"
            for (name, _), found in zip(begun, self.through(begun), strict=True)
            if found != self.expected
        ]
        assert not wrong, "another release:\n" + "\n".join(wrong)
        missed = [
            f"{name}: {fault}"
            for name, faults in cases.items()
            for number, fault in enumerate(faults)
            if len(self._struck(name, number)) != 1
        ]
        assert not missed, "not reached:\n" + "\n".join(missed)

    def check_overtaken(self, cases: Mapping[str, tuple[Passed, Passed | None]]) -> None:
        """Runs a task of which is suspended at a point, so that Airflow gives it up and retries it.

        It goes on when a later process of its run comes to another point, and stops there
        meanwhile; without one, when the run is over. In the end nothing is to be seen of it.
        """
        begun = {name: self.begin(name, [(at, "stopped")]) for name, (at, _) in cases.items()}
        late = {}
        for name, (at, until) in cases.items():
            late[name] = self._suspended(begun[name], at.step)
            if until is not None:
                self._order(name, 1, until, "stopped")
        for name, (at, until) in cases.items():
            if until is None:
                assert self.through([begun[name]]) == [self.expected], name
                late[name].go_on()
            else:
                held = psutil.Process(self._first_struck(name, 1))
                late[name].go_on()
                held.resume()
            assert self.through([begun[name]]) == [self.expected], name
            assert tries(self._tasks(begun[name]))[at.step] == 2, name

    def check_held_up(self, name: str, at: Passed) -> None:
        """A run a task of which is suspended where no later attempt comes past it.

        It fails, and the old release stands; also when the first attempt goes on after that.
        """
        begun = self.begin(name, [(at, "stopped")])
        late = self._suspended(begun, at.step)
        assert self._project.airflow.finish(self.dag, begun[1]) == "failed"
        self._check_old(name)
        late.go_on()
        self._check_old(name)

    def _suspended(self, begun: tuple[str, str], task: str) -> Suspended:
        """The instance of a task that stopped, once the others are done."""
        pid = self._first_struck(begun[0], 0)

        def others_are_done() -> bool:
            states = [each["state"] for each in self._tasks(begun) if each["task_id"] == task]
            return states.count("success") == len(states) - 1

        wait_until(others_are_done, _PATIENCE_S)
        return Suspended(pid)

    def _tasks(self, begun: tuple[str, str]) -> list[dict[str, Any]]:
        return self._project.airflow.tasks(self.dag, begun[1])

    def _laid_out(self, name: str) -> dict[str, Any]:
        """A folder with a source and the old release; what a run there is given."""
        folder = self._folder(name)
        source, output = folder / "people.csv", folder / "out"
        shutil.copytree(self._old, output)
        shutil.copy(self._project.job(name)["input"], source)
        fixed = {"input": str(source), "output": str(output), "retrieval": "scatter"}
        fixed["replace"] = "any"  # the old release is of a larger k, and of no DAG
        return nested(self._project.job(name, **fixed, **_JOBS[self.dag]), fragments=2)

    def _folder(self, name: str) -> Path:
        return self._mailbox.seen / self.dag / f"run-{name}"

    def _order(self, name: str, number: int, passed: Passed, kind: str) -> None:
        order = Order(*passed, kind, str(self._folder(name)))
        self._mailbox.order(self._order_name(name, number), order)

    def _struck(self, name: str, number: int) -> list[int]:
        return self._mailbox.struck(self._order_name(name, number))

    def _first_struck(self, name: str, number: int) -> int:
        """The process that a fault strikes, once it has."""
        wait_until(lambda: bool(self._struck(name, number)), _PATIENCE_S)
        return self._struck(name, number)[0]

    def _order_name(self, name: str, number: int) -> str:
        return f"{self.dag}-{name}-{number}"

    def _check_old(self, name: str) -> None:
        beside = {each.name for each in self._folder(name).iterdir()}
        assert len(beside - {"out", "people.csv"}) == 1  # working files, for a repair
        assert contents(self._folder(name) / "out") == contents(self._old)

    def _check_nothing_beside(self, name: str) -> None:
        names = sorted(each.name for each in self._folder(name).iterdir())
        assert names == ["out", "people.csv"]

    def _told(self, name: str) -> Any:
        folder = self._folder(name)
        self._check_nothing_beside(name)
        assert not [each for each in contents(folder / "out") if each.startswith(".")]
        rows, report = rows_and_report(folder / "out")
        for key in (
            "made_by",
            "requested_by",
            "run_type",
        ):  # nobody where it is made in this process
            del report[key]
        return rows, json.loads(json.dumps(report).replace(str(folder), ""))
