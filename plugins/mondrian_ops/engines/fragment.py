"""The work on one fragment, wherever it is done: fetch its rows, anonymize, write its part."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import pyarrow as pa

from mondrian_ops import storage
from mondrian_ops.core.errors import InputError
from mondrian_ops.core.plan import check_schema, filter_of, is_exact, reach_of
from mondrian_ops.engines.run import Run

__all__ = ["Fragment", "Summary", "anonymize", "release"]

Fragment = dict[str, Any]
"""A small JSON value: ``{"schema", "id", "where", "any_of", "rows", "work"}``.

``where`` and ``any_of`` are the condition as it may be shown. The working files have the exact one.
"""

Summary = dict[str, Any]
"""``{"id", "where", "rows", "equivalence_classes", "DP", "NCP", "attributes", "seconds",
"finished"}``."""


def anonymize(run: Run, fragment: Fragment, cores: int = 1) -> Summary:
    """Fetch the fragment's rows and turn them into its part of the release, on so many ``cores``.

    Raises InputError when the input changed since it was counted, StorageError when the working
    files vanished.
    """
    started = time.perf_counter()
    check_schema(fragment)
    return release(run, fragment, _fetched(run, fragment), started, cores)


def release(
    run: Run, fragment: Fragment, rows: pa.Table, started: float, cores: int = 1
) -> Summary:
    """Turn the fragment's ``rows`` into its part of the release.

    A part that an earlier try has written is kept: this one would have the same classes, but its
    rows in another order, and the release may be approved already.

    ``started``: when the work on it began, on the performance counter.
    """
    if rows.num_rows != fragment["rows"]:
        raise InputError(
            f"fragment {fragment['id']}: has {rows.num_rows} rows, {fragment['rows']} were "
            "counted; the input changed while it was read, run again from the partition task"
        )
    released, summary, persons = run.anonymizer.release(rows, run.recoding, cores)
    path = run.work.part_path(fragment["id"])
    if os.path.basename(path) not in run.work.staged():
        keep = None if persons is None else partial(run.work.write_persons, persons=persons)
        storage.write_part(path, released, run.work.root, keep)
    return {
        "id": fragment["id"],
        "where": fragment["where"],
        **summary,
        "seconds": round(time.perf_counter() - started, 3),
        "finished": time.time(),
    }


def _fetched(run: Run, fragment: Fragment) -> pa.Table:
    """The rows of a fragment: those scattered to it, or those that its condition takes."""
    if run.state["retrieval"]["used"] == "scatter":
        leaves = run.state["leaves"][fragment["id"]]
        return pa.concat_tables([storage.read_fragment(run.work, leaf) for leaf in leaves])
    source = run.dataset.source
    source.refuse_change()
    orders = run.anonymizer.orders
    condition = run.plan.condition(fragment["id"], orders), orders
    batches = source.batches(
        run.columns,
        reach_of(*condition),
        exact=None if is_exact(*condition) else filter_of(*condition),
    )
    return pa.Table.from_batches(batches, run.schema)
