"""What the operators share: the job, the engine, final errors, the working files of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator, conf
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops.errors import JobError, MondrianOpsError, StorageError, values_withheld
from mondrian_ops.job.options import as_number, shown
from mondrian_ops.lean_imports import import_lean

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.engines import Engine
    from mondrian_ops.job.job import Job
    from mondrian_ops.publish import Owner

RETRIES = 2
RETRY_DELAY = timedelta(seconds=10)

_WORK = "mondrian_ops_work"


class MondrianOperator(BaseOperator):
    """Base of the operators of this package.

    :param job: the anonymization job (templated): a mapping, the path of a YAML or JSON file, or
        ``{"file": PATH, "set": ["k=10", ...], "name": ...}`` for a file with some options changed,
        and ``"defaults": {"schema": "keep", ...}`` for those that the file does not set.
        It is read once, by the task that begins the run: the tasks that follow take the job from
        the working files, and only warn if theirs differs.
    :param spark_conn_id: the connection to Spark, in place of the job's ``spark.connection``
        (templated).
    :param storage_conn_id: the connection of the job's URLs that name none (templated):
        ``s3://BUCKET/KEY`` is then ``s3://STORAGE_CONN_ID@BUCKET/KEY``, for the access policy too.
    :param deferrable: wait for a Spark driver in cluster mode without a worker's slot; by default
        as ``[operators] default_deferrable`` says. No other task waits that way.
    :param retries: attempts after the first, for failures that a retry can cure: a killed worker,
        a full disk. A bad job, bad input and a release that fails verification are never retried.
    """

    template_fields: Sequence[str] = ("job", "spark_conn_id", "storage_conn_id")
    template_fields_renderers: ClassVar[dict[str, str]] = {"job": "json"}
    ui_color = "#e2ecf7"

    begins_run: ClassVar[bool] = False
    """Whether the task makes the working files, with the job for the tasks that follow."""

    ends_run: ClassVar[bool] = False
    """Whether the task publishes the release."""

    known_job: Job | None = None
    """The job of the run, once the task has read it."""

    engine: Engine | None = None
    """The engine that is at work, if any; :meth:`on_kill` stops it."""

    driver_event: Mapping[str, str] | None = None
    """What a deferred task's trigger has seen of its driver."""

    def __init__(
        self,
        *,
        job: Any,
        spark_conn_id: str | None = None,
        storage_conn_id: str | None = None,
        deferrable: bool | None = None,
        retries: int = RETRIES,
        retry_delay: timedelta = RETRY_DELAY,
        **kwargs: Any,
    ) -> None:
        super().__init__(retries=retries, retry_delay=retry_delay, **kwargs)
        self.job = job
        self.spark_conn_id = spark_conn_id
        self.storage_conn_id = storage_conn_id
        default = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = default if deferrable is None else deferrable

    @property
    def release_name(self) -> str:
        """The release's name in the grid; for ``map_index_template``."""
        return release_name(self.job)

    def read_job(self, job: Any = None, *, publishes: bool = True) -> Job:
        """The operator's job, or another, with its connections, held to this Airflow's policies.

        ``publishes``: whether it is to publish rows. From here on this process reaches locations
        as Airflow's settings and connections say. Raises JobError if the job is invalid, names a
        location that this Airflow does not allow, or asks less than a policy requires.
        """
        from mondrian_ops import publish, stores
        from mondrian_ops.hooks.settings import use_settings

        use_settings()
        given = self.job if job is None else job
        if isinstance(given, Mapping) and "file" in given:
            loaded = stores.load_job(given["file"], given.get("set", ()), given.get("defaults"))
        else:
            loaded = stores.load_job(given)
        loaded = stores.with_connections(loaded, self.spark_conn_id, self.storage_conn_id)
        read = publish.check_job(loaded, publishes=publishes)
        if self.begins_run:
            self.known_job = read
        return read

    def job_of_run(
        self, context: Context, work: str, given: Any = None, *, publishes: bool = True
    ) -> Job:
        """The job of the run with these working files, held to this Airflow's policies.

        It is the one with which the run began. The operator's own job, or the ``given`` one, may
        be another by now: its file was edited, or a template renders to something else. A warning
        in the log names the options that differ.

        Raises JobError as :meth:`read_job`; StorageError if the working files vanished, or are
        those of another run.
        """
        from mondrian_ops import publish

        check_work(work, context)
        self.known_job = begun = publish.WorkDir(work).job
        self.known_job = job = publish.check_job(begun, publishes=publishes, work=work)
        self._warn_of_difference(job, self.job if given is None else given, publishes)
        return job

    def _warn_of_difference(self, job: Job, given: Any, publishes: bool) -> None:
        remedy = "the run goes on with the job with which it began; to use the new one, clear it "
        remedy += "from its first task on"
        if given is None:
            return
        try:
            differing = _differing(job, self.read_job(given, publishes=publishes))
        except MondrianOpsError as error:
            self.log.warning("the job of this task would be refused now (%s); %s", error, remedy)
            return
        if differing:
            self.log.warning(
                "the job of this task has changed: %s; %s", ", ".join(differing), remedy
            )

    @contextmanager
    def working(self, job: Job, context: Context, cores: int | None = None) -> Iterator[Engine]:
        """The engine of a job; :meth:`on_kill` stops it.

        ``cores`` is the number of cores that cut fragments in this process; by default all.
        """
        with _engine_of(job, self, context, cores) as engine:
            self.engine = engine
            try:
                yield engine
            finally:
                self.engine = None

    def resume(self, context: Context, event: Mapping[str, str]) -> Any:
        """Go on once the driver for which the task was deferred is over."""
        self.driver_event = event
        return self.execute(context)

    def on_kill(self) -> None:
        """Stop at once, and run every cleanup on the way out; a retry may follow."""
        if self.engine is not None:
            self.engine.stop()
        raise SystemExit(f"{self.task_id} was stopped")


