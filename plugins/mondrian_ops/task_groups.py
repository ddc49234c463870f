"""The three phases as one task group, for use inside any DAG.

::

    partition ──▶ anonymize_fragment (mapped) ──▶ wrap_up
        └────────────────┴───────────────────────────┴──▶ clean_up (teardown)

What follows the group follows ``wrap_up``, and the DAG run fails when it does. ``clean_up`` runs
whatever happened. It is a teardown without a setup on purpose: Airflow skips the teardown of a
setup that failed, and a partition task that was killed leaves raw rows behind; and it would run a
setup again, wiping the working files, when one fragment is cleared while others still run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias, TaskGroup, TriggerRule

from mondrian_ops.operators import (
    AnonymizeFragmentOperator,
    CleanUpOperator,
    GatherFragmentsOperator,
    PartitionOperator,
    WrapUpOperator,
)
from mondrian_ops.operators.base import RETRIES, RETRY_DELAY

if TYPE_CHECKING:
    from airflow.sdk import XComArg

__all__ = ["anonymize_each_group", "anonymize_group"]


def anonymize_group(
    job: Mapping[str, Any] | str | os.PathLike[str] | XComArg,
    group_id: str = "anonymize",
    *,
    asset: Asset | AssetAlias | None = None,
    prefix_group_id: bool = True,
    retries: int = RETRIES,
    retry_delay: timedelta = RETRY_DELAY,
    default_args: dict[str, Any] | None = None,
) -> TaskGroup:
    """Anonymize one data set: ``partition``, ``anonymize_fragment`` and ``wrap_up``.

    :param job: the job: a mapping, the path of its file, or what an upstream task returned;
        templates in it are rendered.
    :param asset: gets an event when the release is published. An AssetAlias is for an output that
        is known at run time only: the release itself becomes an Asset.
    :param prefix_group_id: whether the task ids start with the group's.
    :param retries: attempts of each task after its first; a job, input or release that is refused
        is never tried again.
    :param default_args: for the tasks of the group, such as ``pool`` or ``queue``.
    """
    again: dict[str, Any] = {"retries": retries, "retry_delay": retry_delay}
    with _group(group_id, prefix_group_id, default_args) as group:
        partition = PartitionOperator(task_id="partition", job=job, **again)
        anonymize = AnonymizeFragmentOperator.partial(
            task_id="anonymize_fragment",
            job=job,
            map_index_template=AnonymizeFragmentOperator.NAME_TEMPLATE,
            **again,
        ).expand(fragment=partition.output)
        wrap_up = WrapUpOperator(
            task_id="wrap_up",
            job=job,
            summaries=anonymize.output,
            outlets=[] if asset is None else [asset],
            **again,
        )
        clean_up = CleanUpOperator(task_id="clean_up", job=job, **again).as_teardown()
        [partition, anonymize, wrap_up] >> clean_up
    return group


def anonymize_each_group(
    jobs: XComArg,
    group_id: str = "anonymize_each",
    *,
    asset: AssetAlias | None = None,
    prefix_group_id: bool = True,
    retries: int = RETRIES,
    retry_delay: timedelta = RETRY_DELAY,
    default_args: dict[str, Any] | None = None,
) -> TaskGroup:
    """Anonymize every data set of a list that is known at run time only; each stands alone.

    ``partition`` and ``wrap_up`` are mapped over the jobs, ``anonymize_fragment`` over the
    fragments of all of them: Airflow cannot map a task inside a mapped group, and one list keeps
    every worker busy. A job that fails leaves the others alone; its ``wrap_up`` fails, and so
    does the run. An empty list of jobs skips the group.

    :param jobs: the output of a task that returns a list of jobs (mappings or paths).

    The other parameters are those of :func:`anonymize_group`.
    """
    again: dict[str, Any] = {"retries": retries, "retry_delay": retry_delay}
    with _group(group_id, prefix_group_id, default_args) as group:
        partition = PartitionOperator.partial(
            task_id="partition", map_index_template="{{ task.release_name }}", **again
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
            map_index_template=AnonymizeFragmentOperator.NAME_TEMPLATE,
            **again,
        ).expand(fragment=fragments.output)
        wrap_up = WrapUpOperator.partial(
            task_id="wrap_up",
            map_index_template="{{ task.release_name }}",
            summaries=anonymize.output,
            outlets=[] if asset is None else [asset],
            # A job whose own fragments are all there is published, whatever became of the others.
            trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
            **again,
        ).expand(job=jobs)
        clean_up = CleanUpOperator(task_id="clean_up", job=jobs, **again).as_teardown()
        [partition, fragments, anonymize, wrap_up] >> clean_up
    return group


def _group(group_id: str, prefix: bool, default_args: Any) -> TaskGroup:
    # None would break inside another group that has default arguments.
    arguments: Any = default_args or {}
    return TaskGroup(group_id=group_id, prefix_group_id=prefix, default_args=arguments)
