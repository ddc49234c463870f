"""The Spark engine: executors read, count and cut; this process only describes the work.

A dataset is read in splits, each by one Spark task through the package's own readers, so that
both engines see the same types and values. Fragments are anonymized by one Spark task each: mapped
Airflow tasks bring theirs one by one, or one application does them all (the source's own shape,
seed, section 6), its rows routed to them by Spark's shuffle. Nothing but counts, the domains of
the columns and summaries ever comes back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mondrian_ops import storage
from mondrian_ops.algorithms.planning import Draft, LeafCounts
from mondrian_ops.core.errors import JobError
from mondrian_ops.engines import executor, shipping
from mondrian_ops.engines.executor import Message, Step
from mondrian_ops.engines.fragment import Fragment, Summary
from mondrian_ops.engines.run import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkEngine", "session_of"]

Told = Callable[[int], None]


def session_of(remote: str | None = None) -> SparkSession:
    """A session on the Spark Connect server at ``remote`` (``sc://host:port``).

    Without it, the session that Spark's own environment describes: ``SPARK_REMOTE``, spark-submit's
    settings, or else a Spark of this machine's own.

    Raises JobError where PySpark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise JobError(
            "engine: spark needs PySpark, which is not installed here; install mondrian_ops[spark]"
        ) from None
    if remote is not None:
        return SparkSession.builder.remote(remote).create()
    return SparkSession.builder.appName("mondrian_ops").getOrCreate()


class SparkEngine:
    """Does the work on a Spark cluster. See :class:`mondrian_ops.engines.Engine`.

    ``split_rows``: rows that one Spark task reads, about.
    """

    remote = True

    def __init__(self, session: SparkSession, split_rows: int = 1 << 20) -> None:
        self._session = session
        self._split_rows = split_rows
        # A message can be large, and a batch of them must stay below 2 GiB.
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
        session.addArtifacts(shipping.packed(), pyfile=True)

    def draft(self, run: Run, told: Told) -> Draft:
        """One pass over the source, and the decision, in Spark tasks."""
        surveyed = self._step(run, executor.survey, self._splits(run))
        (made,) = self._answers(self._step(run, executor.draft, surveyed.repartition(1)))
        told(run.dataset.source.rows)
        return executor.draft_of(made)

    def count(self, run: Run, scatter: bool, told: Told) -> LeafCounts:
        """One pass over the source: count it against the plan and, if asked, scatter it too."""
        counts = LeafCounts.zeros(run.draft.plan.leaves, run.anonymizer)
        work = executor.scatter if scatter else executor.count
        for message in self._answers(self._step(run, work, self._splits(run))):
            executor.add_counts(counts, message.table)
        told(int(counts.rows.sum()))
        return counts

    def anonymize(self, run: Run, chosen: Sequence[Fragment]) -> Iterator[Summary]:
        """The fragments, each in a Spark task of its own."""
        if run.state["retrieval"]["used"] == "shuffle":
            routed = self._step(run, executor.route, self._splits(run))
            by_fragment = routed.repartitionById(len(run.state["fragments"]), "number")
            answers = self._step(run, executor.release, by_fragment)
        else:
            answers = self._step(run, executor.anonymize, self._scheduled(list(chosen)))
        return (message.value for message in self._answers(answers))

    def _splits(self, run: Run) -> DataFrame:
        splits = run.dataset.source.splits(self._split_rows)
        return self._scheduled([split.to_json() for split in splits])

    def _scheduled(self, values: Sequence[Any]) -> DataFrame:
        """A message per value, each in a Spark partition, and so a task, of its own."""
        messages = [executor.of_value(n, "work", value) for n, value in enumerate(values)]
        table = pa.Table.from_batches([executor.batch_of(messages)])
        frame = self._session.createDataFrame(table, executor.MESSAGES)
        return frame.repartitionById(len(values), "number")

    def _step(self, run: Run, work: executor.Work, messages: DataFrame) -> DataFrame:
        return messages.mapInArrow(Step(work, self._described(run)), executor.MESSAGES)

    def _answers(self, answers: DataFrame) -> Iterator[Message]:
        for row in answers.toArrow().to_pylist():
            message = Message(**row)
            executor.raise_error(message)
            yield message

    def _described(self, run: Run) -> str:
        """What an executor must know to find the run."""
        source = run.dataset.source
        options = storage.options_of([source.url, run.work.root])
        told = {"work": run.work.root, "attempt": run.work.token, "storage": options}
        return json.dumps(told, sort_keys=True)
