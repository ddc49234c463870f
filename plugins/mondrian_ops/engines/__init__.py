"""Where a run works: in this process, or on a Spark cluster.

All engines do the same steps on the same working files, so that the same job gives the same
classes.
"""

from __future__ import annotations

import atexit
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from mondrian_ops.cut.planning import LeafCounts
    from mondrian_ops.engines.handover import Fragment, Summary
    from mondrian_ops.engines.release_check import ReleaseCheck
    from mondrian_ops.engines.run import Run
    from mondrian_ops.job.job import Job

__all__ = ["Engine", "RowsSeen", "StepwiseEngine", "engine_of"]

RowsSeen = Callable[[int], None]
"""Called with the number of rows just read."""


class Engine(ABC):
    """Does the work of a run's phases.

    :func:`engine_of` chooses it; in Airflow the job's connection does.

    ``remote``: whether other processes do the work, which know a run only by its working files.
    They also check its release; else the process that wraps it up does.
    """

    remote: ClassVar[bool] = False

    @abstractmethod
    def partition(
        self, work: str, begin: Callable[[], Run], divide: Callable[[Run, StepwiseEngine], None]
    ) -> Run:
        """Begin a run with the working files ``work`` and divide it into fragments.

        ``begin`` makes the working files, ``divide`` does the steps of the phase. A final error
        removes the working files.
        """

    @abstractmethod
    def anonymize(self, run: Run, fragments: Sequence[Fragment]) -> Iterator[Summary]:
        """Turn fragments, one or all, into parts of the release; yields each summary when done."""

    def check(self, run: Run, check: ReleaseCheck) -> list[Any]:
        """The answers of a ``remote`` engine's processes, for :meth:`ReleaseCheck.concluded`.

        Raises TypeError where the engine is not ``remote``: `wrap_up` checks in its own process.
        """
        raise TypeError(f"{type(self).__name__} is not remote, and checks no release")

    def stop(self) -> None:  # noqa: B027 - not every engine works outside this process
        """Stop work outside this process."""


class StepwiseEngine(Engine):
    """An engine that does the steps of a phase one by one."""

    def partition(
        self, work: str, begin: Callable[[], Run], divide: Callable[[Run, StepwiseEngine], None]
    ) -> Run:
        """Divide the run here; any error removes the working files."""
        from mondrian_ops.publish import WorkDir

        try:
            run = begin()
            divide(run, self)
        except BaseException:
            WorkDir(work).give_up()
            raise
        return run

    @abstractmethod
    def draft(self, run: Run, rows_seen: RowsSeen) -> None:
        """Profile the source in one pass, decide on a sample of its rows, and save the draft.

        Where recoding is global, the run has the frequencies of their combinations
        afterwards. Unless the engine is ``remote``, the caller checks for a change of the source
        after the last pass.
        """

    @abstractmethod
    def count(self, run: Run, scatter: bool, rows_seen: RowsSeen) -> LeafCounts:
        """Count the source by leaf of the draft's plan in one pass; with ``scatter``, write the
        rows of each leaf to the working files too."""

    @abstractmethod
    def recode(self, run: Run) -> None:
        """Choose and save the recoding, where recoding is global."""


def engine_of(job: Job, cores: int | None = None) -> StepwiseEngine:
    """The engine that a job names, as this process's environment describes it.

    ``cores``: for the local engine; by default all that this process may use.
    """
    if job.engine == "spark":
        from mondrian_ops.engines.spark import SparkEngine, session_of

        session = session_of(conf=job.spark.conf)
        engine = SparkEngine(session, job.spark.conf)
        atexit.register(session.stop)
        return engine
    from mondrian_ops.engines.local import LocalEngine

    return LocalEngine(cores)
