"""What a program calls: a run as a whole, its fragments one by one, a table in memory, a check."""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa

from mondrian_ops import storage
from mondrian_ops.core.errors import ApprovalError, InputError, JobError
from mondrian_ops.core.job import Job, Partitioning
from mondrian_ops.engines import Engine, engine_of
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.memory import MemoryEngine, TableSource
from mondrian_ops.engines.run import Dataset, Run
from mondrian_ops.pipeline.approval import Approve, approved, asks
from mondrian_ops.pipeline.checks import check_columns, check_rows, hierarchies_of
from mondrian_ops.pipeline.partition import partition, steps
from mondrian_ops.pipeline.report_builder import Report, partitioning_note
from mondrian_ops.pipeline.wrap_up import judged, wrap_up
from mondrian_ops.progress import Display, Progress

__all__ = [
    "anonymize",
    "anonymize_all",
    "anonymize_fragment",
    "discard",
    "give_up",
    "run",
    "verify",
]


_ROWS_ONLY = (
    "k counts rows here: a release does not say whose rows they are, its persons were counted "
    "before it was published (see verification in its report)"
)


def discard(work: str) -> None:
    """Remove the working files of a run; nothing happens where there are none."""
    storage.WorkDir(work).remove()


def give_up(work: str) -> None:
    """Remove the working files, unless another attempt at the run has made them anew meanwhile."""
    storage.WorkDir(work).give_up()


def run(
    job: Job,
    progress: Progress | None = None,
    engine: Engine | None = None,
    approve: Approve | None = None,
) -> Report:
    """All three phases here, by the job's engine; returns the report of the published release.

    ``approve`` is asked about a release that needs approval: with its report, for the name of who
    approves it. Raises ApprovalError where that is nobody, and before any work where there is
    nobody to ask.
    """
    if job.require_approval and approve is None:
        raise ApprovalError(
            "require_approval: there is nobody to ask; pass approve=, or run the job in Airflow"
        )
    progress = progress or Display()
    engine = engine or engine_of(job)
    work = storage.work_path(str(job.output), uuid.uuid4().hex)
    try:
        partition(job, work=work, progress=progress, engine=engine)
        return wrap_up(
            job,
            work=work,
            summaries=anonymize_all(work, engine, progress),
            progress=progress,
            approve=approve,
        )
    finally:
        discard(work)


def anonymize_fragment(fragment: Fragment, engine: Engine | None = None) -> Summary:
    """One fragment cut, generalized and written as one part of the release.

    A retry keeps the part that is there. Without an ``engine`` it is the job's, on one core: a
    worker that runs several tasks has no more for each.

    Raises InputError where the input changed since it was counted, StorageError where the working
    files vanished.
    """
    run = _entered(fragment.work)
    engine = engine or engine_of(run.dataset.job, cores=1)
    (summary,) = engine.anonymize(run, [fragment])
    return summary


def anonymize_all(
    work: str, engine: Engine | None = None, progress: Progress | None = None
) -> list[Summary]:
    """All fragments of a run, as :func:`anonymize_fragment` does one."""
    run = _entered(work)
    engine, progress = engine or engine_of(run.dataset.job), progress or Display()
    state, summaries = run.state, list[Summary]()
    progress("anonymize", 0, state.rows)
    for summary in engine.anonymize(run, state.fragments):
        summaries.append(summary)
        progress("anonymize", sum(each.rows for each in summaries), state.rows)
    return summaries


def _entered(work: str) -> Run:
    run = Run(storage.WorkDir.attach(work))
    run.dataset  # noqa: B018 - where the working files cannot be seen, say so before all else
    return run


def verify(job: Job, release: str) -> dict[str, Any]:
    """Check any release, a directory or file, against what ``job`` asks for.

    Returns ``{"passed", "rows", "equivalence_classes", "achieved", "checked", "failures",
    "notes"}``. Where the job counts persons, a release does not hold whose rows its rows are: they
    are counted, and a note says so.
    """
    from mondrian_ops.core import verification

    counter = None
    for name, batches in storage.read_release(release):
        first = next(batches)
        counter = counter or verification.counter_of(job, first.schema.names, rows_only=True)
        counter.add(chain([first], batches), name)
    if counter is None:
        raise InputError(f"{release}: there is no data file to check")
    count = counter.result()
    hierarchies = hierarchies_of(job, of_sensitive=True)
    verdict = verification.check(count, job, hierarchies, rows_only=True)
    notes = [_ROWS_ONLY] if job.entity_id is not None else []
    return {
        "passed": verdict.passed,
        "rows": count.rows,
        "equivalence_classes": count.classes,
        "achieved": verdict.achieved,
        "checked": list(verdict.checked),
        "failures": list(verdict.failures),
        "notes": notes,
    }


