"""The three phases as a task group, for use inside any DAG.

::

    partition ──▶ anonymize_fragment (mapped) ──▶ wrap_up
        └────────────────┴───────────────────────────┴──▶ clean_up (teardown)

and, where the first phase of two-phase top-down specialization is to be mapped tasks, too::

    partition ──▶ specialize_part (mapped) ──▶ recode ──▶ anonymize_fragment (mapped) ──▶ wrap_up

What follows the group follows ``wrap_up``, and the DAG run fails when it does. ``clean_up`` runs
whatever happened. It is a teardown without a setup on purpose: Airflow skips the teardown of a
setup that failed, and a partition task that was killed leaves raw rows behind; and it would run a
setup again, wiping the working files, when one fragment is cleared while others still run.
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
from mondrian_ops.operators.base import RETRIES, RETRY_DELAY
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
    """Anonymize one data set: ``partition``, ``anonymize_fragment`` and ``wrap_up`` in a group.

    :param job: the job: a mapping, the path of its file, or what an upstream task returned;
        templates in it are rendered.
    :param default_args: for the tasks of the group, such as ``pool`` or ``queue``.
    :param options: those of :func:`anonymize_tasks`: ``map_first_phase``, ``cores``, ``asset``,
        ``stewards``, ``on_refusal``, ``on_waiting``, ``retries``, ``retry_delay``.
    """
    # None would break inside another group that has default arguments.
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
    retries: int = RETRIES,
    retry_delay: timedelta = RETRY_DELAY,
) -> WrapUpOperator:
    """The tasks of :func:`anonymize_group` where they are called, in no group of their own.

    :param job: as for :func:`anonymize_group`.
    :param map_first_phase: whether a job with ``algorithm: tds`` has its first phase done by mapped
        tasks, one for each of ``tds.partitions``, so that several machines can share it. For any
        other job, and with Spark, which has tasks of its own for it, that stage is skipped. The
        release is the same either way.
    :param cores: how many cores of its worker a task cuts its fragment on.
    :param asset: gets an event when the release is published. An AssetAlias is for an output that
        is known at run time only: the release itself becomes an Asset.
    :param stewards: ids of the users who may approve a release that needs it; without any, whoever
        may answer in Airflow.
    :param on_refusal: notifiers to call when a release is refused, rejected or not approved in
        time; see :mod:`mondrian_ops.notifications`.
    :param on_waiting: notifiers to call when a release waits for an approval.
    :param retries: attempts of each task after its first; a job, input or release that is refused
        is never tried again.

    Returns ``wrap_up``: what needs the release follows it.
    """
    again: dict[str, Any] = {"retries": retries, "retry_delay": retry_delay}
    if map_first_phase:
        dividing = _first_phase_mapped(job, on_refusal, again)
    else:
        dividing = [PartitionOperator(task_id="partition", job=job, on_refusal=on_refusal, **again)]
    anonymize = AnonymizeFragmentOperator.partial(
        task_id="anonymize_fragment",
        job=job,
        cores=cores,
        map_index_template=AnonymizeFragmentOperator.NAME_TEMPLATE,
        **again,
    ).expand(fragment=dividing[-1].output)
    wrap_up = WrapUpOperator(
        task_id="wrap_up",
        job=job,
        summaries=anonymize.output,
        outlets=[] if asset is None else [asset],
        stewards=stewards,
        on_refusal=on_refusal,
        on_waiting=on_waiting,
        **again,
    )
    clean_up = CleanUpOperator(task_id="clean_up", job=job, **again).as_teardown()
    [*dividing, anonymize, wrap_up] >> clean_up
    return wrap_up


def _first_phase_mapped(
    job: JobSource, on_refusal: OneOrMore, again: dict[str, Any]
) -> list[PartitionOperator | MappedOperator | RecodeOperator]:
    """The tasks up to the fragments, where a first phase is mapped tasks; the last returns them."""
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
        # Without parts that stage is skipped; with `partition` skipped this one has to be, too.
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
    stewards: Sequence[str] = (),
    on_refusal: OneOrMore = (),
    on_waiting: OneOrMore = (),
    retries: int = RETRIES,
    retry_delay: timedelta = RETRY_DELAY,
) -> MappedOperator:
    """Anonymize every data set of a list that is known at run time only; each stands alone.

    ``partition`` and ``wrap_up`` are mapped over the jobs, ``anonymize_fragment`` over the
    fragments of all of them: Airflow cannot map a task inside a mapped group, and one list keeps
    every worker busy. A job that fails leaves the others alone; its ``wrap_up`` fails, and so
    does the run. An empty list of jobs skips the tasks. A release that is rejected leaves the
    others alone too, but the tasks that follow ``wrap_up`` are skipped for all of them: let what
    needs one release be scheduled by its Asset.

    :param jobs: the output of a task that returns a list of jobs (mappings or paths).

    The other parameters are those of :func:`anonymize_tasks`. Returns ``wrap_up``.
    """
    again: dict[str, Any] = {"retries": retries, "retry_delay": retry_delay}
    partition = PartitionOperator.partial(
        task_id="partition",
        map_index_template="{{ task.release_name }}",
        on_refusal=Notifiers.of(on_refusal),
        **again,
    ).expand(job=jobs)
    fragments = GatherFragmentsOperator(
        task_id="fragments",
        job=jobs,
        partitions=partition.output,
        # One success is enough: a job without fragments failed in `partition`.
        trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
        **again,
    )
    anonymize = AnonymizeFragmentOperator.partial(
        task_id="anonymize_fragment",
        cores=cores,
        map_index_template=AnonymizeFragmentOperator.NAME_TEMPLATE,
        **again,
    ).expand(fragment=fragments.output)
    wrap_up = WrapUpOperator.partial(
        task_id="wrap_up",
        map_index_template="{{ task.release_name }}",
        summaries=anonymize.output,
        outlets=[] if asset is None else [asset],
        stewards=list(stewards),
        on_refusal=Notifiers.of(on_refusal),
        on_waiting=Notifiers.of(on_waiting),
        # A job whose own fragments are all there is published, whatever became of the others.
        trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
        **again,
    ).expand(job=jobs)
    clean_up = CleanUpOperator(task_id="clean_up", job=jobs, **again).as_teardown()
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
    retries: int = RETRIES,
    retry_delay: timedelta = RETRY_DELAY,
) -> FrontierOperator:
    """Loss and risk of a job against k and l: a mapped task a point, and one that gathers them.

    ::

        sample ──▶ point (mapped) ──▶ frontier
           └──────────┴──────────────────┴──▶ clean_up (teardown)

    :param job: as for :func:`anonymize_group`; its own k and l are not used.
    :param k: the values of k, and ``l`` those of l; 1 asks for no diversity.
    :param rows: about how many rows to measure, or ``sample``, the share of them.
    :param folder: the directory of table, CSV, picture and page.

    Returns ``frontier``.
    """
    again: dict[str, Any] = {"retries": retries, "retry_delay": retry_delay}
    drawn = FrontierSampleOperator(
        task_id="sample", job=job, k=k, l=l, rows=rows, sample=sample, **again
    )
    points = FrontierPointOperator.partial(
        task_id="point",
        job=job,
        map_index_template=FrontierPointOperator.NAME_TEMPLATE,
        **again,
    ).expand(point=drawn.output)
    frontier = FrontierOperator(
        task_id="frontier",
        job=job,
        sample=drawn.output,
        points=points.output,
        folder=folder,
        **again,
    )
    clean_up = CleanUpOperator(task_id="clean_up", job=job, **again).as_teardown()
    [drawn, points, frontier] >> clean_up
    return frontier