@contextmanager
def _engine_of(
    job: Job, operator: MondrianOperator, context: Context, cores: int | None
) -> Iterator[Engine]:
    """The engine that the job and its connection name.

    Raises JobError if the connection or its provider is missing.
    """
    import_lean()
    if job.engine != "spark":
        from mondrian_ops.engines.local import LocalEngine

        yield LocalEngine(cores)
        return
    from mondrian_ops.hooks import spark

    if spark.spark_connection(job).conn_type not in spark.CONNECT_TYPES:
        from mondrian_ops.engines.spark_submit import SparkSubmitEngine

        deferral = operator.deferrable, operator.driver_event
        yield SparkSubmitEngine(spark.submission(job, operator, context, *deferral))
        return
    with spark.connect_session(job) as session:
        from mondrian_ops.engines.spark import SparkEngine

        yield SparkEngine(session, job.spark.conf)


@contextmanager
def final_errors() -> Iterator[None]:
    """Fail the task for good on a MondrianOpsError, which a retry cannot cure.

    The error's cause is dropped: a library's own message may quote a value. For the same reason
    :func:`values_withheld` drops the message of an unforeseen error, which may be retried.
    """
    try:
        with values_withheld():
            yield
    except MondrianOpsError as error:
        raise AirflowFailException(str(error)) from None


def release_name(job: object) -> str:
    """The job's ``name``, or the last two parts of its output, or its file's name."""
    if not isinstance(job, Mapping):
        return PurePath(str(job)).name
    output = PurePath(str(job.get("output") or ""))
    return str(job.get("name") or PurePath(*output.parts[-2:]))


def _differing(one: Job, other: Job) -> list[str]:
    """The options in which two jobs differ, by name only."""
    here, there = one.to_dict(), other.to_dict()
    names = []
    for name in sorted({*here, *there}):
        values = here.get(name), there.get(name)
        if values[0] == values[1]:
            continue
        sections = [value if isinstance(value, Mapping) else {} for value in values]
        inner = [key for key in {**sections[0], **sections[1]} if _differ(key, *sections)]
        names += [f"{name}.{key}" for key in sorted(inner)] or [name]
    return names