def anonymize(
    table: Any,
    job: Job | Mapping[str, Any] | str | os.PathLike[str],
    approve: Approve | None = None,
) -> tuple[Any, Report]:
    """Anonymize a pandas.DataFrame or pyarrow.Table in memory; the same kind comes back.

    ``job`` is a job, a mapping or a file; ``input``, ``output`` and ``partitioning`` are not used.
    The caller's table is not changed. Returns the released table and its report. ``approve`` is
    asked about a release that needs approval, with its report: it returns who approves, or None.

    Raises JobError, HierarchyError, InputError, PrivacyError or ApprovalError; then nothing is
    released.
    """
    from mondrian_ops.core import verification

    started = time.perf_counter()
    is_arrow = isinstance(table, pa.Table)
    _refuse_twins(list(table.column_names if is_arrow else table.columns))
    job = _job_in_memory(job)
    source = TableSource.of(*_data_of(table, job))
    if job.ledger is not None:
        raise JobError(
            "ledger: a table in memory is not published; remove it, or run the job on files"
        )
    check_columns(job, source.schema.names)
    check_rows(job, source.rows)
    hierarchies = hierarchies_of(job)
    run = Run(None, Dataset(_undivided(job, source.rows), source, hierarchies))
    engine = MemoryEngine(source.table)
    state = steps(run, engine, retrieval="memory")
    if job.recodes_columns:
        engine.recode(run)
    divided = time.perf_counter()
    (summary,) = engine.anonymize(run, state.fragments)
    anonymized = time.perf_counter()
    released, _, persons = engine.released
    counter = verification.counter_of(job, released.column_names)
    part = counter.add(released, persons=persons)
    count = counter.result()
    report = judged(
        job,
        replace(
            state,
            partitioning=partitioning_note(
                job, fragments=1, sample_rows=0, merged=0, reason="in memory", note=""
            ),
            recoding=run.recoding.told if run.recoding is not None else {},
            timings_s={"partition": divided - started},
        ),
        [summary],
        verification.check(count, job, hierarchies),
        count,
        [part],
        started=anonymized,
        refusal="the release is refused",
    )
    _approve(job, report, approve)
    released = _without_dictionaries(released)
    return (released if is_arrow else released.to_pandas()), report


def _undivided(job: Job, rows: int) -> Job:
    """The job with one fragment, for which no sample is needed."""
    seed = job.partitioning.seed
    one = Partitioning(fragments=1, sample=1 / rows, seed=seed, min_sample=1, max_rows=rows)
    return replace(job, partitioning=one)


def _approve(job: Job, report: Report, approve: Approve | None) -> None:
    """Raise ApprovalError where the table may not be handed out."""
    if not asks(job, report):
        return
    by = approve(report) if approve is not None else None
    if by is None:
        raise ApprovalError(
            "the release needs an approval and got none; pass approve=, which is asked with its "
            "report for the name of who approves it"
        )
    report["approval"] = approved(by)


def _job_in_memory(job: Job | Mapping[str, Any] | str | os.PathLike[str]) -> Job:
    if isinstance(job, Job):
        return job
    if isinstance(job, Mapping):
        return Job.from_dict(job, paths_required=False)
    path = os.fspath(job)
    found = Job.from_dict(storage.read_job(path), where=path, paths_required=False)
    return replace(found, base_dir=os.path.dirname(os.path.abspath(path)))


def _refuse_twins(names: Sequence[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise InputError(f"duplicate column {name!r}; rename one of the two")


def _data_of(table: Any, job: Job) -> tuple[pa.Table, list[str]]:
    """The columns of the data, and those of a pandas index that are left out."""
    others: list[str] = []
    if not isinstance(table, pa.Table):
        frame, others = _with_named_levels(table, job)
        table = _arrow_of(frame)
    index = storage.index_columns(table.schema)
    names, left_out = storage.without_index(table.column_names, index, job.named_columns)
    return _without_views(table.select(names)), [*others, *left_out]


def _with_named_levels(frame: Any, job: Job) -> tuple[Any, list[str]]:
    """The frame, with the levels of its index that the job names as columns; the other levels."""
    levels = [each for each in frame.index.names if isinstance(each, str)]
    levels = [name for name in levels if name not in frame.columns]
    named = [name for name in levels if name in job.named_columns]
    _refuse_twins(named)
    if named:
        frame = frame.reset_index(level=named)
    return frame, [name for name in levels if name not in named]


def _without_views(table: pa.Table) -> pa.Table:
    """The table without metadata, and without string views, which Arrow can hardly compute with."""
    fields = [
        pa.field(each.name, pa.string() if pa.types.is_string_view(each.type) else each.type)
        for each in table.schema
    ]
    return table.replace_schema_metadata().cast(pa.schema(fields))


def _arrow_of(frame: Any) -> pa.Table:
    """A pandas.DataFrame as a table; raises InputError, which tells no value, where that fails."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        for name in frame.columns:
            try:
                pa.array(frame[name], from_pandas=True)
            except pa.ArrowException:
                raise InputError(
                    f"column {name!r}: its values are of several types, or of one that Arrow does "
                    "not know; give it one type"
                ) from None
        raise


def _without_dictionaries(table: pa.Table) -> pa.Table:
    """Labels as plain text: what a caller who never saw our files expects."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table[at].cast(field.type.value_type))
    return table
