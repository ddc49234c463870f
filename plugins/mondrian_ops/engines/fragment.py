"""The work on one fragment, in any engine: fetch its rows, anonymize, write its part."""

from __future__ import annotations

import time
from functools import partial
from itertools import chain

import pyarrow as pa

from mondrian_ops import storage
from mondrian_ops.algorithms.holding import Holding
from mondrian_ops.core.errors import InputError
from mondrian_ops.core.plan import filter_of, is_exact, reach_of
from mondrian_ops.core.pool import NIGHT
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.run import Run

__all__ = ["anonymize"]


def anonymize(
    run: Run, fragment: Fragment, rows: pa.Table | None = None, cores: int = 1
) -> Summary:
    """Turn the fragment's rows into its part of the release, on ``cores`` cores.

    ``rows`` are fetched if None. A part that an earlier try has written is kept: a new one would
    have the same classes, but its rows in another order, and the release may be approved already.

    Raises InputError when the input changed since it was counted, StorageError when the working
    files vanished.
    """
    started = time.perf_counter()
    holding = run.dataset.holding
    if run.state.unattainable and holding is not None:
        return _held(run, fragment, holding, started)
    if rows is None:
        rows = _fetched(run, fragment)
    if rows.num_rows != fragment.rows:
        raise InputError(
            f"fragment {fragment.id}: has {rows.num_rows} rows, but {fragment.rows} were counted, "
            "so the input changed while it was read; run again from the partition task"
        )
    released, measured, persons, held = run.anonymizer.release(rows, run.recoding, cores, holding)
    if held is not None:
        run.work.write_held(fragment.id, held)
    path = run.work.part_path(fragment.id)
    if measured["rows"] and not run.work.is_written(path):
        keep = None if persons is None else partial(run.work.write_persons, persons=persons)
        storage.write_part(path, released, run.work.root, keep, run.declared)
    return Summary.of(fragment, measured, started)


def _held(run: Run, fragment: Fragment, holding: Holding, started: float) -> Summary:
    """Hold all rows of a night that cannot be published; those that are overdue are suppressed."""
    rows = pa.Table.from_batches(run.dataset.source.batches(run.columns), run.schema)
    held = rows.filter(pa.array(~holding.overdue(rows[NIGHT])))
    run.work.write_held(fragment.id, held)
    measured = {
        "rows": 0,
        "held": held.num_rows,
        "counterfeits": 0,
        "suppressed": rows.num_rows - held.num_rows,
        "equivalence_classes": 0,
        "DP": 0,
        "NCP": 0.0,
        "attributes": {},
    }
    return Summary.of(fragment, measured, started)


def _fetched(run: Run, fragment: Fragment) -> pa.Table:
    """The rows of a fragment: those scattered to it, or those that satisfy its condition."""
    leaves = run.state.leaves[fragment.id]
    if run.state.retrieval == "scatter":
        return pa.concat_tables([storage.read_fragment(run.work, leaf) for leaf in leaves])
    source, reached = run.dataset.source, run.state.files
    files = range(len(source.files))
    orders = run.anonymizer.orders
    condition = run.plan.condition(fragment.id, orders), orders
    batches = source.batches(
        run.columns,
        reach_of(*condition),
        files=files if reached is None else sorted({*chain(*(reached[leaf] for leaf in leaves))}),
        exact=None if is_exact(*condition) else filter_of(*condition),
    )
    return pa.Table.from_batches(batches, run.schema)
