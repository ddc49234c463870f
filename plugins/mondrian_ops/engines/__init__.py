"""Where the work runs: in this process, or on a Spark cluster.

Both do the same steps on the same working files, so that the same job gives the same classes.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mondrian_ops.algorithms.planning import Draft, LeafCounts
    from mondrian_ops.core.job import Job
    from mondrian_ops.engines.fragment import Fragment, Summary
    from mondrian_ops.engines.run import Run

__all__ = ["Engine", "engine_of"]


class Engine(Protocol):
    """Does the work of the phases; ``told`` is called with numbers of rows just seen.

    ``remote``: whether in other processes, which know a run by its working files only.
    """

    remote: bool

    def draft(self, run: Run, told: Callable[[int], None]) -> Draft:
        """One pass over the source: the survey, and what is decided on a sample of its rows.

        Where columns are recoded as a whole, the run knows the frequencies of their combinations
        then.
        """

    def count(self, run: Run, scatter: bool, told: Callable[[int], None]) -> LeafCounts:
        """One pass over the source: count it against the draft's plan; scatter it if asked."""

    def recode(self, run: Run) -> None:
        """Decide what the values of each column become, where columns are recoded as a whole.

        The recoding is left in the working files.
        """

    def anonymize(self, run: Run, chosen: Sequence[Fragment]) -> Iterator[Summary]:
        """Turn fragments into parts of the release; summaries as they come."""


def engine_of(job: Job, cores: int | None = None) -> Engine:
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
