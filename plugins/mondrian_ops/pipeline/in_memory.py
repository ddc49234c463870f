"""Anonymizing a table in memory, without files, engine or fragments."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from mondrian_ops import storage
from mondrian_ops.algorithms.anonymizer import Anonymizer, columns_to_read
from mondrian_ops.algorithms.planning import (
    PILOT_ROWS,
    check_attainable,
    check_persons,
    chosen_rows,
)
from mondrian_ops.algorithms.policy_selection import choose_policy, policy_of
from mondrian_ops.algorithms.recoding import choose_recoding
from mondrian_ops.core.entities import entities_of
from mondrian_ops.core.errors import ApprovalError, InputError, JobError, PrivacyError
from mondrian_ops.core.job import Job
from mondrian_ops.core.profile import Profiler
from mondrian_ops.engines.cores import available_cores
from mondrian_ops.engines.local import in_threads
from mondrian_ops.pipeline.approval import Approve, approved, asks, judge
from mondrian_ops.pipeline.assembly import Report, assembled, partitioning_note
from mondrian_ops.pipeline.checks import (
    check_columns,
    check_rows,
    column_roles,
    constant_note,
    hierarchies_of,
    lost_rows,
)

__all__ = ["anonymize"]


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
    source, index = _data_of(table, job)
    if job.ledger is not None:
        raise JobError(
            "ledger: a table in memory is not published; remove it, or run the job on files"
        )
    check_columns(job, source.column_names)
    check_rows(job, source.num_rows)
    hierarchies = hierarchies_of(job)
    profiler = Profiler(job, source.schema, hierarchies)
    profiler.add(source)
    profile = profiler.finish()
    pilot = source.take(chosen_rows(source.num_rows, PILOT_ROWS, job.partitioning.seed))
    cut = choose_policy(job, profile, hierarchies, pilot)
    anonymizer = Anonymizer(job, profile, hierarchies, policy_of(cut))
    check_attainable(anonymizer)
    if job.entity_id is not None:
        persons, _ = entities_of(job.entity_id, source[job.entity_id])
        check_persons(job, len(persons.counts))
    read = source.select(columns_to_read(job, source.column_names))
    recoding = None
    if profiler.combinations is not None:
        frequencies = anonymizer.frequencies(profiler.combinations)
        recoding = choose_recoding(anonymizer, frequencies, in_parallel=in_threads)
    released, summary, persons_of_rows = anonymizer.release(read, recoding, available_cores())
    profiled = time.perf_counter()
    counter = verification.counter_of(job, released.column_names)
    part = counter.add(released, persons=persons_of_rows)
    count = counter.result()
    verdict = verification.check(count, job, hierarchies)
    failures = (
        *verdict.failures,
        *lost_rows(job, source.num_rows, count.rows, summary["suppressed"]),
    )
    verdict = replace(verdict, passed=not failures, failures=failures)
    state = {
        "rows": source.num_rows,
        "constant": constant_note(profile.constant),
        "cut": cut,
        "recoding": recoding.told if recoding is not None else {},
        "columns": column_roles(job, source.column_names, index),
        "retrieval": {"asked": job.retrieval, "used": "memory"},
        "generalizations": {each.name: each.generalization for each in anonymizer.attributes},
        "partitioning": partitioning_note(
            job, fragments=1, sample_rows=0, merged=0, reason="in memory", note=""
        ),
        "timings_s": {"anonymize": profiled - started},
        "made_by": None,
    }
    summary = {"id": 0, "where": "", **summary, "equivalence_classes": part.classes, "DP": part.dp}
    report = assembled(job, state, [summary], count, verdict, profiled)
    if failures:
        raise PrivacyError("the release is refused: " + "; ".join(failures), report)
    _decide(job, report, approve)
    released = _without_dictionaries(released)
    return (released if is_arrow else released.to_pandas()), report


def _decide(job: Job, report: Report, approve: Approve | None) -> None:
    """Raise PrivacyError or ApprovalError where the table may not be handed out."""
    judge(job, report)
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
            raise InputError(f"column {name!r} is there twice; rename one of the two")


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
