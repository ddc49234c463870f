"""The three phases as plain functions; the command line, the operators and Spark call these.

`partition` surveys the dataset, plans the fragments from a sample and makes sure that each can
stand alone; `anonymize_fragment` turns one fragment into one part of the release; `wrap_up` checks
the release as written, measures it and publishes it, or refuses. Between the phases there are the
private working files of the run and small dicts.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from mondrian_ops import report as reports
from mondrian_ops import storage
from mondrian_ops.algorithms import partitioning
from mondrian_ops.algorithms.anonymizer import Anonymizer, columns_to_read, unlisted_columns
from mondrian_ops.algorithms.cut_choice import choose_cut, cut_of
from mondrian_ops.algorithms.mondrian import Cut
from mondrian_ops.core import verification
from mondrian_ops.core.criteria import KAnonymity, Privacy
from mondrian_ops.core.errors import InputError, JobError, PrivacyError, StorageError, did_you_mean
from mondrian_ops.core.hierarchy import Hierarchy
from mondrian_ops.core.job import Job
from mondrian_ops.core.plan import (
    SCHEMA,
    Plan,
    check_schema,
    condition_text,
    filter_of,
    is_exact,
    reach_of,
)
from mondrian_ops.core.survey import Survey, Surveyor
from mondrian_ops.engines import local
from mondrian_ops.progress import Display, Progress
from mondrian_ops.storage import load_job

__all__ = [
    "anonymize",
    "anonymize_fragment",
    "discard",
    "load_job",
    "partition",
    "plan",
    "run",
    "verify",
    "warm_up",
    "wrap_up",
]

Fragment = dict[str, Any]
Summary = dict[str, Any]
Report = dict[str, Any]

_SILENT = Display()
_STATE = "run.json"
_SURVEY = "survey.arrow"


def plan(job: Job, progress: Progress = _SILENT) -> list[Fragment]:
    """The fragments that a run would have: condition and rows; nothing is written."""
    found = _surveyed(job, progress)
    planned = _planned(found)
    told = _counted(progress, "partition", found.source.rows)
    counts = local.count_rows(found.anonymizer, found.source, planned, (), None, told)
    merged = _merged(found.anonymizer, planned, counts)
    return _fragments(found.anonymizer, merged, counts, work="")


def partition(job: Job, *, work: str, progress: Progress | None = None) -> list[Fragment]:
    """Phase one: the fragments of the dataset, each of which can stand alone.

    One pass surveys the dataset and draws the sample, one counts the real rows against the
    fragments' conditions and, for ``scatter`` retrieval, routes them to private files. ``work`` is
    made anew, so that a retry starts afresh.

    Returns the fragments, small JSON values for the mapped tasks: ``{"schema", "id", "where",
    "any_of", "rows", "work"}``.

    Raises JobError, HierarchyError, InputError, PrivacyError or StorageError; then nothing is left.
    """
    progress = progress or _SILENT
    started = time.perf_counter()
    storage.check_output(str(job.input), str(job.output))
    found = _surveyed(job, progress)
    directory = storage.WorkDir(work)
    directory.create()
    try:
        fragments, state = _scattered(job, found, directory, progress)
        state["timings_s"] = {"partition": time.perf_counter() - started}
        directory.write_json(_STATE, state)
        directory.write_arrow(_SURVEY, found.survey.to_table())
    except BaseException:
        directory.remove()
        raise
    return fragments


def anonymize_fragment(job: Job, fragment: Fragment) -> Summary:
    """Phase two: one fragment cut, generalized and written as one part of the release.

    Returns a small summary: ``{"id", "where", "rows", "equivalence_classes", "DP", "NCP",
    "attributes", "seconds"}``. A retry writes the same part again.
    """
    started = time.perf_counter()
    check_schema(fragment)
    directory = storage.WorkDir(fragment["work"])
    state = directory.read_json(_STATE)
    survey = Survey.from_table(directory.read_arrow(_SURVEY))
    anonymizer = Anonymizer(job, survey, _hierarchies(job), cut_of(state["cut"]))
    table = _retrieved(job, fragment, state, anonymizer, directory)
    if table.num_rows != fragment["rows"]:
        raise InputError(
            f"fragment {fragment['id']}: has {table.num_rows} rows, {fragment['rows']} were "
            "counted; the input changed while it was read, run again from the partition task"
        )
    released, summary = anonymizer.release(table)
    storage.write_part(directory.part_path(fragment["id"]), released)
    seconds = round(time.perf_counter() - started, 3)
    return {
        "id": fragment["id"],
        "where": fragment["where"],
        **summary,
        "seconds": seconds,
        "finished": time.time(),
    }


def warm_up() -> None:
    """Compile every kernel into Numba's cache, so that the first run is as fast as the others."""
    with tempfile.TemporaryDirectory() as directory:
        for values in (2, 1 << 17):  # codes of 16 and of 32 bits
            numbers = np.arange(max(values, 100))
            table = pa.table({"a": numbers, "b": (numbers % 3).astype(str), "s": numbers % 5})
            storage.write_part(os.path.join(directory, "rows.parquet"), table)
            job = {
                "input": os.path.join(directory, "rows.parquet"),
                "output": os.path.join(directory, "release"),
                "k": 20,
                "l": 2,
                "quasi_identifiers": ["a", "b"],
                "sensitive": ["s"],
                "partitioning": {"fragments": 2},
            }
            run(load_job(job))
            run(load_job(job, ["relaxed=true"]))


