"""Phase one: divide a dataset into fragments, each of which satisfies the criteria on its own.

:func:`steps` profiles the source, plans on a sample, counts the real rows, merges fragments that
are too small, and describes the rest. The other functions handle working files and timings.
:func:`parts_to_map`, :func:`specialize_part` and :func:`recode` are for recoding in tasks of its
own: the first phase part by part, then the decision for all rows.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, cast

from mondrian_ops import publish, series, tables
from mondrian_ops.cores import available_cores
from mondrian_ops.cut import planning
from mondrian_ops.cut.anonymizer import columns_to_read
from mondrian_ops.cut.plan import Plan
from mondrian_ops.cut.planning import LeafCounts, Slots
from mondrian_ops.cut.recoding import Recoding
from mondrian_ops.cut.recoding_search import choose_recoding, first_phase_parts, two_phase
from mondrian_ops.cut.small_fragments import merge_small, merge_split_classes
from mondrian_ops.data.disclosing_columns import confirmed, shown_in_sets
from mondrian_ops.data.named_types import name_of
from mondrian_ops.engines import Engine, RowsSeen, StepwiseEngine, engine_of
from mondrian_ops.engines.handover import Fragment, Part, PartSummary, RunState
from mondrian_ops.engines.run import Dataset, Run
from mondrian_ops.errors import UnattainableError
from mondrian_ops.generalize.resolving import notes_on_open_ends
from mondrian_ops.job.job import Job
from mondrian_ops.phases import Phases
from mondrian_ops.pipeline.checks import (
    check_rows,
    column_roles,
    constant_note,
    hierarchies_of,
    open_input,
    refuse_disclosing,
    warn_of_disclosing,
    warn_of_numbers,
)
from mondrian_ops.pipeline.replacement import refuse_replacing
from mondrian_ops.pipeline.report_builder import partitioning_note
from mondrian_ops.progress import Display, Progress

# Mapped tasks may read up to this many times the source in all: scattering reads it once, and
# writes and reads the working files besides.
_PUSHDOWN_READS = 2.0
_SPARK_SLOTS = 32  # for a cluster of unknown size
_PER_CORE = 4  # fragments, so that one is cut while another is written


def partition(
    job: Job,
    *,
    work: str,
    progress: Progress | None = None,
    engine: Engine | None = None,
    made_by: str | None = None,
    owner: publish.Owner | None = None,
    slots: int | None = None,
    recode: bool = True,
    requested: Mapping[str, str | None] | None = None,
    phases: Phases | None = None,
) -> list[Fragment]:
    """The fragments of the dataset, for the mapped tasks.

    ``work`` is made anew, so that a retry starts afresh. ``made_by`` is who makes the release:
    ``DAG_ID`` or ``DAG_ID/GROUP``; None for the command line and Python. ``requested``: who
    asked for it, as Airflow says (``requested_by``, ``run_type``). ``owner`` is the run in Airflow
    that ``work`` belongs to. ``slots`` is how many fragments Airflow anonymizes at once,
    each in a task; by default they are anonymized here, or by one Spark application. Where one
    application anonymizes all, one value stands for them. ``phases`` measures what this process
    does, and may have measured its start.

    Without ``recode``, the combinations of the columns' values go to the working files, for
    :func:`specialize_part` and :func:`recode`. That is for jobs that have :func:`parts_to_map`.

    Raises JobError, HierarchyError, InputError, PrivacyError or StorageError; then nothing is left.
    """
    started, key, phases = time.perf_counter(), None, phases or Phases()
    if job.compares_people:
        from mondrian_ops.pipeline import overlap_check

        key = overlap_check.key_of(job)
    shared: dict[str, Any] = {"started": started, "people_key": key, "phases": phases}
    divided = partial(divide, progress=progress, recode=recode, **shared)
    engine = engine or engine_of(job)

    def begun() -> Run:
        with phases("open"):
            return begin(job, work, made_by, slots, owner, requested)

    run = engine.partition(work, begun, divided)
    if job.compares_people:
        try:
            overlap_check.refuse(job, run.work)
        except BaseException:
            run.work.give_up()
            raise
    warn_of_disclosing(run.state.dependencies)
    return _to_map(run)


def plan(
    job: Job, progress: Progress | None = None, engine: StepwiseEngine | None = None
) -> list[Fragment]:
    """The fragments that a run would have: condition and rows; no file stays behind."""
    engine = engine or engine_of(job)
    run = Run(None, _opened(job))
    if not engine.remote:
        return list(steps(run, engine, progress, "pushdown").fragments)
    work = publish.WorkDir(publish.work_path(str(job.output), uuid.uuid4().hex))
    try:
        work.create()
        run.dataset.save(work)
        return list(steps(Run(work, run.dataset), engine, progress, "pushdown").fragments)
    finally:
        work.remove()


def begin(
    job: Job,
    work: str,
    made_by: str | None = None,
    slots: int | None = None,
    owner: publish.Owner | None = None,
    requested: Mapping[str, str | None] | None = None,
) -> Run:
    """Check the job against its input and output, and make the working files.

    They have all that :func:`divide` needs, so that a machine without the job's file and its
    hierarchies can call it. Raises as :func:`partition` does.
    """
    publish.check_output(str(job.input), str(job.output))
    refuse_replacing(job, made_by)
    series.refuse_beside(job)
    if job.series is not None:
        series.check_new(job)
    directory = publish.WorkDir(work)
    # Before all that takes long, so that a stale attempt notices. Under the lock, since a stale
    # attempt may be publishing the working files that this removes.
    with publish.publication_lock(str(job.output)):
        directory.create(owner)
    replaced = publish.current_token(str(job.output))
    directory.note_replaced(replaced, made_by=made_by, **(requested or {}))
    directory.note_job(job)
    types: dict[str, str] = {}
    if job.has_contract:
        from mondrian_ops.pipeline import contract

        types = contract.known_types(job)
    dataset = _opened(job, slots, types, _gathered(job, directory))
    warn_of_numbers(job, dataset.source)
    if job.series is not None:
        series.settle(job)
        series.check_types(job, dataset.source)
    if job.has_contract:
        dataset = contract.held(dataset, directory)
    if job.compares_people:
        from mondrian_ops.pipeline import overlap_check

        overlap_check.choose_columns(job, dataset.source, directory)
        if job.series is not None or dataset.source.copy is not None:
            overlap_check.sketch(dataset.source, directory, overlap_check.key_of(job))
    if job.series is not None:
        job, night, pool = series.gather(job, dataset.source, directory)
        directory.note_job(job)
        dataset = replace(dataset, job=job, source=pool, night=night)
        if job.follows_persons:  # people of all places may need one another
            whole = replace(job.partitioning, fragments=1, max_rows=max(1, pool.rows))
            dataset = replace(dataset, job=replace(dataset.job, partitioning=whole))
    elif dataset.source.copy is not None:
        dataset = replace(dataset, source=dataset.source.copy)
    run = Run(directory, dataset)
    run.dataset.save(directory)
    return run


def divide(
    run: Run,
    engine: StepwiseEngine,
    progress: Progress | None = None,
    started: float | None = None,
    recode: bool = True,
    people_key: bytes | None = None,
    phases: Phases | None = None,
) -> None:
    """Divide a run that has begun into fragments, and save its state.

    ``started`` is on the performance counter; ``recode`` as for :func:`partition`; ``people_key``
    is what its people are hashed with, if they are compared with those of other releases;
    ``phases`` go on here.
    """
    started = time.perf_counter() if started is None else started
    run.phases = phases or run.phases
    job = run.dataset.job
    if people_key is not None:
        from mondrian_ops.pipeline import overlap_check

        if not overlap_check.is_sketched(run.work):
            overlap_check.sketch(run.dataset.source, run.work, people_key)
    state = _plan_or_hold(run, engine, progress)
    if not recode:
        run.save_frequencies(run.frequencies)
    elif job.recodes_globally:
        with run.phases("recode"):
            engine.recode(run)
            state = _recoded(run, state)
    timings = {"partition": time.perf_counter() - started}
    run.save_state(replace(state, timings_s=timings, phases=run.phases.costs()))


def _plan_or_hold(run: Run, engine: StepwiseEngine, progress: Progress | None) -> RunState:
    """The state after :func:`steps`; in a series the rows wait where no release is possible."""
    if not run.dataset.source.rows:
        return _waiting(run, "there are no rows tonight, and none wait")
    try:
        check_rows(run.dataset.job, run.dataset.source.rows)
        return steps(run, engine, progress)
    except UnattainableError as error:
        if run.dataset.holding is None:
            raise
        return _waiting(run, str(error))


def _waiting(run: Run, reason: str) -> RunState:
    """The state of a night of which nothing can be published: one fragment, which waits."""
    job, source = run.dataset.job, run.dataset.source
    return RunState(
        rows=source.rows,
        columns=column_roles(job, source.schema.names, source.index),
        constant="",
        cut={},
        retrieval="pushdown",
        leaves=[[0]],
        fragments=[Fragment(id=0, where="", rows=source.rows, work=run.root)],
        generalizations={},
        partitioning=partitioning_note(
            job, fragments=1, sample_rows=0, merged=0, reason="", note=""
        ),
        recoding={},
        unattainable=reason,
        source=source.read_as,
    )


def steps(
    run: Run,
    engine: StepwiseEngine,
    progress: Progress | None = None,
    retrieval: str | None = None,
) -> RunState:
    """The steps of the phase except for the recoding; each uses the results of those before.

    ``retrieval`` is how fragments get their rows; None: by the job and the plan.
    """
    rows, progress = run.dataset.source.rows, progress or Display()
    # Of a remote engine each task asks for the files that it reads.
    with nullcontext() if engine.remote else run.dataset.source.unchanged():
        with run.phases("profile"):  # which a local engine divides
            engine.draft(run, _in_rows(progress, "profile", rows))
        with run.phases("count"):
            retrieval, files = (retrieval, None) if retrieval else _retrieval(run)
            counts = _counts(run, engine, retrieval, _in_rows(progress, "partition", rows))
            run.forget_rows()
    survey, by_person = run.draft.survey, run.dataset.job.entity_id is not None
    findings = confirmed(survey, counts.followed, by_person)
    findings += shown_in_sets(run.draft.profile, run.dataset.job.k)
    merged = merge_small(run.anonymizer, run.draft.plan, counts)
    state = replace(
        _described(run, merged, counts, retrieval),
        files=files,
        dependencies=[finding.to_dict() for finding in findings],
    )
    refuse_disclosing(run.dataset.job, state.dependencies)
    return state


def _retrieval(run: Run) -> tuple[str, list[list[int]] | None]:
    """How fragments get their rows and, with pushdown, the files of each leaf, if not all.

    ``auto``: by Spark's shuffle if one application anonymizes all; else by pushdown if the layout
    of the source lets the mapped tasks read little more than the source once; else by scattering.
    """
    job = run.dataset.job
    if run.draft.plan.leaves == 1:
        return "pushdown", None
    if job.retrieval == "pushdown":
        return "pushdown", _files_of_leaves(run)
    if job.retrieval != "auto":
        return job.retrieval, None
    if job.engine == "spark" and job.spark.shape == "application":
        return "shuffle", None
    files = _files_of_leaves(run, _PUSHDOWN_READS)
    return ("scatter" if files is None else "pushdown"), files


def _files_of_leaves(run: Run, most: float = math.inf) -> list[list[int]] | None:
    """By leaf of the plan, the numbers of the source's files that may have rows of it.

    None where the mapped tasks would read more than ``most`` times the source in all.
    """
    source, plan = run.dataset.source, run.draft.plan
    files: list[list[int]] = [[] for _ in range(plan.leaves)]
    left = most * source.rows
    for number, rows_read in enumerate(source.rows_read(plan, run.anonymizer.orders)):
        left -= sum(rows_read.values())
        if left < 0:
            return None
        for leaf in rows_read:
            files[leaf].append(number)
    return files


def _counts(run: Run, engine: StepwiseEngine, retrieval: str, rows_seen: RowsSeen) -> LeafCounts:
    """The counts of the plan's leaves, from the profile or by a pass over the source.

    The pass also follows the values of columns that the survey could not clear.
    """
    scatter = retrieval == "scatter"
    if not (scatter or run.draft.survey.watched):
        counts = planning.known_counts(run.anonymizer, run.draft.plan, lambda: run.frequencies)
        if counts is not None:
            return counts
    return engine.count(run, scatter, rows_seen)


def _described(run: Run, merged: Plan, counts: LeafCounts, retrieval: str) -> RunState:
    """The state of a run whose fragments are those of ``merged``."""
    job, source, draft = run.dataset.job, run.dataset.source, run.draft
    fragments = _fragments(run, merged, counts)
    return RunState(
        rows=source.rows,
        columns=column_roles(job, source.schema.names, source.index),
        constant=constant_note(draft.profile.constant),
        column_notes=[*draft.profile.notes, *notes_on_open_ends(draft.profile, job)],
        cut=draft.cut,
        retrieval=retrieval,
        leaves=merged.fragments,
        fragments=fragments,
        generalizations={each.name: each.generalization for each in run.anonymizer.attributes},
        grids=draft.profile.grids.steps,
        partitioning=partitioning_note(
            job,
            fragments=len(fragments),
            sample_rows=draft.sample_rows,
            merged=draft.plan.leaves - len(fragments),
            reason=draft.reason,
            note=_note(run, fragments),
        ),
        recoding=None if job.recodes_globally else {},
        source=_read_as(run),
    )


def _read_as(run: Run) -> dict[str, Any]:
    """How the source was read, with the types of the quasi-identifiers; of a table in memory {}."""
    read_as = run.dataset.source.read_as
    if not read_as:
        return {}
    types = {each.name: name_of(each.type) for each in run.anonymizer.attributes}
    return {**read_as, "types": {**types, **read_as.get("types", {})}}


def _fragments(run: Run, merged: Plan, counts: LeafCounts) -> list[Fragment]:
    """The fragments of a plan, with their conditions as they may be shown."""
    orders = run.anonymizer.orders
    disclosure = planning.disclosure(run.anonymizer, run.draft.plan, counts)
    conditions = [merged.condition(number, orders) for number in range(len(merged.fragments))]
    return [
        Fragment(
            id=number,
            where=disclosure.text(condition),
            rows=int(counts.rows[list(leaves)].sum()),
            work=run.root,
            any_of=disclosure.condition(condition),
        )
        for number, (leaves, condition) in enumerate(zip(merged.fragments, conditions, strict=True))
    ]


def _note(run: Run, fragments: list[Fragment]) -> str:
    """Why the number of fragments is not the wanted one; empty if it is."""
    options, wanted = run.dataset.job.partitioning, run.draft.fragments
    request = f"{wanted} fragments were {'worthwhile' if run.draft.reason else 'asked for'}"
    planned = run.draft.plan.leaves
    if (largest := max(fragment.rows for fragment in fragments)) > options.max_rows:
        return (
            f"the largest fragment has {largest} rows, more than max_rows ({options.max_rows}): "
            f"the sample of {run.draft.sample_rows} rows could not be cut so that none has"
        )
    if planned < wanted:
        sample = f"the sample of {run.draft.sample_rows} rows"
        return f"{request}, but {sample} could be cut into only {planned}"
    if planned > wanted:
        rows = run.dataset.source.rows
        why = "max_rows" if options.max_rows < rows else "a cut into several parts"
        return f"{request}, but {why} made {planned}"
    return ""


def _recoded(run: Run, state: RunState) -> RunState:
    """The state of a run whose recoding is chosen.

    Fragments are merged so that each equivalence class lies in one file, or each file has enough of
    its rows, within ``max_rows`` rows per fragment.
    """
    recoding = cast(Recoding, run.recoding)
    planned = Plan(run.draft.plan.nodes, tuple(map(tuple, state.leaves)))
    if len(planned.fragments) == 1:
        return replace(state, recoding=recoding.figures)
    frequencies = run.frequencies
    counts = planning.counts_of(run.anonymizer, planned, frequencies)
    merged, rows, split = merge_split_classes(run.anonymizer, planned, frequencies, recoding)
    regrouped = replace(
        _described(run, merged, replace(counts, rows=rows), state.retrieval),
        dependencies=state.dependencies,
        files=state.files,
    )
    partitioning = {**regrouped.partitioning, "split_classes": split}
    if len(merged.fragments) < len(planned.fragments):
        merging = (
            f"{len(planned.fragments)} fragments were merged into {len(merged.fragments)}, so that "
            "no file holds too few rows of an equivalence class"
        )
        partitioning["note"] = "; ".join(filter(None, (partitioning["note"], merging)))
    return replace(regrouped, partitioning=partitioning, recoding=recoding.figures)


def parts_to_map(job: Job, work: str) -> list[Part]:
    """The parts of the job's first phase, for mapped tasks.

    There are none where it has no such phase, or where Spark runs it in tasks of its own.
    """
    if job.engine == "spark":
        return []
    of_job = first_phase_parts(job)
    return [Part(part, len(of_job), work) for part in of_job]


def specialize_part(part: Part) -> PartSummary:
    """The first phase on one part; its level goes to the working files.

    A retry writes the same level again. Raises StorageError where the working files vanished.
    """
    started = time.perf_counter()
    run = Run(publish.WorkDir.attach(part.work))
    level = two_phase(run.anonymizer).first(run.frequencies, part.part)
    run.save_level(part.part, level)
    return PartSummary(
        part=part.part,
        rows=level.rows,
        specializations=len(level.steps),
        equivalence_classes=level.classes,
        seconds=round(time.perf_counter() - started, 3),
        finished=time.time(),
    )


def recode(work: str, summaries: Sequence[PartSummary] = ()) -> list[Fragment]:
    """Decide what the values of each column become, from the levels of all parts.

    ``summaries``: those of :func:`specialize_part`. Returns the run's fragments, at once where the
    recoding is chosen already, or there is none. Raises PrivacyError where no recoding satisfies
    the criteria, StorageError where working files vanished.
    """
    started = time.perf_counter()
    run = Run(publish.WorkDir.attach(work))
    state = run.state
    if state.recoding is None:
        levels = [run.level(part) for part in first_phase_parts(run.dataset.job)]
        with run.phases("recode"):
            run.save_recoding(choose_recoding(run.anonymizer, run.frequencies, levels))
        timings = dict(state.timings_s)
        if summaries:
            began = min(each.finished - each.seconds for each in summaries)
            timings["specialize_part"] = max(each.finished for each in summaries) - began
        state = _recoded(run, state)
        timings["recode"] = time.perf_counter() - started
        phases = {**state.phases, **run.phases.costs()}
        run.save_state(replace(state, timings_s=timings, phases=phases))
    return _to_map(run)


def _to_map(run: Run) -> list[Fragment]:
    """The fragments of a run for its mapped tasks."""
    job, fragments = run.dataset.job, run.state.fragments
    if job.engine == "spark" and job.spark.shape == "application":
        return [Fragment.together(fragments)]
    return list(fragments)


def _gathered(job: Job, work: publish.WorkDir) -> tables.GatheredRows | None:
    """What may copy the rows of the job's input to the working files.

    A series makes a pool of them, Spark reads many files at once, and ``pushdown`` writes no rows.
    """
    if job.series is not None or job.engine == "spark" or job.retrieval == "pushdown":
        return None
    return tables.GatheredRows(work.path(publish.ROWS), partial(columns_to_read, job))


def _opened(
    job: Job,
    slots: int | None = None,
    known: Mapping[str, str] | None = None,
    gathered: tables.GatheredRows | None = None,
) -> Dataset:
    """The dataset of a job that fits it; ``known`` and ``gathered`` as for :func:`open_table`."""
    holds = job.series is not None and job.series.holds
    source = open_input(job, known, may_be_empty=holds, gathered=gathered)
    if job.series is None:
        check_rows(job, source.rows)
    return Dataset(job, source, hierarchies_of(job), _room(job, slots))


def _room(job: Job, slots: int | None) -> Slots:
    """The room for fragments: a thread starts at once, a Spark task in a second."""
    if slots is not None:
        return Slots(slots)
    if job.engine == "spark":
        return Slots(_SPARK_SLOTS, 1.0)
    return Slots(_PER_CORE * available_cores(), 0.15)


def _in_rows(progress: Progress, phase: str, total: int) -> RowsSeen:
    """Progress in rows."""
    done = 0

    def rows_seen(rows: int) -> None:
        nonlocal done
        done += rows
        progress(phase, done, total)

    return rows_seen
