"""Phase one: the fragments of a dataset, each of which can stand alone."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mondrian_ops import storage
from mondrian_ops.algorithms import planning
from mondrian_ops.algorithms.fragment_merging import merge_small, merge_split_classes
from mondrian_ops.algorithms.planning import LeafCounts, Slots
from mondrian_ops.algorithms.recoding import Recoding
from mondrian_ops.core.disclosure import Disclosure
from mondrian_ops.core.job import Job
from mondrian_ops.core.plan import SCHEMA, Plan, reach_of
from mondrian_ops.engines import Engine, engine_of
from mondrian_ops.engines.cores import available_cores
from mondrian_ops.engines.fragment import Fragment
from mondrian_ops.engines.run import Dataset, Run
from mondrian_ops.pipeline import ledger
from mondrian_ops.pipeline.assembly import partitioning_note
from mondrian_ops.pipeline.checks import (
    check_columns,
    check_rows,
    column_roles,
    constant_note,
    hierarchies_of,
)
from mondrian_ops.pipeline.replacement import refuse_replacing
from mondrian_ops.progress import Display, Progress

__all__ = ["begin", "count", "divide", "partition", "plan", "recoded", "to_map"]

# Reading the source in every mapped task is worth it up to this many times its size in all:
# scattering reads it once, and writes and reads the working files besides.
_PUSHDOWN_READS = 2.0
_SPARK_SLOTS = 32  # of a cluster whose size nobody tells
_PER_CORE = 4  # fragments, so that while one is written another is cut


def plan(
    job: Job, progress: Progress | None = None, engine: Engine | None = None
) -> list[Fragment]:
    """The fragments that a run would have: condition and rows; no file stays behind."""
    engine = engine or engine_of(job)
    progress = progress or Display()
    run = Run(storage.WorkDir(storage.work_path(str(job.output), uuid.uuid4().hex)), _opened(job))
    try:
        if engine.remote:
            run.work.create()
            run.dataset.save(run.work)
        run.draft = engine.draft(run, _told(progress, "survey", run))
        if engine.remote:
            run.save_draft()
        counts = _counts(run, engine, progress, scatter=False)
    finally:
        run.work.remove()
    merged = merge_small(run.anonymizer, run.draft.plan, counts)
    return _fragments(run, merged, counts.rows, _disclosure(run, counts))


def partition(
    job: Job,
    *,
    work: str,
    progress: Progress | None = None,
    engine: Engine | None = None,
    made_by: str | None = None,
    slots: int | None = None,
) -> list[Fragment]:
    """The fragments of the dataset, small JSON values for the mapped tasks.

    One pass surveys the dataset and draws the sample. One more, where the survey does not tell it,
    counts the real rows against the fragments' conditions and, for ``scatter`` retrieval, routes
    them to private files. ``work`` is made anew, so that a retry starts afresh. ``made_by`` is who
    makes the release: ``DAG_ID`` or ``DAG_ID/GROUP``; None for the command line and Python.
    ``slots`` is how many fragments Airflow anonymizes at once, each in a task; by default they are
    anonymized here, or by one Spark application.

    Returns ``{"schema", "id", "where", "any_of", "rows", "work"}`` by fragment; ``where`` and
    ``any_of`` say no more of its condition than may be shown. Where one Spark application is to
    anonymize them all it is one value: their number under ``fragments``, and they themselves in the
    run's state.

    Raises JobError, HierarchyError, InputError, PrivacyError or StorageError; then nothing is left.
    """
    started = time.perf_counter()
    with _nothing_left_of_a_failure(work):
        return divide(begin(job, work, made_by, slots), progress, engine, started)


def count(
    job: Job,
    *,
    work: str,
    progress: Progress | None = None,
    made_by: str | None = None,
    slots: int | None = None,
) -> list[Fragment]:
    """As :func:`partition`, but columns are not recoded yet.

    The combinations of their values go to the working files, where
    :func:`~mondrian_ops.pipeline.specialize_part` and :func:`~mondrian_ops.pipeline.recode` find
    them. For jobs that have :func:`~mondrian_ops.pipeline.parts_to_map`.
    """
    started = time.perf_counter()
    with _nothing_left_of_a_failure(work):
        run = begin(job, work, made_by, slots)
        state = _counted(run, engine_of(job), progress)
        run.save_frequencies(run.frequencies)
        return _kept(run, {**state, "recoding": None}, started)


def begin(job: Job, work: str, made_by: str | None = None, slots: int | None = None) -> Run:
    """Check the job against its input and output, and make the working files.

    All that :func:`divide` needs is in them then, so that a machine may do it which sees neither
    the job's file nor its hierarchies. Raises as :func:`partition` does.
    """
    storage.check_ledger(job.ledger, str(job.input), str(job.output))
    storage.check_output(str(job.input), str(job.output))
    refuse_replacing(job, made_by)
    directory = storage.WorkDir(work)
    # Before all that takes long: whoever was given up for dead meanwhile finds that out. Not while
    # one publishes what is removed here.
    with storage.unpublished(str(job.output)):
        directory.create()
    directory.note_replaced(storage.standing(str(job.output)), made_by)
    run = Run(directory, _opened(job, slots))
    run.dataset.save(directory)
    return run


def divide(
    run: Run,
    progress: Progress | None = None,
    engine: Engine | None = None,
    started: float | None = None,
) -> list[Fragment]:
    """The fragments of a run that has begun; ``started`` is on the performance counter."""
    started = time.perf_counter() if started is None else started
    job = run.dataset.job
    engine = engine or engine_of(job)
    state = _counted(run, engine, progress)
    if not job.recodes_columns:
        return _kept(run, {**state, "recoding": {}}, started)
    engine.recode(run)
    return _kept(run, recoded(run, state), started)


def recoded(run: Run, state: dict[str, Any]) -> dict[str, Any]:
    """The state of a run whose recoding is chosen: what is published alike lies in one fragment.

    Or enough of it, and in fragments of no more than ``max_rows`` rows.
    """
    recoding = cast(Recoding, run.recoding)
    planned = Plan(run.draft.plan.nodes, tuple(map(tuple, state["leaves"])))
    if len(planned.fragments) == 1:
        return {**state, "recoding": recoding.told}
    frequencies = run.frequencies
    counts = planning.counts_of(run.anonymizer, planned, frequencies)
    merged, rows, split = merge_split_classes(run.anonymizer, planned, frequencies, recoding)
    fragments = _fragments(run, merged, rows, _disclosure(run, counts))
    found = _state(run, merged, fragments, state["retrieval"]["used"])
    if len(fragments) < len(planned.fragments):
        merging = (
            f"{len(planned.fragments)} fragments were merged into {len(fragments)}, so that no "
            "file holds too few of the rows that are published alike"
        )
        notes = (found["partitioning"]["note"], merging)
        found["partitioning"]["note"] = "; ".join(filter(None, notes))
    found["partitioning"]["split_classes"] = split
    return {**found, "recoding": recoding.told}


def to_map(run: Run) -> list[Fragment]:
    """The fragments of a run as its mapped tasks take them."""
    job, fragments = run.dataset.job, run.state["fragments"]
    if job.engine == "spark" and job.spark.shape == "application":
        return [_together(fragments)]
    return list(fragments)


@contextmanager
def _nothing_left_of_a_failure(work: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        storage.WorkDir(work).give_up()
        raise


def _counted(run: Run, engine: Engine, progress: Progress | None) -> dict[str, Any]:
    """What the run's state says of the source, but for the recoding."""
    progress = progress or Display()
    ledger.sketch(run.dataset.job, run.dataset.source, run.work)
    ledger.refuse(run.dataset.job, run.work)
    run.draft = engine.draft(run, _told(progress, "survey", run))
    run.save_draft()
    retrieval = _resolved_retrieval(run)
    counts = _counts(run, engine, progress, scatter=retrieval == "scatter")
    merged = merge_small(run.anonymizer, run.draft.plan, counts)
    fragments = _fragments(run, merged, counts.rows, _disclosure(run, counts))
    return _state(run, merged, fragments, retrieval)