def wrap_up(
    job: Job, *, work: str, summaries: Sequence[Summary], progress: Progress | None = None
) -> Report:
    """Phase three: check the release as written, measure it, publish it; returns the report.

    Raises PrivacyError, and publishes nothing, when a class of the release fails; StorageError when
    a part or the working files vanished.
    """
    progress = progress or _SILENT
    started = time.perf_counter()
    directory = storage.WorkDir(work)
    state = directory.read_json(_STATE)
    if storage.published(str(job.output), directory.token):  # by an attempt that then was killed
        return reports.read(str(job.output))
    summaries = sorted(summaries, key=lambda summary: int(summary["id"]))
    lacking = len(state["leaves"]) - len({summary["id"] for summary in summaries})
    if lacking:
        raise StorageError(
            f"{lacking} of {len(state['leaves'])} fragments were not anonymized, so nothing is "
            "published; see their tasks, then run again from the partition task"
        )
    count, parts = _recounted(job, directory, summaries, progress)
    verdict = verification.check(count, job, _hierarchies(job, of_sensitive=True))
    failures = [*verdict.failures]
    if count.rows != state["rows"]:
        failures.append(f"{state['rows']} rows came in, {count.rows} are in the release")
    if failures:
        raise PrivacyError("the release is refused and not published: " + "; ".join(failures))
    for summary, part in zip(summaries, parts, strict=True):
        summary["equivalence_classes"], summary["DP"] = part.classes, part.dp
    report = _report(job, state, summaries, count, verdict, started)
    reports.write(directory.staging, report)
    storage.publish(directory.staging, str(job.output), directory.token)
    return report


def discard(work: str) -> None:
    """Remove the working files of a run; nothing happens where there are none."""
    storage.WorkDir(work).remove()


def run(job: Job, progress: Progress | None = None) -> Report:
    """All three phases here, fragments in threads; returns the report of the published release."""
    progress = progress or _SILENT
    work = storage.work_path(str(job.output), uuid.uuid4().hex)
    try:
        fragments = partition(job, work=work, progress=progress)
        summaries: list[Summary] = []
        rows = sum(fragment["rows"] for fragment in fragments)
        progress("anonymize", 0, rows)
        largest_first = sorted(fragments, key=lambda fragment: -int(fragment["rows"]))
        for summary in local.in_threads(lambda f: anonymize_fragment(job, f), largest_first):
            summaries.append(summary)
            progress("anonymize", sum(each["rows"] for each in summaries), rows)
        return wrap_up(job, work=work, summaries=summaries, progress=progress)
    finally:
        discard(work)


