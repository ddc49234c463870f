"""Phase one: plan fragments on a sample, count the real rows, merge what is too small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import conf

from mondrian_ops.cores import available_cores
from mondrian_ops.errors import InputError, JobError, MondrianOpsError
from mondrian_ops.lean_imports import import_lean
from mondrian_ops.operators.approval import approvers
from mondrian_ops.operators.base import (
    MondrianOperator,
    announce_work,
    announced_by,
    final_errors,
    made_by,
    owner_of,
    release_name,
    requested,
    work_of,
)
from mondrian_ops.operators.notify import Notifiers, OneOrMore, failure_recorded, refusal_notified
from mondrian_ops.operators.release_link import ReleaseLink
from mondrian_ops.operators.release_records import check_catalogue
from mondrian_ops.operators.released import announce_attempt
from mondrian_ops.progress import Lines

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context

    from mondrian_ops.engines.handover import Fragment, Part
    from mondrian_ops.job.job import Job


class PartitionOperator(MondrianOperator):
    """Divide the dataset into fragments that can each be anonymized alone; return a dict for each.

    The same data and job give the same fragments, so a retry or a rerun maps to the same tasks.

    :param on_refusal: notifiers to call when no release of the data can be made; see
        :mod:`mondrian_ops.notifications`.
    :param map_first_phase: leave the first phase of two-phase top-down specialization to
        :class:`SpecializePartOperator` tasks. This task then returns one dict per part, or none if
        the job has no such phase or Spark runs it; :class:`RecodeOperator` returns the fragments.
    """

    operator_extra_links = (ReleaseLink(),)
    release_url = ""
    begins_run = True

    _work: str | None = None

    def __init__(
        self, *, on_refusal: OneOrMore = (), map_first_phase: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.on_refusal = Notifiers.of(on_refusal)
        self.map_first_phase = map_first_phase

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Profile the source, plan on a sample, count, merge; scatter the rows where it pays."""
        with final_errors(), failure_recorded(self, context):
            job = self.read_job()
            check_catalogue(asks=job.may_ask)
            check_fragments(job)
            if job.may_ask:
                approvers(job, (), context)  # raises if nobody may approve what it makes
            self._work = work_of(job, context)
            announce_work(context, self._work)
            parts = self._parts(job, self._work)
            with refusal_notified(self, context, job):
                fragments = self._fragments(job, bool(parts), context)
            self._check_number(fragments)
            announce_attempt(context, self._work)
        self.log.info("%d fragments of %s", *_sizes(fragments))
        return [item.to_dict() for item in (parts if self.map_first_phase else fragments)]

    def _parts(self, job: Job, work: str) -> list[Part]:
        """The parts of a first phase that is left to mapped tasks."""
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
            "progress": Lines(self.log.info),
            "made_by": made_by(self, context),
            "requested": requested(context),
            "owner": owner_of(self, context),
            "slots": slots_of(job, context),
        }
        with self.working(job, context) as engine:
            return pipeline.partition(job, engine=engine, recode=not first_phase_mapped, **options)

    def _check_number(self, fragments: list[Fragment]) -> None:
        """Raise JobError for more fragments than Airflow maps: ``max_rows`` can make many."""
        from mondrian_ops import publish

        try:
            check_map_length(len(fragments), "partitioning.max_rows")
        except JobError:
            publish.WorkDir(str(self._work)).give_up()
            raise

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """The dataset that is read, for the events of every end of the task, too."""
        from mondrian_ops.operators.lineage import names_of

        return names_of([self.read_job().input])

    def on_kill(self) -> None:
        """Stop, and remove the working files: a retry starts from the beginning."""
        from mondrian_ops import publish

        try:
            super().on_kill()
        finally:
            if self._work is not None:
                publish.WorkDir(self._work).give_up()