def _differ(key: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.get(key) != other.get(key)


def is_trial() -> bool:
    """Whether this is ``airflow tasks test``, which must publish nothing.

    ``airflow dags test`` and ``dag.test()`` run a whole DAG, and publish.
    """
    return os.environ.get("AIRFLOW_TEST_MODE") == "True"


def work_of(job: Job, context: Context) -> str:
    """The working directory that the tasks of one output share in one DAG run.

    It does not depend on the task group: a DAG may spread the tasks of a job over several.
    """
    from mondrian_ops import publish

    return publish.work_path(str(job.output), _run_of(context))


def owner_of(operator: BaseOperator, context: Context) -> Owner:
    """The run and the task that make working files."""
    from mondrian_ops.publish import Owner

    return Owner(_run_of(context), str(operator.task_id))


def _run_of(context: Context) -> str:
    return f"{context['dag_run'].dag_id}/{context['dag_run'].run_id}"


def made_by(task: Any, context: Context) -> str:
    """The maker of a group's releases: ``DAG_ID`` or ``DAG_ID/GROUP``, the same in every run."""
    group = str(task.task_id).rpartition(".")[0]
    return f"{context['dag_run'].dag_id}/{group}" if group else str(context["dag_run"].dag_id)


def requested(context: Context) -> dict[str, str | None]:
    """What Airflow says about who asked for the run, and how it began."""
    run = context["dag_run"]
    return {
        "requested_by": run.triggering_user_name or None,
        "run_type": str(getattr(run.run_type, "value", run.run_type)),
    }


def announce_work(context: Context, work: str) -> None:
    """Tell the tasks that follow where the working files will be, before there are any."""
    context["ti"].xcom_push(key=_WORK, value=work)


def announced_works(operator: BaseOperator, context: Context) -> set[str]:
    """The working directories that the tasks before this one have announced.

    Anybody who may write an XCom can name a directory: those of other runs are left out.
    """
    from mondrian_ops import publish

    before = sorted(operator.upstream_task_ids)
    works = context["ti"].xcom_pull(task_ids=before, key=_WORK) if before else []
    run = _run_of(context)
    return {work for work in works if isinstance(work, str) and publish.is_work_path(work, run)}


def work_of_run(operator: MondrianOperator, context: Context) -> str:
    """The working directory of the release that a task is about.

    It is the one that the nearest task before it which begins a run has announced; of a mapped
    task, the one of the same map index. Only of several does the operator's own job tell which.
    """
    index = context["ti"].map_index
    works = set(announced_by(operator, context, None if index in (None, -1) else [index]))
    works.discard(None)
    if len(works) == 1:
        return str(works.pop())
    return work_of(operator.read_job(), context)


def check_work(work: str, context: Context) -> None:
    """Raise StorageError unless ``work`` may be a working directory of this run.

    Anybody who may write an XCom can name one. From here on this process reaches locations as
    Airflow's settings and connections say.
    """
    from mondrian_ops import publish, stores
    from mondrian_ops.hooks.settings import use_settings

    use_settings()
    if not publish.is_work_path(work, _run_of(context)):
        raise StorageError(
            f"{stores.shown(work)}: these are no working files of this run; clear the run from "
            "the partition task on"
        )


def announced_by(
    operator: BaseOperator,
    context: Context,
    map_indexes: Sequence[int] | None = None,
    key: str = _WORK,
) -> list[str | None]:
    """What the nearest tasks that begin a run have announced, with None for what is missing.

    ``map_indexes``: of which instances of them; None: of all. A directory of another run is left
    out as in :func:`announced_works`.
    """
    from mondrian_ops import publish

    before = _first_tasks(operator)
    if not before:
        return []
    which: dict[str, Any] = {} if map_indexes is None else {"map_indexes": map_indexes}
    announced = context["ti"].xcom_pull(task_ids=before, key=key, **which)
    run = _run_of(context)
    return [
        value
        if isinstance(value, str) and (key != _WORK or publish.is_work_path(value, run))
        else None
        for value in announced
    ]


def _first_tasks(operator: BaseOperator) -> list[str]:
    """The ids of the nearest tasks before this one that begin a run."""
    found, seen = set(), set()
    ahead = list(operator.upstream_list) if operator.upstream_task_ids else []
    while ahead:
        task = ahead.pop()
        if task.task_id in seen:
            continue
        seen.add(task.task_id)
        if getattr(getattr(task, "operator_class", type(task)), "begins_run", False):
            found.add(task.task_id)
        else:
            ahead += task.upstream_list
    return sorted(found)


def check_is_mapped(name: str, value: object, task: str) -> None:
    """Raise JobError if a mapped task's argument is not one value of those ``task`` returned."""
    if not isinstance(value, Mapping):
        raise JobError(
            f"{name}: must be one {name} of the {task} task, not {type(value).__name__}; "
            "map this task over its output"
        )


def number_of(name: str, value: object) -> float | None:
    """The value of a numeric option, which may be text; None if it is empty. Raises JobError."""
    if value is None or value == "":
        return None
    number = as_number(value)
    if number is None:
        raise JobError(f"{name}: must be a number, not {shown(value)}")
    return number


def whole_of(name: str, value: object) -> int | None:
    """The same as :func:`number_of`, for a whole number."""
    number = number_of(name, value)
    if number is None:
        return None
    if number != int(number):
        raise JobError(f"{name}: must be a whole number, not {shown(value)}")
    return int(number)
