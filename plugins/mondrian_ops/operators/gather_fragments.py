"""The fragments of several data sets as one list, for one mapped task over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mondrian_ops.core.errors import InputError, MondrianOpsError
from mondrian_ops.operators.base import (
    MondrianOperator,
    final_errors,
    read_job,
    release_name,
    work_of,
)
from mondrian_ops.operators.partition import check_map_length

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["GatherFragmentsOperator"]


class GatherFragmentsOperator(MondrianOperator):
    """Return the fragments of every job that was partitioned, each with its job under ``job``.

    :param job: the list of jobs that the partition task is mapped over (templated).
    :param partitions: what those :class:`PartitionOperator` tasks returned (templated). A job that
        failed there is missing, so that positions say nothing: fragments are told apart by their
        working directory.
    """

    template_fields: Sequence[str] = ("job", "partitions")

    def __init__(self, *, partitions: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.partitions = partitions

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Pair each fragment with its job; AirflowFailException where there are none at all.

        A task that is mapped over nothing is skipped, and so is what follows: the run would end as
        a success.
        """
        jobs = self._by_working_directory(context)
        with final_errors():
            gathered = [
                {**fragment, "job": jobs[fragment["work"]]}
                for fragments in self.partitions[:]
                for fragment in fragments
            ]
            if not gathered:
                raise InputError(
                    f"none of {len(self.job)} data set(s) was partitioned; the log of each "
                    "partition task tells why"
                )
            check_map_length(len(gathered), "fragments of all data sets together")
        return gathered

    def _by_working_directory(self, context: Context) -> dict[str, Any]:
        jobs = {}
        for job in self.job:
            try:
                jobs[work_of(read_job(job), self, context)] = job
            except MondrianOpsError:
                self.log.info("%s has no fragments: its job cannot be read", release_name(job))
        return jobs
