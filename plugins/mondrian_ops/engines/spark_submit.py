"""The spark-submit engine: each phase is an application, on any cluster that runs its driver.

The driver sees neither Airflow nor the machine that submitted it. Its request has the location of
the working files; they contain all else, and in the end its result (:mod:`mondrian_ops.spark_app`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, field
from typing import Any, Protocol

from mondrian_ops import catalogue, errors, publish
from mondrian_ops.engines import Engine, StepwiseEngine
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.release_check import ReleaseCheck
from mondrian_ops.engines.run import Run, RunLocation
from mondrian_ops.errors import MondrianOpsError, StorageError
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class Request:
    """The work of an application: the ``step`` ``partition``, ``anonymize``, or that of a check.

    ``fragment`` is the number of the fragment to anonymize; None: all of them. ``people_key``, in
    hexadecimal, is what people are hashed with, where they are compared with other releases'.
    """

    step: str
    location: RunLocation
    fragment: int | None = None
    people_key: str = field(default="", repr=False)

    @classmethod
    def of(cls, run: Run, step: str, fragment: int | None = None) -> Request:
        """The request for a step of a run."""
        hashes = step == "partition" and run.dataset.job.compares_people
        key = catalogue.current().key.hex() if hashes else ""
        return cls(step, RunLocation.of(run), fragment, key)

    def to_json(self) -> str:
        """The request as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Request:
        """The request that :meth:`to_json` described."""
        value = json.loads(text)
        return cls(**{**value, "location": RunLocation(**value["location"])})


@dataclass(frozen=True)
class Result:
    """The result of an application, in the working files: a small value, or a final error."""

    value: Any = None
    error: str = ""
    text: str = ""

    @classmethod
    def left(cls, work: publish.WorkDir, step: str, fragment: int | None) -> Result | None:
        """The result of a step in this attempt at the run, if there is one."""
        try:
            return cls(**work.read_json(_result_name(work, step, fragment)))
        except StorageError:
            return None

    def leave(self, work: publish.WorkDir, step: str, fragment: int | None) -> None:
        """Write it for :meth:`left`."""
        work.write_json(_result_name(work, step, fragment), asdict(self))

    def get(self) -> Any:
        """The value; raises the error if there is one."""
        if self.error:
            kind: type[MondrianOpsError] = getattr(errors, self.error)
            raise kind(self.text)
        return self.value


def _result_name(work: publish.WorkDir, step: str, fragment: int | None) -> str:
    """The name of the working file, which no other attempt uses."""
    return f"result-{step}-{'all' if fragment is None else fragment}-{work.token}.json"


class Submission(Protocol):
    """How applications reach a cluster: made from a connection."""

    def run(self, step: str, request: Callable[[], Request], is_done: Callable[[], bool]) -> None:
        """Wait for the application that an earlier try submitted; without one, submit it.

        ``request`` is called before an application is submitted; ``is_done`` returns whether there
        is a result.
        """

    def kill(self) -> None:
        """Kill the driver."""


class SparkSubmitEngine(Engine):
    """An application does the work; a retry waits for the one that is submitted already."""

    remote = True

    def __init__(self, submission: Submission) -> None:
        self._submission = submission

    def partition(
        self, work: str, begin: Callable[[], Run], divide: Callable[[Run, StepwiseEngine], None]
    ) -> Run:
        """Begin the run here; the driver divides it.

        Only a final error removes the working files, since a driver may still use them. A driver
        that left a result does not, whichever try submitted it.
        """
        directory = publish.WorkDir(work)
        try:
            self._result(directory, "partition", lambda: Request.of(begin(), "partition"))
        except MondrianOpsError:
            if Result.left(directory, "partition", None) is not None:
                directory.remove()
            directory.give_up()
            raise
        return Run(publish.WorkDir.attach(work))

    def anonymize(self, run: Run, fragments: Sequence[Fragment]) -> Iterator[Summary]:
        """All fragments, or one, by one application."""
        number = fragments[0].id if len(fragments) == 1 else None
        request = Request.of(run, "anonymize", number)  # raises if the working files are gone
        summaries = self._result(run.work, "anonymize", lambda: request, number)
        return map(Summary.from_dict, summaries)

    def check(self, run: Run, check: ReleaseCheck) -> list[Any]:
        """The driver checks; the name of the step stands for the parts, and so does its result."""
        step = check.save(run.work)
        answers: list[Any] = self._result(run.work, step, lambda: Request.of(run, step))
        return answers

    def stop(self) -> None:
        """Kill the driver."""
        self._submission.kill()

    def _result(
        self,
        work: publish.WorkDir,
        step: str,
        request: Callable[[], Request],
        fragment: int | None = None,
    ) -> Any:
        def is_done() -> bool:
            return Result.left(work, step, fragment) is not None

        self._submission.run(step, request, is_done)
        result = Result.left(work, step, fragment)
        if result is None:
            raise ConnectionError(
                f"{work.root}: the Spark application left no result here; let its driver write "
                "here, and see the application's log"
            )
        return result.get()