def verify(job: Job, release: str) -> dict[str, Any]:
    """Check any release, a directory or file, against what ``job`` asks for.

    Returns ``{"passed", "rows", "equivalence_classes", "achieved", "checked", "failures"}``.
    """
    counter = None
    for name, table in storage.read_release(release):
        counter = counter or verification.counter_of(job, table.column_names)
        counter.add(table, name)
    if counter is None:
        raise InputError(f"{release}: there is no data file to check")
    count = counter.result()
    verdict = verification.check(count, job, _hierarchies(job, of_sensitive=True))
    return {
        "passed": verdict.passed,
        "rows": count.rows,
        "equivalence_classes": count.classes,
        "achieved": verdict.achieved,
        "checked": list(verdict.checked),
        "failures": list(verdict.failures),
    }


def anonymize(
    table: Any, job: Job | Mapping[str, Any] | str | os.PathLike[str]
) -> tuple[Any, Report]:
    """Anonymize a pandas.DataFrame or pyarrow.Table in memory; the same kind comes back.

    ``job`` is a job, a mapping or a file; ``input``, ``output`` and ``partitioning`` are not used.
    The caller's table is not changed. Returns the released table and its report.

    Raises JobError, HierarchyError, InputError or PrivacyError; then nothing is released.
    """
    started = time.perf_counter()
    is_arrow = isinstance(table, pa.Table)
    _refuse_twins(list(table.column_names if is_arrow else table.columns))
    source = _without_views(table if is_arrow else _arrow_of(table))
    job = _job_in_memory(job)
    _check_columns(job, source.column_names)
    _check_rows(job, source.num_rows)
    hierarchies = _hierarchies(job)
    surveyor = Surveyor(job, source.schema, hierarchies)
    surveyor.add(source)
    survey = surveyor.finish()
    pilot = source.take(local.chosen_rows(source.num_rows, local.PILOT_ROWS, job.partitioning.seed))
    cut = choose_cut(job, survey, hierarchies, pilot)
    anonymizer = Anonymizer(job, survey, hierarchies, cut_of(cut))
    _check_attainable(anonymizer)
    read = source.select(columns_to_read(job, source.column_names))
    released, summary = anonymizer.release(read)
    surveyed = time.perf_counter()
    counter = verification.counter_of(job, released.column_names)
    part = counter.add(released)
    count = counter.result()
    verdict = verification.check(count, job, _hierarchies(job, of_sensitive=True))
    if not verdict.passed or count.rows != source.num_rows:
        raise PrivacyError("the release is refused: " + "; ".join(verdict.failures))
    state = {
        "rows": source.num_rows,
        "cut": cut,
        "columns": _column_roles(job, source.column_names),
        "retrieval": {"asked": job.retrieval, "used": "memory"},
        "generalizations": {each.name: each.generalization for each in anonymizer.attributes},
        "partitioning": _partitioning_note(job, fragments=1, sample_rows=0, merged=0, note=""),
        "timings_s": {"anonymize": surveyed - started},
    }
    summary = {"id": 0, "where": "", **summary, "equivalence_classes": part.classes, "DP": part.dp}
    report = _report(job, state, [summary], count, verdict, surveyed)
    released = _without_dictionaries(released)
    return (released if is_arrow else released.to_pandas()), report


# Phase one, step by step


@dataclass(frozen=True)
class _Surveyed:
    """What is known after the first pass."""

    survey: Survey
    anonymizer: Anonymizer
    sample: pa.Table
    source: storage.Source
    cut: dict[str, Any]

    @property
    def whole(self) -> bool:
        """Whether the sample is the whole dataset."""
        return bool(self.sample.num_rows == self.source.rows)


def _surveyed(job: Job, progress: Progress) -> _Surveyed:
    source = storage.open_source(str(job.input))
    _check_columns(job, source.schema.names)
    _check_rows(job, source.rows)
    hierarchies = _hierarchies(job)
    told = _counted(progress, "survey", source.rows)
    survey, sample, pilot = local.survey(job, source, hierarchies, told)
    cut = choose_cut(job, survey, hierarchies, pilot)
    anonymizer = Anonymizer(job, survey, hierarchies, cut_of(cut))
    _check_attainable(anonymizer)
    return _Surveyed(survey, anonymizer, sample, source, cut)


