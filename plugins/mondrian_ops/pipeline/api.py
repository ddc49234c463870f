"""The calls of a program: a run as a whole, fragment by fragment, on a table; a check."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from mondrian_ops import report as reports
from mondrian_ops import series, storage
from mondrian_ops.algorithms.anonymizer import columns_to_read
from mondrian_ops.core.errors import ApprovalError, InputError, JobError
from mondrian_ops.core.job import Job
from mondrian_ops.core.job_sections import Partitioning
from mondrian_ops.engines import Engine, engine_of
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.local import MemoryEngine, TableSource
from mondrian_ops.engines.run import Dataset, Run
from mondrian_ops.engines.tables_in_memory import callers_table, name_of
from mondrian_ops.pipeline.approval import Approve, approver, asks, rejected
from mondrian_ops.pipeline.checks import (
    check_columns,
    check_rows,
    hierarchies_of,
    warn_of_undone,
)
from mondrian_ops.pipeline.partition import partition, steps
from mondrian_ops.pipeline.report_builder import Report, partitioning_note
from mondrian_ops.pipeline.wrap_up import judged, wrap_up
from mondrian_ops.progress import Display, Progress
from mondrian_ops.report.outcome import PUBLISHED

__all__ = [
    "anonymize",
    "anonymize_all",
    "anonymize_fragment",
    "discard",
    "run",
    "verify",
    "verify_series",
]


_ROWS_ONLY = (
    "k counts rows here, because a release does not tell which rows belong to one person; the "
    "persons were counted before publication (see verification in the release's report)"
)

_NO_BOUNDARIES = (
    "the catalogue does not know this release as a night of a series, so its intervals were not "
    "compared with the boundaries of one"
)


def discard(work: str) -> None:
    """Remove the working files of a run; nothing happens where there are none."""
    storage.WorkDir(work).remove()


def run(
    job: Job,
    progress: Progress | None = None,
    engine: Engine | None = None,
    approve: Approve | None = None,
) -> Report:
    """All three phases here, by the job's engine; returns the report of the published release.

    ``approve`` is called with the report of a release that needs approval, and returns the name of
    the approver, or None. Raises ApprovalError where nobody approves, and before any work where
    ``require_approval`` is set and ``approve`` is not.
    """
    if job.require_approval and approve is None:
        raise ApprovalError(
            "require_approval: nobody can be asked; pass approve=, or run the job in Airflow"
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
            engine=engine,
        )
    finally:
        discard(work)


def anonymize_fragment(fragment: Fragment, engine: Engine | None = None) -> Summary:
    """Cut and generalize one fragment, and write it as one part of the release.

    A retry keeps a part that is written. Without an ``engine`` the job's is used, on one core,
    since a worker runs several tasks at once.

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
    summaries: list[Summary] = []
    progress("anonymize", 0, run.state.rows)
    for summary in engine.anonymize(run, run.state.fragments):
        summaries.append(summary)
        progress("anonymize", sum(each.rows for each in summaries), run.state.rows)
    return summaries


def _entered(work: str) -> Run:
    run = Run(storage.WorkDir.attach(work))
    run.dataset  # noqa: B018 - raises StorageError where the working files cannot be read
    return run


def verify(job: Job, release: str) -> dict[str, Any]:
    """Check any release, a directory or file, against the criteria of ``job``.

    Returns ``{"passed", "rows", "equivalence_classes", "achieved", "checked", "failures",
    "notes"}``. Where the job counts persons, k counts rows instead, since a release does not tell
    which rows belong to one person; a note says so.
    """
    from mondrian_ops.core import verification

    counter = None
    with tempfile.TemporaryFile() as spill:
        for file in storage.read_release(release):
            counter = counter or verification.counter_of(
                job, file.columns, rows_only=True, spill=spill
            )
            counter.add(file.batches(counter.columns), file.name, columns=file.columns)
        if counter is None:
            raise InputError(f"{release}: there is no data file to check")
        count = counter.result()
        hierarchies = hierarchies_of(job, of_sensitive=True)
        boundaries = None
        if job.series is not None and job.series.boundaries == "stable":
            boundaries = series.boundaries_of(release)
        verdict = verification.check(count, job, hierarchies, rows_only=True, boundaries=boundaries)
    verdict = series.without_counterfeits(job, release, verdict, _counterfeits_of(job, release))
    notes = [_ROWS_ONLY] if job.entity_id is not None else []
    if job.series is not None and job.series.boundaries == "stable" and boundaries is None:
        notes.append(_NO_BOUNDARIES)
    return {
        "passed": verdict.passed,
        "rows": count.rows,
        "equivalence_classes": count.classes,
        "achieved": verdict.achieved,
        "checked": list(verdict.checked),
        "failures": list(verdict.failures),
        "notes": notes,
    }


def _counterfeits_of(job: Job, release: str) -> int | None:
    """How many rows of the release are made up, by its report; None where that is not known."""
    report = storage.report_of(release)
    if report is None:
        return None if job.makes_up else 0
    try:
        return int(report["series"]["people"]["counterfeits"])
    except (KeyError, TypeError, ValueError):  # it is of no night whose rows may be made up
        return 0


def verify_series(job: Job, release: str) -> dict[str, Any]:
    """Attack all releases of a series at once; ``release``: the output of any of its nights.

    Returns ``{"passed", "nights", "failures", "not_looked_at", "notes"}``. It passes if nobody is
    left with less than the job says, nothing was changed, and each night could be looked at.

    Raises JobError where the job does not say who is followed, or is of other terms than the
    series; StorageError where the catalogue has no such series.
    """
    from mondrian_ops.series.attack import attack

    found = attack(job, release, hierarchies_of(job))
    return {
        "passed": not (found.failures or found.unseen),
        "nights": [night._asdict() for night in found.nights],
        "failures": found.failures,
        "not_looked_at": found.unseen,
        "notes": found.notes,
    }