def _counts(run: Run, engine: Engine, progress: Progress, scatter: bool) -> LeafCounts:
    """What the leaves of the plan hold; a pass over the source where the survey does not tell."""
    if not scatter:
        known = planning.known_counts(run.anonymizer, run.draft.plan, lambda: run.frequencies)
        if known is not None:
            return known
    return engine.count(run, scatter, _told(progress, "partition", run))


def _kept(run: Run, state: dict[str, Any], started: float) -> list[Fragment]:
    """Save the run's state; the fragments for its mapped tasks."""
    run.save_state({**state, "timings_s": {"partition": time.perf_counter() - started}})
    return to_map(run)


def _opened(job: Job, slots: int | None = None) -> Dataset:
    source = storage.open_source(str(job.input), job.named_columns)
    check_columns(job, source.schema.names)
    check_rows(job, source.rows)
    return Dataset(job, source, hierarchies_of(job), _room(job, slots))


def _room(job: Job, slots: int | None) -> Slots:
    """The room for fragments. A thread's costs 0.03 s, a Spark task starts in a second."""
    if slots is not None:
        return Slots(slots)
    if job.engine == "spark":
        return Slots(_SPARK_SLOTS, 1.0)
    return Slots(_PER_CORE * available_cores(), 0.15)


def _resolved_retrieval(run: Run) -> str:
    """How fragments get their rows.

    ``auto``: by Spark's shuffle where one application has them all; else by scattering, unless the
    layout lets the mapped tasks read little more than once.
    """
    job, planned = run.dataset.job, run.draft.plan
    if planned.leaves == 1:
        return "pushdown"
    if job.retrieval != "auto":
        return job.retrieval
    if job.engine == "spark" and job.spark.shape == "application":
        return "shuffle"
    orders = run.anonymizer.orders
    read = 0.0
    for number in range(len(planned.fragments)):
        read += run.dataset.source.share_read(reach_of(planned.condition(number, orders), orders))
        if read > _PUSHDOWN_READS:
            return "scatter"
    return "pushdown"


