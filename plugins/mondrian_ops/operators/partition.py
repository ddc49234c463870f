"""Phase one: from a sample of the data to the conditions of its fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import conf

from mondrian_ops.core.errors import JobError
from mondrian_ops.engines.threads import available_cores
from mondrian_ops.lean_imports import import_lean
from mondrian_ops.operators.base import (
    MondrianOperator,
    announce_work,
    final_errors,
    made_by,
    read_job,
    work_of,
)
from mondrian_ops.operators.notify import Notifiers, OneOrMore, refusal_notified

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.core.job import Job
    from mondrian_ops.engines.handover import Fragment, Part

__all__ = ["PartitionOperator", "check_map_length"]


class PartitionOperator(MondrianOperator):
    """Cut the data set into fragments that can each stand alone; returns one dict per fragment.

    The same data and job give the same fragments, so a retry or a rerun maps to the same tasks.

    :param on_refusal: notifiers to call when no release of the data can be made; see
        :mod:`mondrian_ops.notifications`.
    :param map_first_phase: leave the first phase of a recoding (two-phase top-down specialization)
        to :class:`SpecializePartOperator` tasks. Returns one dict per part of it then, none where
        the job has no such phase or Spark does it, and :class:`RecodeOperator` the fragments.
    """

    _work: str | None = None

    def __init__(
        self, *, on_refusal: OneOrMore = (), map_first_phase: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.on_refusal = Notifiers.of(on_refusal)
        self.map_first_phase = map_first_phase

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Profile, sample, plan, count, merge and, where it pays, scatter; recode if asked."""
        with final_errors():
            job = read_job(self.job)
            check_fragments(job)
            self._work = work_of(job, self, context)
            announce_work(context, self._work)
            parts = self._parts(job, self._work)
            with refusal_notified(self.on_refusal, context, job):
                fragments = self._fragments(job, bool(parts), context)
            self._check_number(fragments)
        self.log.info("%d fragments of %s", *_sizes(fragments))
        return [each.to_dict() for each in (parts if self.map_first_phase else fragments)]

    def _parts(self, job: Job, work: str) -> list[Part]:
        """The parts of a first phase that other tasks are mapped over."""
        if not self.map_first_phase:
            return []
        from mondrian_ops import pipeline

        parts = pipeline.parts_to_map(job, work)
        check_map_length(len(parts), "tds.partitions")
        return parts

    def _fragments(self, job: Job, first_phase_mapped: bool, context: Context) -> list[Fragment]:
        import_lean()
        from mondrian_ops import pipeline

        options: dict[str, Any] = {
            "work": self._work,
            "progress": self.log_progress(),
            "made_by": made_by(self, context),
            "slots": slots_of(job, context),
        }
        with self.working(job, context) as engine:
            return pipeline.partition(job, engine=engine, recode=not first_phase_mapped, **options)

    def _check_number(self, fragments: list[Fragment]) -> None:
        """Refuse more fragments than this Airflow maps: `max_rows` can make many."""
        from mondrian_ops import storage

        try:
            check_map_length(len(fragments), "partitioning.max_rows")
        except JobError:
            storage.WorkDir(str(self._work)).give_up()
            raise

    def on_kill(self) -> None:
        """Remove the working files: a retry begins anew."""
        from mondrian_ops import storage

        try:
            super().on_kill()
        finally:
            if self._work is not None:
                storage.WorkDir(self._work).give_up()


def check_fragments(job: Job) -> None:
    """Refuse more fragments than this Airflow maps, before any work is done.

    Raises JobError.
    """
    fragments = job.partitioning.fragments
    if fragments != "auto" and not _in_one_task(job):
        check_map_length(fragments, "partitioning.fragments")


def slots_of(job: Job, context: Context) -> int | None:
    """How many fragments this Airflow anonymizes at once; None where Spark has them in one task.

    As far as a task can know: by the settings of Airflow and the DAG and, where the executor is the
    local one, the cores of this machine. Pools, and how many workers there are, it does not know.
    """
    if _in_one_task(job):
        return None
    slots = [context["dag"].max_active_tasks, _max_map_length()]
    slots += filter(None, [conf.getint("core", "parallelism", fallback=0)])  # 0: as many as come
    executor = conf.get("core", "executor", fallback="").rpartition(".")[2]
    if executor == "LocalExecutor" and job.engine == "local":
        slots.append(available_cores())
    return min(slots)


def _in_one_task(job: Job) -> bool:
    return job.engine == "spark" and job.spark.shape == "application"


def check_map_length(length: int, what: str) -> None:
    """Raise JobError if ``length`` mapped tasks are more than ``[core] max_map_length``."""
    limit = _max_map_length()
    if length > limit:
        raise JobError(
            f"{what}: {length} mapped tasks are more than [core] max_map_length of this Airflow, "
            f"{limit}; ask for fewer or raise the limit"
        )


def _max_map_length() -> int:
    return conf.getint("core", "max_map_length", fallback=1024)


def _sizes(fragments: list[Fragment]) -> tuple[int, str]:
    """How many fragments there are, and how large; one value may stand for all."""
    rows = [fragment.rows for fragment in fragments]
    number = sum(fragment.fragments or 1 for fragment in fragments)
    if number > len(rows) or not rows:
        return number, f"{sum(rows):,} rows together"
    return number, f"{min(rows):,} to {max(rows):,} rows, {sum(rows):,} together"