def anonymize(
    table: Any,
    job: Job | Mapping[str, Any] | str | os.PathLike[str],
    approve: Approve | None = None,
) -> tuple[Any, Report]:
    """Anonymize a table in memory; the same kind comes back.

    ``table`` is a pandas.DataFrame, a polars.DataFrame or LazyFrame, a DuckDB relation, a
    pyarrow.Table, RecordBatch or RecordBatchReader, or anything else that exports Arrow, which
    comes back as a pyarrow.Table. It is not changed. Columns that are published as they are keep
    their types. The rows that come back are those that were checked, in the form in which they come
    back. ``job`` is a job, a mapping or a file; ``input``, ``output`` and ``partitioning`` are not
    used.

    Returns the released table and its report. ``approve`` is called with the report of a release
    that needs approval, and returns the approver, or None.

    Raises JobError, HierarchyError, InputError, PrivacyError or ApprovalError; then nothing is
    released.
    """
    from mondrian_ops.core import verification

    started = time.perf_counter()
    job = _job_in_memory(job)
    callers = callers_table(table, job.named_columns)
    columns = columns_to_read(job, callers.names)
    read = callers.read(columns)
    types = {name: kind for name, kind in job.types.items() if name in columns}
    typed = storage.in_types(read, types, job.csv)
    changed = [name for name in columns if _differ(read[name], typed[name])]
    declared = pa.schema([each for each in callers.declared if each.name not in changed])
    source = replace(TableSource.of(typed, callers.index, declared), types=types)
    if job.compares_people:
        raise JobError(
            "overlap: a release in memory is not recorded in the catalogue; remove overlap, or run "
            "the job on files"
        )
    if job.series is not None:
        raise JobError(
            "series: a table in memory cannot be a night of a series; remove series, or run the "
            "job on files"
        )
    if job.schema == "keep":
        raise JobError(
            "schema: a table in memory is no drop of a dataset, so there is no last release to "
            "compare it with; remove schema, or run the job on files"
        )
    check_columns(job, source)
    check_rows(job, source.rows)
    hierarchies = hierarchies_of(job)
    rows, seed = source.rows, job.partitioning.seed
    # One fragment needs no sample.
    one = Partitioning(fragments=1, sample=1 / rows, seed=seed, min_sample=1, max_rows=rows)
    run = Run(None, Dataset(replace(job, partitioning=one), source, hierarchies))
    engine = MemoryEngine(source.table, callers, changed)
    state = steps(run, engine, retrieval="memory")
    warn_of_undone(state)
    if job.recodes_columns:
        engine.recode(run)
    divided = time.perf_counter()
    (summary,) = engine.anonymize(run, state.fragments)
    anonymized = time.perf_counter()
    released, persons = engine.released.table, engine.released.persons
    counter = verification.counter_of(job, released.column_names, labels=run.labels)
    part = counter.add(released, persons=persons)
    count = counter.result()
    report = judged(
        job,
        replace(
            state,
            partitioning=partitioning_note(
                job, fragments=1, sample_rows=0, merged=0, reason="in memory", note=""
            ),
            recoding=run.recoding.figures if run.recoding is not None else {},
            timings_s={"partition": divided - started},
        ),
        [summary],
        verification.check(count, job, hierarchies),
        count,
        [part],
        started=anonymized,
        refusal="the release is refused",
    )
    by = approver(job, report, approve)
    if by is None and asks(job, report):
        raise rejected(
            report,
            "the release needs an approval and got none; pass approve=, a function that gets the "
            "report and returns the name of the approver",
        )
    decision = None if by is None else reports.decided("approved", by)
    reports.conclude(report, PUBLISHED, decision=decision)
    return engine.returned, report


def _job_in_memory(job: Job | Mapping[str, Any] | str | os.PathLike[str]) -> Job:
    if isinstance(job, Job):
        return job
    if isinstance(job, Mapping):
        return Job.from_dict(_by_name(job), paths_required=False)
    path = storage.resolved(os.fspath(job))
    read = Job.from_dict(storage.read_job(path), where=path, paths_required=False)
    return replace(read, base_dir=os.path.dirname(os.path.abspath(path)))


def _by_name(job: Mapping[str, Any]) -> dict[str, Any]:
    """The job with names of columns in place of labels that are no text, such as numbers."""
    named = dict(job)
    for role in ("identifiers", "quasi_identifiers", "sensitive"):
        columns: Any = named.get(role)
        columns = columns.tolist() if hasattr(columns, "tolist") else columns
        if isinstance(columns, list | tuple):
            named[role] = [_name(column) for column in columns]
    if "entity_id" in named:
        named["entity_id"] = _name(named["entity_id"])
    return named


def _name(column: Any) -> Any:
    if isinstance(column, Mapping) and "name" in column:
        return {**column, "name": _name(column["name"])}
    is_other = column is None or isinstance(column, str | bytes | bool)
    is_label = isinstance(column, Hashable) and not is_other
    return name_of(column) if is_label else column


def _differ(read: pa.ChunkedArray, typed: pa.ChunkedArray) -> bool:
    """Whether the job names another type for a column, or texts in it that mean a missing value."""
    return bool(read.type != typed.type or read.null_count != typed.null_count)
