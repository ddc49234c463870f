"""Runs on a Spark cluster whose workers are disturbed, recovered and looked at."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from faults.mailbox import VARIABLE, Mailbox, Order, Passed
from faults.process import job_of
from faults.run_harness import contents, rows_and_report
from mondrian_ops import datasets, pipeline, publish
from mondrian_ops.engines.spark import SparkEngine
from mondrian_ops.errors import MondrianOpsError
from servers.processes import wait_until

JOBS: Mapping[str, Mapping[str, Any]] = {
    "scatter": {"retrieval": "scatter", "entity_id": "person"},
    "pushdown": {"retrieval": "pushdown"},
    "shuffle": {"retrieval": "auto", "spark": {"shape": "application"}},
    "samarati": {
        "retrieval": "scatter",
        "algorithm": "samarati",
        "cut": "auto",
        "samarati": {"max_suppressed": 0.2},
        "l": None,
        "quasi_identifiers": ["age=ladder:5/10/20", "sex"],
    },
    "tds": {
        "retrieval": "scatter",
        "algorithm": "tds",
        "cut": "auto",
        "tds": {"partitions": 2, "k_intermediate": 10},
        "l": None,
        "quasi_identifiers": ["age", "sex"],
    },
}
"""What runs differ in, by name: between them they come by every step of the executors."""


def watching(mailbox: Mailbox) -> dict[str, str]:
    """Settings of a cluster whose Python workers look at the mailbox."""
    return {
        "spark.python.daemon.module": "faults.spark_daemon",
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
        f"spark.executorEnv.{VARIABLE}": str(mailbox.folder),
    }


@dataclass(frozen=True)
class Disturbed:
    """What became of a run: how often each fault struck, and whether Spark gave it up."""

    struck: tuple[int, ...]
    given_up: bool


class SparkHarness:
    """Runs of one job, each to a folder of its own where the release of another job stands.

    Attributes:
        passed: the points that workers come by in a run that nothing disturbs.
    """

    _numbers = itertools.count()

    def __init__(self, mailbox: Mailbox, engine: SparkEngine, name: str) -> None:
        self._mailbox = mailbox
        self._engine = engine
        self._folder = mailbox.seen / name
        self._folder.mkdir()
        self._source = self._folder / "people.parquet"
        _write_people(self._source)
        self._job = {**job_of(str(self._source), "", "scatter"), **JOBS[name], "engine": "spark"}
        old = self._folder / "old"
        pipeline.run(pipeline.load_job({**self._job_to(old), "k": 7, "engine": "local"}))
        self._old = old
        first = self._begun()
        mailbox.forget()
        self._run(first)
        self.passed: Sequence[Passed] = mailbox.passed()
        self._expected = _told(first)
        _check_nothing_else(first)

    def disturb(self, orders: Sequence[tuple[Passed, str]], once: bool = True) -> Disturbed:
        """One case: a run with faults in its workers, done again where Spark gives it up.

        In the end its release is that of an undisturbed run, and nothing else is left.
        """
        output = self._begun()
        names = [f"{output.parent.name}-{number}" for number in range(len(orders))]
        for name, (passed, kind) in zip(names, orders, strict=True):
            self._mailbox.order(name, Order(*passed, kind, str(self._mailbox.seen), once))
        try:
            self._run(output)
            given_up = False
        except Exception as error:
            given_up = True
            assert not isinstance(error, MondrianOpsError), f"a retry would cure it: {error!r}"
            assert contents(output) == contents(self._old)
            _check_nothing_else(output)
        finally:
            for name in names:
                self._mailbox.revoke(name)
        if given_up:
            self._run(output)
        assert _told(output) == self._expected
        self._resume(names)
        assert _told(output) == self._expected
        _check_nothing_else(output)
        struck = tuple(len(self._mailbox.struck(name)) for name in names)
        shutil.rmtree(output.parent)
        return Disturbed(struck, given_up)

    def outlive(self, passed: Passed, remote: str, quiet: Callable[[], None]) -> None:
        """Workers stop, their driver is killed, and they go on in the files of a second attempt.

        That one is the local engine's: the workers that stopped hold the cores of the cluster.
        """
        output = self._begun()
        name = output.parent.name
        work = publish.work_path(str(output), "run")
        job = self._job_to(output)
        self._mailbox.order(name, Order(*passed, "stopped", str(self._mailbox.seen), once=False))
        driver = _driver(job, work, remote)
        wait_until(lambda: len(self._mailbox.struck(name)) == 2 or driver.poll() is not None)
        driver.kill()
        driver.wait()
        self._mailbox.revoke(name)
        stopped = self._mailbox.struck(name)
        assert len(stopped) == 2
        local = pipeline.load_job({**job, "engine": "local"})
        fragments = pipeline.partition(local, work=work)
        before = _names(Path(work))
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        quiet()
        assert _names(Path(work)) == before
        summaries = [pipeline.anonymize_fragment(each) for each in fragments]
        pipeline.wrap_up(local, work=work, summaries=summaries)
        pipeline.discard(work)
        assert rows_and_report(output)[0] == self._expected[0]
        _check_nothing_else(output)

    def _resume(self, names: Sequence[str]) -> None:
        """Let go on who was stopped, and wait until it is through with its task, or killed."""
        for pid in (pid for name in names for pid in self._mailbox.struck(name)):
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if psutil.Process(pid).status() == psutil.STATUS_STOPPED:
                    os.kill(pid, signal.SIGCONT)
                    wait_until(lambda pid=pid: not psutil.pid_exists(pid))

    def _begun(self) -> Path:
        output = self._folder / f"run-{next(self._numbers)}" / "out"
        shutil.copytree(self._old, output)
        return output

    def _job_to(self, output: Path) -> dict[str, Any]:
        return {**self._job, "output": str(output)}

    def _run(self, output: Path) -> None:
        pipeline.run(pipeline.load_job(self._job_to(output)), engine=self._engine)


_DRIVER = """
import json, os, sys
from mondrian_ops import pipeline
from mondrian_ops.engines.spark import SparkEngine, session_of

engine = SparkEngine(session_of(sys.argv[3]), split_rows=150)
pipeline.partition(pipeline.load_job(json.loads(sys.argv[1])), work=sys.argv[2], engine=engine)
"""


def _driver(job: dict[str, Any], work: str, remote: str) -> subprocess.Popen[bytes]:
    """A process that partitions on the cluster."""
    return subprocess.Popen([sys.executable, "-c", _DRIVER, json.dumps(job), work, remote])


def _names(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


def _write_people(path: Path) -> None:
    datasets.generate("people", rows=300, seed=0, output=str(path))
    people = pq.read_table(path)
    people = people.append_column("person", [[at // 2 for at in range(300)]])
    pq.write_table(people, path, row_group_size=150)


def _told(output: Path) -> Any:
    rows, report = rows_and_report(output)
    report["job"].pop("output")
    return rows, report


def _check_nothing_else(output: Path) -> None:
    assert [each.name for each in output.parent.iterdir()] == [output.name]
    assert not list(output.glob(".*"))
