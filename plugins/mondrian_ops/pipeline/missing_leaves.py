"""The values of a column that its hierarchy lacks: what a person adds to the file."""

from __future__ import annotations

from mondrian_ops.data.unlisted_values import no_leaf
from mondrian_ops.errors import JobError, did_you_mean
from mondrian_ops.job.job import Job
from mondrian_ops.pipeline.checks import hierarchies_of, open_input
from mondrian_ops.pipeline.contract import known_types


def missing_leaves(job: Job, column: str) -> tuple[list[str], str]:
    """The values of a column that are no leaves of its hierarchy, as text, and that one's name.

    Raises JobError where the job gives the column no hierarchy file, and as the job's run does
    where it does not fit its input.
    """
    trees = hierarchies_of(job)
    if column not in trees:
        names = ", ".join(map(repr, trees)) or "no column"
        raise JobError(
            f"--column: the job gives {column!r} no hierarchy file{did_you_mean(column, trees)}; "
            f"it gives one to {names}"
        )
    source = open_input(job, known_types(job))
    parts = (batch.column(0) for batch in source.batches([column], dictionaries=True))
    hierarchy, pointed = trees[column], column in source.pointed
    return no_leaf(column, parts, hierarchy, column in job.sensitive, pointed), hierarchy.name
