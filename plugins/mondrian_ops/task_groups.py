"""The three phases as a task group, for use inside any DAG.

::

    partition ──▶ anonymize_fragment (mapped) ──▶ wrap_up
        └────────────────┴───────────────────────────┴──▶ clean_up (teardown)

With ``map_first_phase``, the first phase of two-phase top-down specialization is mapped, too::

    partition ──▶ specialize_part (mapped) ──▶ recode ──▶ anonymize_fragment (mapped) ──▶ wrap_up

A task that follows the group follows ``wrap_up``. ``clean_up`` always runs; if the release was not
made, it keeps the working files for a repair and fails, and with it the DAG run. It is a teardown
without a setup on purpose: Airflow skips the teardown of a setup that failed, but a killed
partition task leaves original rows behind; and Airflow would run a setup again, and wipe the
working files, when one fragment is cleared.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias, TaskGroup, TriggerRule, XComArg

from mondrian_ops.operators import (
    AnonymizeFragmentOperator,
    CleanUpOperator,
    FrontierOperator,
    FrontierPointOperator,
    FrontierSampleOperator,
    GatherFragmentsOperator,
    PartitionOperator,
    RecodeOperator,
    SpecializePartOperator,
    WrapUpOperator,
)
from mondrian_ops.operators.notify import Notifiers, OneOrMore

if TYPE_CHECKING:
    from airflow.sdk.definitions.mappedoperator import MappedOperator

__all__ = ["anonymize_each", "anonymize_group", "anonymize_tasks", "frontier_tasks"]

JobSource = Mapping[str, Any] | str | os.PathLike[str] | XComArg


def anonymize_group(
    job: JobSource,
    group_id: str = "anonymize",
    *,
    default_args: dict[str, Any] | None = None,
    **options: Any,
) -> TaskGroup:
    """Anonymize one dataset: ``partition``, ``anonymize_fragment`` and ``wrap_up`` in a group.

    :param job: the job (templated): a mapping, the path of its file, or the output of an upstream
        task.
    :param default_args: for the tasks of the group, such as ``pool`` or ``queue``.
    :param options: those of :func:`anonymize_tasks`: ``map_first_phase``, ``cores``, ``asset``,
        ``stewards``, ``on_refusal``, ``on_waiting``, ``spark_conn_id``, ``storage_conn_id``,
        ``deferrable``, ``retries``, ``retry_delay``, ``partition_args``, ``fragment_args``,
        ``wrap_up_args``.
    """
    # Inside a group that has default arguments, Airflow does not accept None.
    arguments: Any = default_args or {}
    with TaskGroup(group_id=group_id, default_args=arguments) as group:
        anonymize_tasks(job, **options)
    return group


def anonymize_tasks(
    job: JobSource,
    *,
    map_first_phase: bool = False,
    cores: Any = 1,
    asset: Asset | AssetAlias | None = None,
    stewards: Sequence[str] = (),
    on_refusal: OneOrMore = (),
    on_waiting: OneOrMore = (),
    spark_conn_id: str | None = None,
    storage_conn_id: str | None = None,
    deferrable: bool | None = None,
    retries: int | None = None,
    retry_delay: timedelta | None = None,
    partition_args: Mapping[str, Any] | None = None,
    fragment_args: Mapping[str, Any] | None = None,
    wrap_up_args: Mapping[str, Any] | None = None,
) -> WrapUpOperator:
    """The tasks of :func:`anonymize_group`, without a group of their own.

    :param job: as for :func:`anonymize_group`.
    :param map_first_phase: run the first phase of a job with ``algorithm: tds`` in mapped tasks,
        one for each of ``tds.partitions``, so that several machines share it. Airflow skips them
        for any other job, and with Spark, which shares that phase out itself. The release is the
        same either way.
    :param cores: how many cores of its worker a task uses to cut its fragment.
    :param asset: gets an event when the release is published. Use an AssetAlias if the output is
        known only at run time: the release itself then becomes an Asset.
    :param stewards: ids of the users who may approve a release that needs it; by default every user
        who may answer in Airflow.
    :param on_refusal: notifiers to call when a release is refused, rejected or not approved in
        time; see :mod:`mondrian_ops.notifications`.
    :param on_waiting: notifiers to call when a release waits for an approval.
    :param spark_conn_id: the connection to Spark, in place of the job's ``spark.connection``.
    :param storage_conn_id: the connection of the job's URLs that name none.
    :param deferrable: wait for Spark drivers in cluster mode without a worker's slot.
    :param retries: attempts of each task after its first; by default those of ``default_args``, or
        2. A job, input or release that is refused is never tried again.
    :param partition_args: arguments of the operator for the tasks up to the fragments, such as
        ``queue``, ``pool``, ``executor_config`` or ``execution_timeout``; ``fragment_args``: for
        ``anonymize_fragment``; ``wrap_up_args``: for ``wrap_up``.

    Returns ``wrap_up``, the task that the release's readers follow.
    """
    again = _given(
        spark_conn_id=spark_conn_id,
        storage_conn_id=storage_conn_id,
        deferrable=deferrable,
        retries=retries,
        retry_delay=retry_delay,
    )
    first = {**again, **(partition_args or {})}
    if map_first_phase:
        dividing = _first_phase_mapped(job, on_refusal, first)
    else:
        dividing = [PartitionOperator(task_id="partition", job=job, on_refusal=on_refusal, **first)]
    anonymize = AnonymizeFragmentOperator.partial(
        task_id="anonymize_fragment",
        job=job,
        cores=cores,
        map_index_template=AnonymizeFragmentOperator.NAME_TEMPLATE,
        **{**again, **(fragment_args or {})},
    ).expand(fragment=dividing[-1].output)
    wrap_up = WrapUpOperator(
        task_id="wrap_up",
        job=job,
        summaries=anonymize.output,
        outlets=[] if asset is None else [asset],
        stewards=stewards,
        on_refusal=on_refusal,
        on_waiting=on_waiting,
        **{**again, **(wrap_up_args or {})},
    )
    clean_up = _teardown(job, again)
    [*dividing, anonymize, wrap_up] >> clean_up
    return wrap_up


def _first_phase_mapped(
    job: JobSource, on_refusal: OneOrMore, again: dict[str, Any]
) -> list[PartitionOperator | MappedOperator | RecodeOperator]:
    """The tasks up to ``recode``, which returns the fragments, with a mapped first phase."""
    partition = PartitionOperator(
        task_id="partition", job=job, map_first_phase=True, on_refusal=on_refusal, **again
    )
    specialize = SpecializePartOperator.partial(
        task_id="specialize_part",
        job=job,
        map_index_template=SpecializePartOperator.NAME_TEMPLATE,
        **again,
    ).expand(part=partition.output)
    recode = RecodeOperator(
        task_id="recode",
        job=job,
        parts=specialize.output,
        on_refusal=on_refusal,
        # Runs if there are no parts, so that their task is skipped; but not without `partition`.
        trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
        **again,
    )
    partition >> recode
    return [partition, specialize, recode]


def anonymize_each(
    jobs: XComArg,
    *,
    cores: Any = 1,
    asset: AssetAlias | None = None,
    by_night: Asset | None = None,
    stewards: Sequence[str] = (),
    on_refusal: OneOrMore = (),
    on_waiting: OneOrMore = (),
    spark_conn_id: str | None = None,
    storage_conn_id: str | None = None,
    deferrable: bool | None = None,
    retries: int | None = None,
    retry_delay: timedelta | None = None,
    partition_args: Mapping[str, Any] | None = None,
    fragment_args: Mapping[str, Any] | None = None,
    wrap_up_args: Mapping[str, Any] | None = None,
) -> MappedOperator:
    """Anonymize every dataset of a list that is known only at run time, each on its own.

    ``partition`` and ``wrap_up`` are mapped over the jobs, ``anonymize_fragment`` over the
    fragments of all of them: Airflow cannot map a task inside a mapped group, and one list keeps
    every worker busy. A job that fails does not affect the others; its ``wrap_up`` fails, and so
    does the run. An empty list of jobs skips the tasks. A rejected release does not affect the
    others either, but the tasks that follow ``wrap_up`` are skipped for all of them: schedule a DAG
    that needs one release by its Asset.

    :param jobs: the output of a task that returns a list of jobs (mappings or paths).
    :param by_night: an Asset that gets an event per release, with the date in the release's output
        as its partition: for jobs of one dataset.

    The other parameters are those of :func:`anonymize_tasks`. Returns ``wrap_up``.
    """
    again = _given(
        spark_conn_id=spark_conn_id,
        storage_conn_id=storage_conn_id,
        deferrable=deferrable,
        retries=retries,
        retry_delay=retry_delay,
    )
    first = {**again, **(partition_args or {})}
    partition = PartitionOperator.partial(
        task_id="partition",
        map_index_template="{{ task.release_name }}",
        on_refusal=Notifiers.of(on_refusal),
        **first,
    ).expand(job=jobs)
    fragments = GatherFragmentsOperator(
        task_id="fragments",
        job=jobs,
        partitions=partition.output,
        # One success is enough: a job that failed in `partition` has no fragments.
        trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
        **first,
    )
    anonymize = AnonymizeFragmentOperator.partial(
        task_id="anonymize_fragment",
        cores=cores,
        map_index_template=AnonymizeFragmentOperator.NAME_TEMPLATE,
        **{**again, **(fragment_args or {})},
    ).expand(fragment=fragments.output)
    wrap_up = WrapUpOperator.partial(
        task_id="wrap_up",
        map_index_template="{{ task.release_name }}",
        summaries=anonymize.output,
        outlets=[each for each in (asset, by_night) if each is not None],
        by_night=by_night is not None,
        stewards=list(stewards),
        on_refusal=Notifiers.of(on_refusal),
        on_waiting=Notifiers.of(on_waiting),
        # A job is published if its own fragments succeeded, even if others failed.
        trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
        **{**again, **(wrap_up_args or {})},
    ).expand(job=jobs)
    clean_up = _teardown(jobs, again)
    [partition, fragments, anonymize, wrap_up] >> clean_up
    return wrap_up


def frontier_tasks(
    job: JobSource,
    *,
    k: Any,
    l: Any = (1,),  # noqa: E741 - the name of the parameter in every paper
    rows: Any = None,
    sample: Any = None,
    folder: Any = None,
    spark_conn_id: str | None = None,
    storage_conn_id: str | None = None,
    retries: int | None = None,
    retry_delay: timedelta | None = None,
) -> FrontierOperator:
    """Measure loss and risk of a job over a grid of k and l: one mapped task per point.

    ::

        sample ──▶ point (mapped) ──▶ frontier
           └──────────┴──────────────────┴──▶ clean_up (teardown)

    :param job: as for :func:`anonymize_group`; its own k and l are not used.
    :param k: the values of k; ``l``: those of l, where 1 requires no diversity.
    :param rows: about how many rows to measure; ``sample``: the share of them instead.
    :param folder: the directory of the CSV, the picture and the page.

    The other parameters are those of :func:`anonymize_tasks`.
    Returns ``frontier``.
    """
    again = _given(
        spark_conn_id=spark_conn_id,
        storage_conn_id=storage_conn_id,
        retries=retries,
        retry_delay=retry_delay,
    )
    draw = FrontierSampleOperator(
        task_id="sample", job=job, k=k, l=l, rows=rows, sample=sample, **again
    )
    points = FrontierPointOperator.partial(
        task_id="point",
        job=job,
        map_index_template=FrontierPointOperator.NAME_TEMPLATE,
        **again,
    ).expand(point=draw.output)
    frontier = FrontierOperator(
        task_id="frontier",
        job=job,
        sample=draw.output,
        points=points.output,
        folder=folder,
        **again,
    )
    clean_up = _teardown(job, again)
    [draw, points, frontier] >> clean_up
    return frontier


def _teardown(job: Any, again: dict[str, Any]) -> Any:
    """The task that ends the tasks of a job.

    The run is judged by it, and no longer by ``wrap_up``: if somebody marks the run as failed,
    Airflow skips ``wrap_up``, and a run whose last task was skipped is a success.
    """
    clean_up = CleanUpOperator(task_id="clean_up", job=job, **again)
    return clean_up.as_teardown(on_failure_fail_dagrun=True)


def _given(**arguments: Any) -> dict[str, Any]:
    """The arguments without None: for those the ``default_args`` of group and DAG decide."""
    return {name: value for name, value in arguments.items() if value is not None}