def _planned(found: _Surveyed) -> Plan:
    """The fragments as the sample shows them."""
    asked = found.anonymizer.job.partitioning
    if asked.fragments == 1:
        return partitioning.single()
    attributes = found.anonymizer.attributes
    if asked.strategy == "quantile":
        rows = found.anonymizer.encode(found.sample, Privacy(KAnonymity(1), ()))
        return partitioning.quantile(rows, attributes, asked.fragments)
    if found.whole and not found.anonymizer.job.relaxed:
        rows = found.anonymizer.encode(found.sample)
        return partitioning.multidimensional(
            rows, attributes, asked.fragments, found.anonymizer.cut
        )
    rate = found.sample.num_rows / found.source.rows
    least = max(1, round(found.anonymizer.privacy.min_class_size * rate))
    rows = found.anonymizer.encode(found.sample, Privacy(KAnonymity(least), ()))
    return partitioning.multidimensional(rows, attributes, asked.fragments, Cut("balanced"))


def _merged(anonymizer: Anonymizer, planned: Plan, counts: local.LeafCounts) -> Plan:
    """The plan with fragments that cannot stand alone merged with their neighbours."""

    def stands(leaves: Sequence[int]) -> bool:
        chosen = list(leaves)
        return anonymizer.privacy.holds(
            int(counts.rows[chosen].sum()),
            [column[chosen].sum(axis=0) for column in counts.sensitive],
            anonymizer.domains,
        )

    return partitioning.merge_small(planned, counts.rows, stands)


def _scattered(
    job: Job, found: _Surveyed, directory: storage.WorkDir, progress: Progress
) -> tuple[list[Fragment], dict[str, Any]]:
    """Count the real rows against the plan, scatter them if asked; fragments and run state."""
    planned = _planned(found)
    columns = columns_to_read(job, found.source.schema.names)
    retrieval = _resolved_retrieval(job, found, planned)
    told = _counted(progress, "partition", found.source.rows)
    if retrieval == "scatter":
        with storage.FragmentWriter(directory) as writer:
            counts = local.count_rows(
                found.anonymizer, found.source, planned, columns, writer, told
            )
    else:
        counts = local.count_rows(found.anonymizer, found.source, planned, (), None, told)
    merged = _merged(found.anonymizer, planned, counts)
    fragments = _fragments(found.anonymizer, merged, counts, directory.root)
    note = ""
    if planned.leaves < job.partitioning.fragments:
        note = (
            f"{job.partitioning.fragments} fragments were asked for, the sample of "
            f"{found.sample.num_rows} rows could be cut into {planned.leaves}"
        )
    state = {
        "rows": found.source.rows,
        "columns": _column_roles(job, found.source.schema.names),
        "read": columns,
        "cut": found.cut,
        "retrieval": {"asked": job.retrieval, "used": retrieval},
        "stamp": found.source.fingerprint(),
        "leaves": [list(leaves) for leaves in merged.fragments],
        "generalizations": {each.name: each.generalization for each in found.anonymizer.attributes},
        "partitioning": _partitioning_note(
            job,
            fragments=len(fragments),
            sample_rows=found.sample.num_rows,
            merged=planned.leaves - len(fragments),
            note=note,
        ),
    }
    return fragments, state


def _fragments(
    anonymizer: Anonymizer, planned: Plan, counts: local.LeafCounts, work: str
) -> list[Fragment]:
    found = []
    for number, leaves in enumerate(planned.fragments):
        condition = planned.condition(number, anonymizer.orders)
        found.append(
            {
                "schema": SCHEMA,
                "id": number,
                "where": condition_text(condition, anonymizer.orders),
                "any_of": condition,
                "rows": int(counts.rows[list(leaves)].sum()),
                "work": work,
            }
        )
    return found


