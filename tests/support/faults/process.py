"""Phases in processes of their own, which may be killed, fail or stop in the middle.

One process imports the package and loads what it needs, once; each phase then runs in a fork of
it, in a tenth of the time that a start from nothing takes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from faults.injection import IN_TIME, Fault, Points, install

_NOBODY = 65534


@dataclass(frozen=True)
class Ended:
    """How a phase ended: ``done``, ``failed``, ``killed``; or that it ``stopped`` and may go on.

    ``final``: failed with an error that a retry does not cure. ``passed``: the points it came by.
    """

    how: str
    pid: int
    value: Any = None
    error: str = ""
    final: bool = False
    passed: tuple[str, ...] = ()


class Within(TypedDict, total=False):
    """What a process is denied.

    ``root``: it is another user. ``exchange``: directories cannot be exchanged in one step.
    """

    root: bool
    exchange: bool


class Processes:
    """Runs phases, each in a process of its own; the other end of :func:`main`."""

    def __init__(self) -> None:
        # Whatever the package leaves in this process, tests must not see.
        self._server = subprocess.Popen(
            [sys.executable, "-m", "faults.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def run(
        self,
        phases: Sequence[str],
        folder: Path,
        fault: Fault | None = None,
        within: Within | None = None,
        **args: Any,
    ) -> Ended:
        """Phases in one process, with a fault at one of its points below ``folder``."""
        struck = None if fault is None else [fault.point, fault.kind]
        return self._ask(
            phases=phases, args=args, folder=str(folder), fault=struck, within=within or {}
        )

    def resume(self, stopped: Ended) -> Ended:
        """Let a phase that stopped go on to its end."""
        return self._ask(resume=stopped.pid)

    def close(self) -> None:
        """End them all."""
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def _ask(self, **question: Any) -> Ended:
        self._server.stdin.write(json.dumps(question) + "\n")
        self._server.stdin.flush()
        answer = json.loads(self._server.stdout.readline())
        return Ended(**{**answer, "passed": tuple(answer.get("passed", ()))})


# In the process that forks


def main() -> None:
    """Answer questions, a JSON value by line, until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _one_thread()
    _warm_up()
    stopped: set[int] = set()
    with tempfile.TemporaryDirectory() as notes:
        os.chmod(notes, 0o733)  # noqa: S103 - a phase may be another user's
        for line in sys.stdin:
            question = json.loads(line)
            pid = question.get("resume") or _forked(question, notes)
            if "resume" in question:
                os.kill(pid, signal.SIGCONT)
            outcome = _outcome(pid, Path(notes, str(pid)))
            stopped = stopped | {pid} if outcome["how"] == "stopped" else stopped - {pid}
            print(json.dumps(outcome), file=answers, flush=True)
    for pid in stopped:  # nobody will wake them
        os.kill(pid, signal.SIGKILL)


def _forked(question: dict[str, Any], notes: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        _work(question, Path(notes, str(os.getpid())))
    finally:
        os._exit(0)
    return 0


def _work(question: dict[str, Any], note: Path) -> None:
    from mondrian_ops.errors import MondrianOpsError

    fault = Fault(*question["fault"]) if question["fault"] else None
    if fault is not None and fault.kind == IN_TIME:  # also inside of SQLite, which has no points
        signal.setitimer(signal.ITIMER_REAL, float(fault.point))
    points = Points(question["folder"], fault)
    points.on_stop = lambda: _write(note, {"passed": points.passed})
    told: dict[str, Any] = {"how": "done"}
    install(points, exchanges=question["within"].get("exchange", True))
    if not question["within"].get("root", True) and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    try:
        told["value"] = _through(question["phases"], **question["args"])
    except BaseException as error:
        told = {
            "how": "failed",
            "error": f"{type(error).__name__}: {error}",
            "final": isinstance(error, MondrianOpsError),
        }
    told["passed"] = points.passed
    _write(note, told)


def _write(note: Path, told: dict[str, Any]) -> None:
    handle = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(handle, json.dumps(told).encode())
    os.close(handle)


def _outcome(pid: int, note: Path) -> dict[str, Any]:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return {"how": "stopped", "pid": pid, **json.loads(note.read_text())}
    if os.WIFSIGNALED(status):
        return {"how": "killed", "pid": pid}
    told = json.loads(note.read_text())
    note.unlink()
    return {**told, "pid": pid}


def _one_thread() -> None:
    """One at a time, so that points come in the same order in every process."""
    import pyarrow as pa

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _warm_up() -> None:
    from mondrian_ops import datasets, pipeline

    with tempfile.TemporaryDirectory() as folder:
        source = f"{folder}/in.parquet"
        datasets.generate("people", rows=300, seed=0, output=source)
        for number, retrieval in enumerate(("scatter", "pushdown")):
            pipeline.run(pipeline.load_job(job_of(source, f"{folder}/out{number}", retrieval)))


def job_of(source: str, output: str, retrieval: str) -> dict[str, Any]:
    """A job with every kind of generalization that people have."""
    return {
        "input": source,
        "output": output,
        "k": 4,
        "l": 2,
        "identifiers": ["name"],
        "quasi_identifiers": ["age", "zip=prefix", "occupation"],
        "sensitive": ["diagnosis"],
        "cut": "median",  # whose classes have the same rows each time
        "replace": "any",  # the release that stands there is of a larger k, to tell the two apart
        "partitioning": {"fragments": 2},
        "retrieval": retrieval,
    }


# The phases, as the operators call them


def _partition(job: dict[str, Any], work: str, **_: Any) -> Any:
    from mondrian_ops import pipeline

    fragments = pipeline.partition(pipeline.load_job(job), work=work)
    return [fragment.to_dict() for fragment in fragments]


def _anonymize(values: list[Any], **_: Any) -> Any:
    from mondrian_ops import pipeline
    from mondrian_ops.engines.handover import Fragment

    fragment = Fragment.from_dict(values[0][len(values) - 1])
    return pipeline.anonymize_fragment(fragment).to_dict()


def _wrap_up(job: dict[str, Any], work: str, values: list[Any]) -> Any:
    from mondrian_ops import pipeline
    from mondrian_ops.engines.handover import Summary

    summaries = [Summary.from_dict(each) for each in values[1:]]
    return pipeline.wrap_up(pipeline.load_job(job), work=work, summaries=summaries)["rows"]


def _clean_up(work: str, **_: Any) -> None:
    from mondrian_ops import pipeline

    pipeline.discard(work)


PHASES: dict[str, Callable[..., Any]] = {
    "partition": _partition,
    "anonymize_fragment": _anonymize,
    "wrap_up": _wrap_up,
    "clean_up": _clean_up,
}


def _through(names: list[str], job: dict[str, Any], work: str, values: list[Any]) -> list[Any]:
    """Phases one after the other, each given what those before it gave."""
    for name in names:
        values = [*values, json.loads(json.dumps(PHASES[name](job=job, work=work, values=values)))]
    return values


if __name__ == "__main__":
    main()
