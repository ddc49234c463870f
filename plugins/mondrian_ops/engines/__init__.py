"""Where the work of a run is done: in this process, or on a Spark cluster.

All engines do the same steps on the same working files, so that the same job gives the same
classes.
"""

from __future__ import annotations

import atexit
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from mondrian_ops.algorithms.planning import Draft, LeafCounts
    from mondrian_ops.core.job import Job
    from mondrian_ops.engines.handover import Fragment, Summary
    from mondrian_ops.engines.run import Run

__all__ = ["Engine", "RowsSeen", "StepwiseEngine", "engine_of"]

RowsSeen = Callable[[int], None]
"""Called with the number of rows just seen."""


class Engine(ABC):
    """Does the work of a run's phases. It is chosen once: by :func:`engine_of`, or in Airflow by
    the connection that the job names."""

    @abstractmethod
    def partition(
        self, work: str, begin: Callable[[], Run], divide: Callable[[Run, StepwiseEngine], None]
    ) -> Run:
        """Begin a run with the working files ``work`` and divide it into fragments.

        ``begin`` makes the working files, ``divide`` does the steps of the phase. What fails for
        good leaves no working files.
        """

    @abstractmethod
    def anonymize(self, run: Run, fragments: Sequence[Fragment]) -> Iterator[Summary]:
        """Turn fragments, one or all, into parts of the release; summaries as they come."""

    def stop(self) -> None:  # noqa: B027 - not every engine works outside this process
        """Stop what is being done outside this process."""


class StepwiseEngine(Engine):
    """An engine that does the steps of a phase one by one.

    ``remote``: whether in other processes, which know a run by its working files only.
    """

    remote: ClassVar[bool] = False

    def partition(
        self, work: str, begin: Callable[[], Run], divide: Callable[[Run, StepwiseEngine], None]
    ) -> Run:
        """Do it step by step; whatever fails leaves nothing."""
        from mondrian_ops.storage import WorkDir

        try:
            run = begin()
            divide(run, self)
        except BaseException:
            WorkDir(work).give_up()
            raise
        return run

    @abstractmethod
    def draft(self, run: Run, rows_seen: RowsSeen) -> Draft:
        """One pass over the source: its profile, and what is decided on a sample of its rows.

        Where columns are recoded as a whole, the run knows the frequencies of their combinations
        then.
        """

    @abstractmethod
    def count(self, run: Run, scatter: bool, rows_seen: RowsSeen) -> LeafCounts:
        """One pass over the source: count it against the draft's plan; scatter it if asked."""

    @abstractmethod
    def recode(self, run: Run) -> None:
        """Decide what the values of each column become, where columns are recoded as a whole.

        The recoding is left in the working files.
        """


def engine_of(job: Job, cores: int | None = None) -> StepwiseEngine:
    """The engine that a job names, as this process's environment describes it.

    ``cores`` are those of the local one; by default all that this process may use.
    """
    if job.engine == "spark":
        from mondrian_ops.engines.spark import SparkEngine, session_of

        session = session_of(conf=job.spark.conf)
        engine = SparkEngine(session, job.spark.conf)
        atexit.register(session.stop)
        return engine
    from mondrian_ops.engines.local import LocalEngine

    return LocalEngine(cores)
