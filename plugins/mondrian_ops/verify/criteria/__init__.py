"""Privacy criteria on a release as written: what every class achieves of each requirement.

One module per criterion, the counterpart of the one in `mondrian_ops.cut.criteria`, with which it
shares no code: it implements the paper's definition a second time, on the values as written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.job import Job
from mondrian_ops.verify.criteria.base import ColumnCriterion, WrittenCriterion
from mondrian_ops.verify.criteria.counted import CountedCriterion
from mondrian_ops.verify.criteria.distinct_diversity import DistinctDiversity
from mondrian_ops.verify.criteria.entropy_diversity import EntropyDiversity
from mondrian_ops.verify.criteria.k_anonymity import KAnonymity
from mondrian_ops.verify.criteria.recursive_diversity import RecursiveDiversity
from mondrian_ops.verify.criteria.spread_diversity import SpreadDiversity
from mondrian_ops.verify.criteria.t_closeness import TCloseness

__all__ = ["WrittenCriterion", "criteria_of"]

_OF_COLUMNS: tuple[type[ColumnCriterion], ...] = (
    DistinctDiversity,
    EntropyDiversity,
    RecursiveDiversity,
    SpreadDiversity,
    TCloseness,
)


def criteria_of(
    job: Job, hierarchies: Mapping[str, Hierarchy], rows_only: bool = False
) -> Iterator[WrittenCriterion]:
    """The criteria by which a release of ``job`` is measured; those of columns, column by column.

    ``hierarchies`` by sensitive column. ``rows_only``: rows are counted where the job has persons.
    """
    yield KAnonymity(job, rows_only)
    of_rows = _counts_rows(job, rows_only)
    for column in job.sensitive:
        asked = (each.of(job, column, hierarchies, of_rows) for each in _OF_COLUMNS)
        yield from (each for each in asked if each is not None)
        for key, criterion in job.criteria.items():  # which are always asked with counts of rows
            yield CountedCriterion(column, job, job.entity_id is not None, key=key, asked=criterion)


def _counts_rows(job: Job, rows_only: bool) -> bool:
    """Whether l is that of rows, though the job counts persons, who may have several."""
    # Where a series follows persons, each has one row.
    return rows_only and job.entity_id is not None and not job.follows_persons