def _resolved_retrieval(job: Job, found: _Surveyed, planned: Plan) -> str:
    """``auto``: scatter, unless the layout lets the mapped tasks read little more than once."""
    if planned.leaves == 1:
        return "pushdown"
    if job.retrieval != "auto":
        return job.retrieval
    filters = [
        reach_of(planned.condition(number, found.anonymizer.orders), found.anonymizer.orders)
        for number in range(len(planned.fragments))
    ]
    read = sum(found.source.share_read(each) for each in filters)
    return "pushdown" if read <= _PUSHDOWN_READS else "scatter"


# Reading the source in every mapped task is worth it up to this many times its size in all:
# scattering reads it once, and writes and reads the working files besides.
_PUSHDOWN_READS = 2.0


# Phase two


def _retrieved(
    job: Job,
    fragment: Fragment,
    state: Mapping[str, Any],
    anonymizer: Anonymizer,
    directory: storage.WorkDir,
) -> pa.Table:
    """The rows of a fragment."""
    if state["retrieval"]["used"] == "scatter":
        leaves = state["leaves"][fragment["id"]]
        return pa.concat_tables([storage.read_fragment(directory, leaf) for leaf in leaves])
    source = storage.open_source(str(job.input))
    if source.fingerprint() != state["stamp"]:
        raise InputError(
            f"{job.input}: changed since the run was planned; run again from the partition task"
        )
    condition = fragment["any_of"], anonymizer.orders
    batches = source.batches(
        state["read"],
        reach_of(*condition),
        exact=None if is_exact(*condition) else filter_of(*condition),
    )
    schema = pa.schema([source.schema.field(name) for name in state["read"]])
    return pa.Table.from_batches(batches, schema)


# Phase three


def _recounted(
    job: Job, directory: storage.WorkDir, summaries: Sequence[Summary], progress: Progress
) -> tuple[verification.ReleaseCount, list[verification.PartCount]]:
    """The release counted from its files, whole and part by part."""
    counter = None
    parts = []
    paths = [directory.part_path(summary["id"]) for summary in summaries]
    stray = {*os.listdir(directory.staging)} - {os.path.basename(path) for path in paths}
    stray -= {reports.JSON_NAME, reports.HTML_NAME, "_SUCCESS"}  # of an attempt before
    if stray:
        raise StorageError(
            f"{directory.staging}: holds {len(stray)} file(s) of no fragment; run again from the "
            "partition task"
        )
    for summary, path in zip(summaries, paths, strict=True):
        if not os.path.exists(path):
            raise StorageError(
                f"part of fragment {summary['id']}: vanished between tasks; run again from the "
                "partition task"
            )
    # Parts are read ahead in threads and counted here, in order.
    for name, table in local.in_threads(_read_part, paths):
        counter = counter or verification.counter_of(job, table.column_names)
        parts.append(counter.add(table, name))
        progress("wrap_up", len(parts), len(summaries))
    if counter is None:
        raise StorageError("there are no fragments to wrap up; run again from the partition task")
    return counter.result(), parts


def _read_part(path: str) -> tuple[str, pa.Table]:
    ((name, table),) = storage.read_release(path)
    return name, table


def _report(
    job: Job,
    state: Mapping[str, Any],
    summaries: Sequence[Summary],
    count: verification.ReleaseCount,
    verdict: verification.Verdict,
    wrap_up_started: float,
) -> Report:
    timings = dict(state["timings_s"])
    finished = [summary["finished"] for summary in summaries if "finished" in summary]
    if finished:
        began = min(s["finished"] - s["seconds"] for s in summaries)
        timings["anonymize"] = max(finished) - began
    timings["wrap_up"] = time.perf_counter() - wrap_up_started
    notes = [state["partitioning"]["note"]] if state["partitioning"]["note"] else []
    return reports.build(
        job=job.to_dict(),
        rows={"input": state["rows"], "published": count.rows, "suppressed": 0},
        class_sizes=count.histogram,
        achieved=verdict.achieved,
        verification={
            "passed": verdict.passed,
            "checked": list(verdict.checked),
            "failures": list(verdict.failures),
            "files": len(summaries),
        },
        summaries=summaries,
        columns=state["columns"],
        generalizations=state["generalizations"],
        partitioning=state["partitioning"],
        cut=state["cut"],
        retrieval=state["retrieval"],
        timings_s=timings,
        notes=notes,
    )


