"""Anonymize a table in memory."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from mondrian_ops import report as reports
from mondrian_ops import stores, tables
from mondrian_ops.cut.anonymizer import columns_to_read
from mondrian_ops.data.named_types import is_text
from mondrian_ops.engines import class_samples, use_samples
from mondrian_ops.engines.memory import MemoryEngine
from mondrian_ops.engines.release_check import Counted
from mondrian_ops.engines.run import Dataset, Run
from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.job.sections import Partitioning
from mondrian_ops.phases import Phases
from mondrian_ops.pipeline.approval import Approve, approver, asks, rejected
from mondrian_ops.pipeline.checks import (
    check_columns,
    check_rows,
    hierarchies_of,
    warn_of_disclosing,
    warn_of_numbers,
    with_singled_out,
)
from mondrian_ops.pipeline.partitioning import steps
from mondrian_ops.pipeline.report_builder import Measured, Report, partitioning_note
from mondrian_ops.pipeline.wrapping_up import judged
from mondrian_ops.report.outcome import PUBLISHED
from mondrian_ops.tables.callers_table import name_of
from mondrian_ops.tables.in_memory import callers_table
from mondrian_ops.verify import requirements


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
    started = time.perf_counter()
    job = _job_in_memory(job)
    callers = callers_table(table, job.named_columns)
    columns = columns_to_read(job, callers.names)
    read = callers.read(columns)
    types = {name: kind for name, kind in job.types.items() if name in columns}
    typed = tables.in_types(read, types, job.csv)
    changed = [name for name in columns if _differ(read[name], typed[name])]
    declared = pa.schema([each for each in callers.declared if each.name not in changed])
    source = tables.MemoryTable.of(typed, callers.index, declared, types)
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
    job = _with_orders(job, typed)
    check_columns(job, source)
    warn_of_numbers(job, source)
    check_rows(job, source.rows)
    hierarchies = hierarchies_of(job)
    rows, seed = source.rows, job.partitioning.seed
    # One fragment needs no sample.
    one = Partitioning(fragments=1, sample=1 / rows, seed=seed, min_sample=1, max_rows=rows)
    run = Run(None, Dataset(replace(job, partitioning=one), source, hierarchies))
    engine = MemoryEngine(source.table, callers, changed)
    state = steps(run, engine, retrieval="memory")
    warn_of_disclosing(state.dependencies)
    if job.recodes_globally:
        with run.phases("recode"):
            engine.recode(run)
    state, run.phases = replace(state, phases=run.phases.costs()), Phases()
    divided = time.perf_counter()
    (summary,) = engine.anonymize(run, state.fragments)
    anonymized = time.perf_counter()
    released, persons = engine.released.table, engine.released.persons
    end = run.phases.laps()
    counter = requirements.counter_of(job, released.column_names, labels=run.labels)
    part = counter.add(released, persons=persons)
    count = counter.result()
    end("recount")
    sample = class_samples.sample_of(run, source.table, engine.released)
    state = with_singled_out(state, class_samples.figures_of(run, [sample]))
    end("single_out")
    of_use = use_samples.figures_of(
        run, [use_samples.sample_of(run, source.table, engine.released)]
    )
    end("use")
    measured = Measured(
        state=replace(
            state,
            partitioning=partitioning_note(
                job, fragments=1, sample_rows=0, merged=0, reason="in memory", note=""
            ),
            recoding=run.recoding.figures if run.recoding is not None else {},
            timings_s={"partition": divided - started},
        ),
        summaries=[summary],
        counted=Counted(count, [part], requirements.check(count, job, hierarchies)),
        wrap_up_s=time.perf_counter() - anonymized,
        use=of_use,
        phases=run.phases.costs(),
    )
    report = judged(job, measured, refusal="the release is refused")
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


def _with_orders(job: Job, table: pa.Table) -> Job:
    """The job with the orders of columns that are ordered categories of text.

    Not where the job says how a column is generalized, and not where a label could be read in two
    ways (`QuasiIdentifier.check`).
    """
    quasi_identifiers = [
        _ordered(quasi, table[quasi.name]) if quasi.name in table.column_names else quasi
        for quasi in job.quasi_identifiers
    ]
    return replace(job, quasi_identifiers=tuple(quasi_identifiers))


def _ordered(quasi: QuasiIdentifier, column: pa.ChunkedArray) -> QuasiIdentifier:
    kind = column.type
    if quasi.is_described or not (pa.types.is_dictionary(kind) and kind.ordered):
        return quasi
    orders = {tuple(chunk.dictionary.to_pylist()) for chunk in column.chunks}
    if len(orders) != 1 or len(min(orders)) < 2 or not is_text(kind.value_type):
        return quasi
    ordered = replace(quasi, generalization="interval", order=orders.pop())
    try:
        ordered.check("")
    except JobError:
        return quasi
    return ordered


def _job_in_memory(job: Job | Mapping[str, Any] | str | os.PathLike[str]) -> Job:
    if isinstance(job, Job):
        return job
    if isinstance(job, Mapping):
        return Job.from_dict(_by_name(job), paths_required=False)
    path = stores.resolved(os.fspath(job))
    read = Job.from_dict(stores.read_job(path), where=path, paths_required=False)
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
