"""The Spark engine: executors read, count and cut; this process only describes the work.

Each Spark task reads a split of the dataset through the package's own readers, so that all engines
see the same types and values. One Spark task anonymizes one fragment. Either each mapped Airflow
task brings its fragment, or one application anonymizes all, with rows routed by Spark's shuffle
(De Capitani di Vimercati et al. 2023, section 6). Only counts and summaries return to this process,
and, through the working files, the draft with the domains of the columns.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mondrian_ops.cut.planning import LeafCounts
from mondrian_ops.cut.recoding_search import first_phase_parts
from mondrian_ops.engines import RowsSeen, StepwiseEngine, executor, shipping
from mondrian_ops.engines.executor import Message, Step
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.release_check import ReleaseCheck
from mondrian_ops.engines.run import Run, RunLocation
from mondrian_ops.engines.scan import Counting
from mondrian_ops.errors import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAME = "mondrian_ops"
# Calls to a Spark Connect server that does not answer are retried after growing pauses, for about a
# minute in all.
_TRIES = 6
_STOP_S = 10
_GONE = re.compile(
    r"StatusCode\.UNAVAILABLE|\[(RETRIES_EXCEEDED|NO_ACTIVE_SESSION|INVALID_HANDLE\.SESSION)"
)


def session_of(remote: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session on the Spark Connect server at ``remote`` (``sc://host:port``).

    Without it, the session that this process's environment describes: ``SPARK_REMOTE`` or
    spark-submit's settings; else a local Spark that is started here with the properties ``conf``.

    Raises JobError where PySpark is not installed, or Spark cannot be started.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise JobError(
            "engine: spark needs PySpark, which is not installed here; install the extra 'spark' "
            "of this project's wheel"
        ) from None
    if remote is not None:
        return _connected(SparkSession.builder.remote(remote).create())
    if "SPARK_REMOTE" in os.environ:
        return _connected(SparkSession.builder.getOrCreate())
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # which spark-submit sets
    if not submitted and SparkSession.getActiveSession() is None:
        _start_spark(conf or {})
    return SparkSession.builder.appName(_NAME).getOrCreate()


def _connected(session: SparkSession) -> SparkSession:
    """The session, whose calls give up after a minute without an answer."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=_TRIES)])
    return session