# What the phases share


def _hierarchies(job: Job, of_sensitive: bool = False) -> dict[str, Hierarchy]:
    """The hierarchies that the job names, by column; ``of_sensitive``: of those columns only."""
    files = dict(job.sensitive_hierarchy)
    if not of_sensitive:
        files |= {q.name: q.hierarchy for q in job.quasi_identifiers if q.hierarchy is not None}
    return {
        column: storage.read_hierarchy(storage.find_hierarchy(name, job.base_dir))
        for column, name in files.items()
    }


def _check_columns(job: Job, names: Sequence[str]) -> None:
    roles = {
        "identifiers": job.identifiers,
        "quasi_identifiers": job.quasi_identifier_names,
        "sensitive": job.sensitive,
    }
    for role, columns in roles.items():
        for column in columns:
            if column not in names:
                raise JobError(
                    f"{role}: the input has no column {column!r}{did_you_mean(column, names)}"
                )
    for name in job.quasi_identifier_names if job.interval_style == "bounds" else ():
        for taken in {f"{name}_min", f"{name}_max"} & {*columns_to_read(job, list(names))}:
            raise JobError(
                f"interval_style: {name!r} would be published as {taken!r}, a name that the input "
                "has already; rename that column, drop it, or use interval_style: text"
            )


def _check_rows(job: Job, rows: int) -> None:
    if rows == 0:
        raise InputError("the input has no rows; nothing can be anonymized")
    if rows < job.k:
        raise PrivacyError(
            f"k: the input has {rows} rows, fewer than k = {job.k}; no release of it can be "
            "k-anonymous, lower k or wait for more rows"
        )


def _check_attainable(anonymizer: Anonymizer) -> None:
    """Refuse what the dataset as a whole cannot satisfy: then no part of it could."""
    for domain in anonymizer.domains:
        if anonymizer.job.l is not None and domain.distinct < anonymizer.job.l:
            raise PrivacyError(
                f"l: the sensitive column {domain.name!r} has {domain.distinct} distinct value(s), "
                f"fewer than l = {anonymizer.job.l:g}; lower l or choose another column"
            )
    counts = [domain.counts for domain in anonymizer.domains]
    if not anonymizer.privacy.holds(anonymizer.survey.rows, counts, anonymizer.domains):
        asked = "; ".join(anonymizer.privacy.describe())
        raise PrivacyError(
            f"the dataset as one class does not satisfy what is asked ({asked}), so no release of "
            "it can; ask for less"
        )


def _column_roles(job: Job, names: Sequence[str]) -> dict[str, Any]:
    return {
        "identifiers": list(job.identifiers),
        "identifier_policy": job.identifier_policy,
        "quasi_identifiers": list(job.quasi_identifier_names),
        "sensitive": list(job.sensitive),
        "unlisted": unlisted_columns(job, list(names)),
        "unlisted_policy": job.unlisted,
    }


def _partitioning_note(
    job: Job, *, fragments: int, sample_rows: int, merged: int, note: str
) -> dict[str, Any]:
    return {
        "strategy": job.partitioning.strategy,
        "asked": job.partitioning.fragments,
        "fragments": fragments,
        "sample_rows": sample_rows,
        "merged": merged,
        "note": note,
    }


def _job_in_memory(job: Job | Mapping[str, Any] | str | os.PathLike[str]) -> Job:
    if isinstance(job, Job):
        return job
    if isinstance(job, Mapping):
        return Job.from_dict(job, paths_required=False)
    path = os.fspath(job)
    found = Job.from_dict(storage.read_job(path), where=path, paths_required=False)
    return replace(found, base_dir=os.path.dirname(os.path.abspath(path)))


def _refuse_twins(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"column {name!r} is there twice; rename one of the two")


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


def _counted(progress: Progress, phase: str, total: int) -> Callable[[int], None]:
    """Progress in rows."""
    done = 0

    def told(rows: int) -> None:
        nonlocal done
        done += rows
        progress(phase, done, total)

    return told
