"""The work on one fragment, in any engine: fetch its rows, anonymize, write its part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

import pyarrow as pa

from mondrian_ops import publish
from mondrian_ops.cut.anonymizer import Released
from mondrian_ops.cut.holding import Holding
from mondrian_ops.cut.plan import filter_of, is_exact, pushdown_filter
from mondrian_ops.data.pool import NIGHT
from mondrian_ops.data.values import in_one_spelling
from mondrian_ops.engines import class_samples, use_samples
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.run import Run
from mondrian_ops.errors import InputError, UnattainableError
from mondrian_ops.job.job import Job
from mondrian_ops.phases import Phases
from mondrian_ops.verify.persons import check_persons_values
from mondrian_ops.verify.truth import PartTruth, Read


def anonymize(
    run: Run,
    fragment: Fragment,
    rows: pa.Table | None = None,
    cores: int = 1,
    cpu: Callable[[], float] = time.process_time,
) -> Summary:
    """Turn the fragment's rows into its part of the release, on ``cores`` cores.

    ``rows`` are fetched if None. A part that an earlier try has written is kept: a new one would
    have the same classes, but its rows in another order, and the release may be approved already.
    ``cpu``: the clock of processors, see :class:`Phases`.

    Raises InputError when the input changed since it was counted, StorageError when the working
    files vanished.
    """
    started, phases = time.perf_counter(), Phases(cpu)
    holding = run.dataset.holding
    if run.state.unattainable and holding is not None:
        rows = pa.Table.from_batches(run.dataset.source.batches(run.columns), run.schema)
        return _held(run, fragment, holding, started, rows)
    if rows is None:
        with phases("fetch"):
            rows = _fetched(run, fragment)
    if rows.num_rows != fragment.rows:
        raise InputError(
            f"fragment {fragment.id}: has {rows.num_rows} rows, but {fragment.rows} were counted, "
            "so the input changed while it was read; run again from the partition task"
        )
    try:
        anonymizer, recoding = run.anonymizer, run.recoding
        released = anonymizer.release(rows, recoding, cores, holding, run.class_maker, phases)
    except UnattainableError:
        if holding is None:
            raise
        return _held(run, fragment, holding, started, rows)
    measured = released.summary
    if released.held is not None:
        run.work.write_held(fragment.id, released.held)
    if measured["rows"]:
        _written(run, fragment, rows, released, phases)
        with phases("sample"):
            class_samples.take_sample(
                run, fragment, _in_one_spelling(run.dataset.job, rows), released
            )
            use_samples.take_sample(run, fragment, rows, released)
    return Summary.of(fragment, {**measured, "phases": phases.costs()}, started)


def _written(
    run: Run, fragment: Fragment, rows: pa.Table, released: Released, phases: Phases
) -> None:
    """Write the part, unless it is there, and check that it is true to ``rows``.

    A part that is there was checked before it got its name. The rows of this try, which are those
    of its classes in another order, then are checked in its place.
    """
    path, persons = run.work.part_path(fragment.id), released.persons
    truth = truth_of(run, rows, released, f"fragment {fragment.id}")

    def check(read: Read) -> None:
        with phases("truth"):
            truth(read)

    if run.work.is_written(path):
        check(partial(read_columns, released.table))
        return
    keep = None
    if persons is not None:
        of_rows = {"persons": persons, "signatures": released.signatures}
        keep = partial(run.work.write_persons, **of_rows)
    about = run.declared, check, run.required
    with phases("write"):
        publish.write_part(path, released.table, run.work.root, keep, *about)


def truth_of(run: Run, rows: pa.Table, released: Released, where: str) -> Callable[[Read], None]:
    """What compares ``rows`` with their released form, as it is read back.

    It raises PrivacyError as `PartTruth.check` does, or where persons have too few values.
    """
    job = run.dataset.job
    truth = PartTruth(
        rows=_in_one_spelling(job, rows),
        order=released.order,
        made_up=released.made_up,
        missing_rows=released.summary["suppressed"] + released.summary["held"],
        labels=run.labels,
        identifiers=job.identifiers,
        where=where,
    )
    entity, persons = job.entity_id, released.persons
    of_persons = None if entity is None or persons is None else (entity, persons)
    columns = released.table.column_names

    def check(read: Read) -> None:
        truth.check(columns, read, persons=of_persons)
        # Where recoding is global, parts of a class may lie in several files.
        if persons is not None and not (run.root and job.recodes_globally):
            check_persons_values(job, columns, read, persons, where)

    return check


def _in_one_spelling(job: Job, rows: pa.Table) -> pa.Table:
    """The rows, with sensitive values spelled as a series that follows its persons does."""
    for name in job.sensitive if job.follows_persons else ():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, in_one_spelling(rows[name]))
    return rows


def read_columns(table: pa.Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of a table, in batches."""
    return iter(table.select(columns).to_batches())


def _held(
    run: Run, fragment: Fragment, holding: Holding, started: float, rows: pa.Table
) -> Summary:
    """Hold all rows of a fragment that cannot be published; those overdue are suppressed."""
    held = rows.filter(pa.array(~holding.overdue(rows[NIGHT])))
    run.work.write_held(fragment.id, held)
    measured = {
        "rows": 0,
        "held": held.num_rows,
        "counterfeits": 0,
        "suppressed": rows.num_rows - held.num_rows,
        "equivalence_classes": 0,
        "DP": 0,
    }
    return Summary.of(fragment, measured, started)


def _fetched(run: Run, fragment: Fragment) -> pa.Table:
    """The rows of a fragment: those scattered to it, or those that satisfy its condition."""
    leaves = run.state.leaves[fragment.id]
    if run.state.retrieval == "scatter":
        rows = pa.concat_tables([publish.read_fragment(run.work, leaf) for leaf in leaves])
        return rows.combine_chunks()  # each step would look at each of many pieces
    source, reached = run.dataset.source, run.state.files
    parts = range(len(source.sizes))
    orders = run.anonymizer.orders
    condition = run.plan.condition(fragment.id, orders), orders
    batches = source.batches(
        run.columns,
        pushdown_filter(*condition),
        parts=parts if reached is None else sorted({*chain(*(reached[leaf] for leaf in leaves))}),
        exact=None if is_exact(*condition) else filter_of(*condition),
    )
    return pa.Table.from_batches(batches, run.schema)