class GatherFragmentsOperator(MondrianOperator):
    """Return the fragments of several jobs as one list, each with its job and the job's number.

    :param job: the list of jobs that the partition task is mapped over (templated).
    :param partitions: what those :class:`PartitionOperator` tasks returned (templated). A job whose
        task failed is missing, so a fragment belongs to the job of its working directory, not of
        its position.
    """

    template_fields: Sequence[str] = (*MondrianOperator.template_fields, "partitions")

    def __init__(self, *, partitions: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.partitions = partitions

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Pair each fragment with its job; AirflowFailException if there are no fragments.

        A task mapped over nothing would be skipped with all that follows, and the run a success.
        """
        with final_errors():
            jobs = self._by_working_directory(context)
            gathered = [
                {**fragment, "job": jobs[work][1], "map_index": jobs[work][0]}
                for work, fragments in self._by_work().items()
                if work in jobs
                for fragment in fragments
            ]
            if not gathered:
                raise InputError(
                    f"none of {len(self.job)} dataset(s) was partitioned; see the log of each "
                    "partition task for the reason"
                )
            check_map_length(len(gathered), "fragments of all datasets together")
        return gathered

    def _by_work(self) -> dict[str, list[dict[str, Any]]]:
        """The fragments of each working directory.

        If a cleared run has fewer jobs than before, Airflow keeps what the last of the tasks
        returned then. These come last: what a job's own task returned is the first.
        """
        found: dict[str, list[dict[str, Any]]] = {}
        for fragments in self.partitions[:]:
            if fragments:
                found.setdefault(fragments[0]["work"], fragments)
        return found

    def _by_working_directory(self, context: Context) -> dict[str, tuple[int, Any]]:
        """The jobs and their numbers, by the working directory that a job's partition announced.

        Raises JobError for two jobs with one output, whose tasks share a working directory.

        A job may say something else by now, so what it says of its output is asked only where
        nothing was announced.
        """
        given = list(self.job)
        announced = announced_by(self, context, range(len(given))) or [None] * len(given)
        jobs: dict[str, tuple[int, Any]] = {}
        for number, (job, work) in enumerate(zip(given, announced, strict=True)):
            try:
                work = work or work_of(self.read_job(job), context)
            except MondrianOpsError:
                self.log.info("%s has no fragments: its job cannot be read", release_name(job))
                continue
            if work in jobs:
                raise _one_output(work, jobs[work], (number, job))
            jobs[work] = number, job
        return jobs


def _one_output(work: str, *jobs: tuple[int, Any]) -> JobError:
    """The error about two jobs, with their numbers, that have one output."""
    from mondrian_ops import publish, stores

    one, other = (f"jobs[{number}] ({release_name(job)})" for number, job in jobs)
    return JobError(
        f"output: {one} and {other} have the same one, {stores.shown(publish.output_of(work))}; "
        "give each job an output of its own, or remove one of the two"
    )


def check_fragments(job: Job) -> None:
    """Raise JobError, before any work is done, for more fragments than this Airflow maps."""
    fragments = job.partitioning.fragments
    if fragments != "auto" and not _in_one_task(job):
        check_map_length(fragments, "partitioning.fragments")


def slots_of(job: Job, context: Context) -> int | None:
    """How many fragments this Airflow anonymizes at once; None if Spark runs all in one task.

    The settings of Airflow and of the DAG limit it and, with the LocalExecutor, this machine's
    cores. A task does not know the pools, nor the number of workers.
    """
    if _in_one_task(job):
        return None
    slots = [context["dag"].max_active_tasks, _max_map_length()]
    slots += filter(None, [conf.getint("core", "parallelism", fallback=0)])  # 0: unlimited
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
            f"{what}: {length} mapped tasks are more than Airflow's [core] max_map_length allows, "
            f"{limit}; ask for fewer tasks or raise it"
        )


def _max_map_length() -> int:
    return conf.getint("core", "max_map_length", fallback=1024)


def _sizes(fragments: list[Fragment]) -> tuple[int, str]:
    """The number of fragments and their sizes, for the log; one dict may describe them all."""
    rows = [fragment.rows for fragment in fragments]
    number = sum(fragment.fragments or 1 for fragment in fragments)
    if number > len(rows) or not rows:
        return number, f"{sum(rows):,} rows together"
    return number, f"{min(rows):,} to {max(rows):,} rows, {sum(rows):,} together"