def _start_spark(conf: Mapping[str, str]) -> None:
    """Start a local Spark; the output of its JVM goes to a temporary file."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    # Its Python workers need what this process has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = SparkConf().setAppName(_NAME).set("spark.ui.enabled", "false")
    settings.setAll(list(conf.items()))
    with tempfile.TemporaryFile() as log:
        output = {"stdout": log, "stderr": log}
        try:
            gateway = launch_gateway(settings, output)  # type: ignore[no-untyped-call]
        except PySparkException:
            log.seek(0)
            last = log.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise JobError(
                f"engine: spark could not start Spark here ({last or 'it gave no reason'}); "
                "install Java 17 or later and set JAVA_HOME, or set SPARK_REMOTE to the address of "
                "a Spark Connect server"
            ) from None
    SparkContext(gateway=gateway, conf=settings)


def _configure(session: SparkSession, conf: Mapping[str, str]) -> None:
    from pyspark.errors import AnalysisException

    for name, value in conf.items():
        if session.conf.get(name, None) == value:  # set when Spark was started
            continue
        try:
            session.conf.set(name, value)
        except AnalysisException as error:
            reason = str(error).strip().partition("\n")[0]
            raise JobError(
                f"spark.conf.{name}: cannot be set for one session ({reason}); set it where Spark "
                "is started"
            ) from None


def _ship(session: SparkSession) -> None:
    """Send the package to the executors."""
    archive = shipping.packed()
    before = set(sys.path)
    session.addArtifacts(archive, pyfile=True)
    # PySpark adds the archive to this process's path too; its children would then unpack it.
    name = os.path.basename(archive)
    sys.path[:] = [path for path in sys.path if path in before or os.path.basename(path) != name]


class SparkEngine(StepwiseEngine):
    """Does the work on a Spark cluster, through a session.

    ``conf``: properties of the session. ``split_rows``: rows that one Spark task reads, about.

    Raises JobError on a property that cannot be set for one session, ConnectionError where a Spark
    Connect server does not answer.
    """

    remote = True

    def __init__(
        self,
        session: SparkSession,
        conf: Mapping[str, str] | None = None,
        split_rows: int = 1 << 20,
    ) -> None:
        self._session = session
        self._split_rows = split_rows
        with self._answering():
            _configure(session, conf or {})
            # One piece per batch: thousands of pieces, the default, would fill the memory.
            session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
            _ship(session)

    def draft(self, run: Run, rows_seen: RowsSeen) -> None:
        """Profile the splits in Spark tasks; decide in one more."""
        profiles = self._step(run, executor.profile, self._splits(run))
        (_sample_rows,) = self._answers(self._step(run, executor.draft, profiles.repartition(1)))
        rows_seen(run.dataset.source.rows)

    def count(self, run: Run, scatter: bool, rows_seen: RowsSeen) -> LeafCounts:
        """Count, or scatter, the splits in Spark tasks; add up in one more."""
        counts = Counting(run.anonymizer, run.draft.plan).zeros()
        work = executor.scatter if scatter else executor.count
        counted = self._step(run, work, self._splits(run))
        for message in self._answers(self._step(run, executor.total, counted.repartition(1))):
            executor.add_message(counts, message)
        rows_seen(int(counts.rows.sum()))
        return counts

    def recode(self, run: Run) -> None:
        """Choose in a Spark task, after one for each part of a first phase."""
        of_job = first_phase_parts(run.dataset.job)
        messages = self._scheduled(of_job or range(1))
        if of_job:
            messages = self._step(run, executor.specialize, messages).repartition(1)
        (_parts,) = self._answers(self._step(run, executor.recode, messages))

    def anonymize(self, run: Run, fragments: Sequence[Fragment]) -> Iterator[Summary]:
        """Anonymize each fragment in a Spark task of its own."""
        if run.state.retrieval == "shuffle":
            routed = self._step(run, executor.route, self._splits(run))
            by_fragment = routed.repartitionById(len(run.state.fragments), "number")
            answers = self._step(run, executor.release, by_fragment)
        else:
            answers = self._step(
                run,
                executor.anonymize,
                self._scheduled([fragment.to_dict() for fragment in fragments]),
            )
        return (Summary.from_dict(message.value) for message in self._answers(answers))

    def check(self, run: Run, check: ReleaseCheck) -> list[Any]:
        """Count each part in a Spark task, and join each bucket of classes in another."""
        name = check.save(run.work)
        parts = self._scheduled(range(len(check.parts)))
        answers: list[Message] = []
        if check.job.compares_with_whole:
            values = self._step(run, partial(executor.count_values, name), parts).repartition(1)
            answers += self._answers(self._step(run, partial(executor.add_values, name), values))
        counted = self._step(run, partial(executor.count_parts, name), parts)
        joined = counted.repartitionById(check.buckets + 1, "number")
        answers += self._answers(self._step(run, partial(executor.join_parts, name), joined))
        return [message.value for message in answers]

    def stop(self) -> None:
        """Interrupt the work on the Spark Connect server."""
        # In a thread: this one may be in the middle of a call of the same client.
        interrupting = threading.Thread(target=self._session.interruptAll, daemon=True)
        interrupting.start()
        interrupting.join(_STOP_S)

    def _splits(self, run: Run) -> DataFrame:
        splits = run.dataset.source.splits(self._split_rows)
        return self._scheduled([split.to_json() for split in splits])

    def _scheduled(self, values: Sequence[Any]) -> DataFrame:
        """A message per value, each in a Spark partition, and so a task, of its own."""
        messages = [executor.of_value(n, "work", value) for n, value in enumerate(values)]
        pieces = (piece for message in messages for piece in executor.pieces_of(message))
        with self._answering():
            table = pa.Table.from_batches(pieces)
            frame = self._session.createDataFrame(table, executor.PIECES)
        return frame.repartitionById(len(values), "number")

    def _step(self, run: Run, work: executor.Work, messages: DataFrame) -> DataFrame:
        return messages.mapInArrow(
            Step(work, RunLocation.of(run).to_json(), run.class_maker), executor.PIECES
        )

    def _answers(self, answers: DataFrame) -> Iterator[Message]:
        with self._answering():
            table = answers.toArrow()
        return executor.messages_of(table.to_batches())

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Raise ConnectionError, which a retry may cure, if the Spark Connect server is gone."""
        from pyspark.errors import PySparkException

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED]")  # it is raised as well
            try:
                yield
            except PySparkException as error:
                if not _GONE.search(str(error)):
                    raise
                self._session.client.close()  # or its exit would retry for another minute
                raise ConnectionError(
                    "the Spark Connect server does not answer, or was restarted and lost this "
                    "session; see its log, then run again"
                ) from None