def _disclosure(run: Run, counts: LeafCounts) -> Disclosure:
    return planning.disclosure(run.anonymizer, run.draft.plan, counts)


def _fragments(
    run: Run, merged: Plan, leaf_rows: NDArray[np.int64], disclosure: Disclosure
) -> list[Fragment]:
    orders = run.anonymizer.orders
    found = []
    for number, leaves in enumerate(merged.fragments):
        condition = merged.condition(number, orders)
        found.append(
            {
                "schema": SCHEMA,
                "id": number,
                "where": disclosure.text(condition),
                "any_of": disclosure.condition(condition),
                "rows": int(leaf_rows[list(leaves)].sum()),
                "work": run.work.root,
            }
        )
    return found


def _together(fragments: list[Fragment]) -> Fragment:
    """All fragments as the work of one task."""
    return {
        "schema": SCHEMA,
        "id": 0,
        "where": f"{len(fragments)} fragments in one Spark application",
        "rows": sum(fragment["rows"] for fragment in fragments),
        "work": fragments[0]["work"],
        "fragments": len(fragments),
    }


def _state(run: Run, merged: Plan, fragments: list[Fragment], retrieval: str) -> dict[str, Any]:
    job, source = run.dataset.job, run.dataset.source
    return {
        "rows": source.rows,
        "columns": column_roles(job, source.schema.names, source.index),
        "constant": constant_note(run.draft.profile.constant),
        "cut": run.draft.cut,
        "retrieval": {"asked": job.retrieval, "used": retrieval},
        "leaves": [list(leaves) for leaves in merged.fragments],
        "fragments": fragments,
        "generalizations": {each.name: each.generalization for each in run.anonymizer.attributes},
        "partitioning": partitioning_note(
            job,
            fragments=len(fragments),
            sample_rows=run.draft.sample_rows,
            merged=run.draft.plan.leaves - len(fragments),
            reason=run.draft.reason,
            note=_note(run, fragments),
        ),
    }


def _note(run: Run, fragments: list[Fragment]) -> str:
    """What became of the number of fragments that was wanted."""
    options, wanted = run.dataset.job.partitioning, run.draft.fragments
    asked = f"{wanted} fragments were {'worthwhile' if run.draft.reason else 'asked for'}"
    planned = run.draft.plan.leaves
    largest = max(fragment["rows"] for fragment in fragments)
    if largest > options.max_rows:
        return (
            f"the largest fragment has {largest} rows, more than max_rows ({options.max_rows}): "
            f"the sample of {run.draft.sample_rows} rows could not be cut so that none has"
        )
    if planned < wanted:
        sample = f"the sample of {run.draft.sample_rows} rows"
        return f"{asked}, {sample} could be cut into {planned}"
    if planned > wanted:
        rows = run.dataset.source.rows
        why = "max_rows" if options.max_rows < rows else "a cut into several parts"
        return f"{asked}, {why} made them {planned}"
    return ""


def _told(progress: Progress, phase: str, run: Run) -> Callable[[int], None]:
    """Progress in rows."""
    done = 0

    def told(rows: int) -> None:
        nonlocal done
        done += rows
        progress(phase, done, run.dataset.source.rows)

    return told
