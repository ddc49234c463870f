"""Phase three: check the release as written, measure it, publish it, or refuse.

:func:`check` and :func:`publish` are two steps, because a release may have to wait between them for
an approval. Then :func:`publish` compares the parts with the seal that :func:`check` put on them
before it counted them. The seal is a digest: a second count would take longer, and look at the
quasi-identifiers and the sensitive columns only.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mondrian_ops import publish as publishing
from mondrian_ops import report as reports
from mondrian_ops import series, stores
from mondrian_ops.engines import Engine, class_samples, use_samples
from mondrian_ops.engines.handover import Summary
from mondrian_ops.engines.run import Run
from mondrian_ops.engines.threads import at_once, in_threads
from mondrian_ops.errors import InputError, PrivacyError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.phases import Phases
from mondrian_ops.pipeline import catalogued
from mondrian_ops.pipeline.approval import (
    Approval,
    Approve,
    approver,
    asks,
    hold,
    judge,
    refusal_reported,
    rejected,
)
from mondrian_ops.pipeline.checks import (
    lost_rows,
    refuse_disclosing,
    with_singled_out,
)
from mondrian_ops.pipeline.replacement import refuse_replacing, replaced_by
from mondrian_ops.pipeline.report_builder import Measured, Report, assembled, is_held
from mondrian_ops.progress import Display, Progress
from mondrian_ops.report.outcome import PUBLISHED

if TYPE_CHECKING:
    from mondrian_ops.data.hierarchy import Hierarchy
    from mondrian_ops.engines.release_check import Counted


class Checked(NamedTuple):
    """A release that passed its check: its report, and a seal that shows later changes.

    The seal is empty where the job never asks for approval.
    """

    report: Report
    seal: str


def wrap_up(
    job: Job,
    *,
    work: str,
    summaries: Sequence[Summary],
    progress: Progress | None = None,
    approve: Approve | None = None,
    engine: Engine | None = None,
    phases: Phases | None = None,
) -> Report:
    """Phase three as a whole; returns the report of the published release.

    A remote ``engine`` checks the release where it anonymized it. ``phases`` measures.

    Raises PrivacyError, and publishes nothing, when a class of the release fails or a limit is
    exceeded; ApprovalError when ``approve``, or nobody, approves a release that needs it;
    StorageError when a part or the working files vanished.
    """

    def make() -> Report:
        with_phases: dict[str, Any] = {"work": work, "progress": progress, "phases": phases}
        checked = check(job, summaries=summaries, engine=engine, **with_phases)
        by = approver(job, checked.report, approve)
        approval = None if by is None else Approval(checked.seal, by)
        return publish(job, approval=approval, **with_phases)

    return published_once(job, work, make)


def published_once(job: Job, work: str, make: Callable[[], Report]) -> Report:
    """The report of the release, which ``make`` publishes unless another attempt at this run does.

    The other attempt may have been killed after it published. Or it was given up for dead and
    publishes while ``make`` works, and so removes the files that ``make`` needs.
    """
    report = published_report(job, work)
    if report is not None:
        return report
    try:
        return make()
    except (InputError, StorageError):
        report = published_report(job, work)
        if report is None:
            raise
        return report


def published_report(job: Job, work: str) -> Report | None:
    """The report of the release if an attempt at this run published it, and then was killed.

    Raises StorageError when the working files vanished.
    """
    directory = publishing.WorkDir.attach(work)
    if not publishing.published(str(job.output), directory.token):
        return _held_report(job, directory)
    publishing.publish(directory.staging, str(job.output), directory.token)  # tidies up after it
    report = reports.parsed(publishing.beside_release(str(job.output), reports.JSON_NAME))
    catalogued.confirm(job, Run(directory), report)
    return report


def _held_report(job: Job, directory: publishing.WorkDir) -> Report | None:
    """The report of a night that published nothing and is over; None if it is not."""
    if job.series is None or not series.was_held(directory.token):
        return None
    report = _staged_report(directory)
    catalogued.confirm(job, Run(directory), report)
    return report


def check(
    job: Job,
    *,
    work: str,
    summaries: Sequence[Summary],
    progress: Progress | None = None,
    engine: Engine | None = None,
    phases: Phases | None = None,
) -> Checked:
    """Check the release as written and measure it; write its report as JSON beside its parts.

    A remote ``engine`` counts and checks the classes; else this process does.

    Raises PrivacyError when a class fails, a limit is exceeded, or the job refuses overlaps and
    people were released before; StorageError when a part or the working files vanished.
    """
    progress = progress or Display()
    started = time.perf_counter()
    directory = publishing.WorkDir.attach(work)
    run = Run(directory)
    phases = run.phases = phases or Phases()
    state = run.state
    summaries = sorted(summaries, key=lambda summary: summary.id)
    lacking = len(state.fragments) - len({summary.id for summary in summaries})
    if lacking:
        raise StorageError(
            f"{lacking} of {len(state.fragments)} fragments were not anonymized, so nothing is "
            "published; see their tasks, then run again from the partition task"
        )
    # Policies may refuse it only since the rows were partitioned.
    refuse_disclosing(job, state.dependencies)
    with _as_readers_find_it(job, directory, summaries):
        return _checked(job, run, summaries, progress, engine, started)


@contextmanager
def _as_readers_find_it(
    job: Job, directory: publishing.WorkDir, summaries: Sequence[Summary]
) -> Iterator[None]:
    """Where the release becomes a table, check what a reader of the table will find."""
    rows = {each.id: each.rows for each in summaries if each.rows}
    if not (rows and stores.is_of_table(str(job.output))):
        yield
        return
    paths = _part_paths(directory, summaries)
    maker = directory.owner.run if directory.owner else directory.maker["made_by"]
    about = {"run": maker, "k": job.k, "l": job.l}
    candidate = publishing.Candidate(
        directory.token,
        {path: rows[number] for number, path in paths.items()},
        {key: str(value) for key, value in about.items() if value is not None},
    )
    with publishing.staged(str(job.output), candidate):
        yield


def _checked(
    job: Job,
    run: Run,
    summaries: Sequence[Summary],
    progress: Progress,
    engine: Engine | None,
    started: float,
) -> Checked:
    directory, state, phases = run.work, run.state, run.phases
    seal = _parts_seal(directory) if job.may_ask else ""
    policies = publishing.required(job, directory.root).policies
    boundaries = None if state.unattainable else run.draft.boundaries
    shared = None if boundaries is None else boundaries.boundaries.to_json()
    with phases("recount"):
        counted = _counted(job, run, summaries, progress, engine, shared)
        followed = _followed(job, run, summaries) if counted.count.rows else None
    of_use: dict[str, Any] = {}
    if counted.count.rows:
        with phases("single_out"):
            figures = class_samples.written_figures(run, summaries)
            state = with_singled_out(state, figures)
        with phases("use"):
            of_use = use_samples.written_figures(run, summaries)
    measured = Measured(
        state=state,
        summaries=summaries,
        counted=counted,
        wrap_up_s=time.perf_counter() - started,
        maker=directory.maker,
        night=run.dataset.night,
        waiting=() if run.dataset.holding is None else series.waiting_in(run),
        boundaries=boundaries,
        use=of_use,
        phases=phases.costs(),
    )
    if followed is not None:
        measured = measured.failing(followed.failures)
    measured = measured.failing(_persons_failures(job, run, summaries))
    with phases("report"):
        report = judged(job, measured, policies)
    if followed is not None:
        report["series"]["people"] = followed.figures
        report["notes"] += followed.notes
        if followed.counterfeits is not None:
            content = series.content_of(followed.counterfeits)
            _write_beside(directory, series.COUNTERFEITS, content)
    if job.may_ask and (replaced := replaced_by(job)):
        report["replaces"] = replaced  # which the approver has to know
    if policies:
        report["policies"] = list(policies)
    with refusal_reported(report):
        catalogued.note(job, run, report)
    with phases("report"):
        _write_beside(directory, reports.JSON_NAME, reports.json_content(report, indented=False))
    return Checked(report, _with_report(seal, directory, report) if seal else "")


def _followed(job: Job, run: Run, summaries: Sequence[Summary]) -> series.Outcome | None:
    """The persons of the release, followed through the nights of the series, if the job asks it."""
    night = run.dataset.night
    if night is None or not job.follows_persons:
        return None
    paths = run.work.part_paths(summary.id for summary in summaries if summary.rows)
    counterfeits = sum(summary.counterfeits for summary in summaries)
    return series.checked(job, night.series, night.number, run.work, paths, counterfeits)


def judged(
    job: Job,
    measured: Measured,
    policies: Sequence[str] = (),
    refusal: str = "the release is refused and not published",
) -> Report:
    """The report of a release; ``policies``: the names of those that hold.

    Raises PrivacyError, which has the report, when a class fails, rows are lost or a limit is
    exceeded.
    """
    state, published = measured.state, measured.published
    measured = measured.failing(
        lost_rows(job, state.rows, published, measured.suppressed, measured.held)
    )
    report = assembled(job, measured)
    with refusal_reported(report):
        if failures := measured.counted.verdict.failures:
            raise PrivacyError(f"{refusal}: " + "; ".join(failures), report)
        refuse_disclosing(job, state.dependencies)
        if measured.night is not None and not published:
            hold(report, state.unattainable)
        judge(job, report, policies)
    return report


def publish(
    job: Job,
    *,
    work: str,
    approval: Approval | None = None,
    progress: Progress | None = None,
    phases: Phases | None = None,
) -> Report:
    """Publish the release that :func:`check` left in the working files; returns its report.

    Raises ApprovalError where it needs an approval and has none; StorageError when it changed since
    it was approved, vanished, or a newer release was published while it waited.
    """
    directory, phases = publishing.WorkDir.attach(work), phases or Phases()
    report = _staged_report(directory)
    with refusal_reported(report):
        refuse_disclosing(job, report.get("dependencies", {}).get("findings", ()))
    if asks(job, report) and approval is None:
        what = "the release needs an approval and got none; nothing is published"
        raise rejected(report, what)
    if (
        approval is not None
        and _with_report(_parts_seal(directory), directory, report) != approval.seal
    ):
        raise StorageError(
            "the working files changed after they were checked, so the approved release no "
            "longer exists; nothing is published; run again from the partition task"
        )

    def refuse() -> None:
        directory.check_attempt()  # or the unfinished files of a later attempt were published
        _staged_report(directory)
        if approval is None:
            _refuse_another(job, directory)
        else:
            _refuse_older(job, report)
        refuse_replacing(job, report.get("made_by"))
        series.refuse_beside(job)

    copied = partial(progress or Display(), "publish")
    run = Run(directory)
    if is_held(report):
        with catalogued.recorded(job, run, report):
            return report
    directory.check_attempt()
    reports.conclude(report, PUBLISHED, decision=None if approval is None else approval.decision)
    with phases("report"):
        _write_report(directory, report)
    with phases("publish"), refusal_reported(report), catalogued.recorded(job, run, report):
        publishing.publish(directory.staging, str(job.output), directory.token, refuse, copied)
    return report


def _refuse_another(job: Job, directory: publishing.WorkDir) -> None:
    """Refuse to replace a release that was published while this one was made."""
    if publishing.current_token(str(job.output)) not in (None, directory.replaced):
        raise StorageError(
            f"output: another run has published to {stores.shown(str(job.output))} since this one "
            "began; nothing is published; run again if its data should replace that release"
        )


def _refuse_older(job: Job, report: Report) -> None:
    """Refuse a release that waited while one that was checked later was published."""
    current = publishing.report_of(str(job.output))
    if current is not None and str(current.get("created", "")) > report["created"]:
        raise StorageError(
            f"output: a newer release of {stores.shown(str(job.output))} was published while this "
            "one waited; nothing is published; trigger a new run if its data should replace it"
        )


def _staged_report(directory: publishing.WorkDir) -> Report:
    with directory.vanished_as_error():
        return reports.parsed(stores.read_file(f"{directory.staging}/{reports.JSON_NAME}"))


def _parts_seal(directory: publishing.WorkDir) -> str:
    with directory.vanished_as_error():
        return publishing.digest_of_parts(directory.parts)


def _with_report(seal: str, directory: publishing.WorkDir, report: Report) -> str:
    """One seal for the parts, the counterfeits, and the report that the approver sees.

    What became of it is left out: an attempt that was killed may have noted an approval.
    """
    with suppress(FileNotFoundError):
        seal += publishing.digest_of(f"{directory.staging}/{series.COUNTERFEITS}")
    return hashlib.sha256((seal + json.dumps(reports.undecided(report))).encode()).hexdigest()


def _write_report(directory: publishing.WorkDir, report: Report) -> None:
    """Write the report beside the parts, as JSON and as a page.

    Temporary files lie outside the staged release, which a stale attempt may publish meanwhile.
    """
    for name, content in reports.files(report).items():
        _write_beside(directory, name, content)


def _write_beside(directory: publishing.WorkDir, name: str, content: bytes) -> None:
    with directory.vanished_as_error():
        stores.write_file(f"{directory.staging}/{name}", content, directory.root)


def _counted(
    job: Job,
    run: Run,
    summaries: Sequence[Summary],
    progress: Progress,
    engine: Engine | None,
    boundaries: Mapping[str, Any] | None,
) -> Counted:
    """The release counted from its files, whole and part by part, and checked."""
    from mondrian_ops.engines.release_check import Counted, ReleaseCheck
    from mondrian_ops.verify import requirements
    from mondrian_ops.verify.counts import PartCount, ReleaseCounter

    # Those of the run: their files may have changed since.
    hierarchies = {name: run.dataset.hierarchies[name] for name in job.sensitive_hierarchy}
    # A fragment of which all rows wait has no part.
    paths = _part_paths(run.work, summaries)
    if not paths:
        nothing = ReleaseCounter((), ()).result()
        verdict = requirements.check(nothing, job)
        if run.dataset.holding is not None:
            verdict = requirements.Verdict(True, {}, (), ())  # there is nothing to check
        counted = Counted(nothing, [], verdict)
    elif engine is not None and engine.remote:
        rows = sum(summary.rows for summary in summaries)
        check = ReleaseCheck.of(job, paths, rows, hierarchies, boundaries)
        counted = check.concluded(engine.check(run, check))
        progress("wrap_up", len(paths), len(paths))
    else:
        threads = at_once(max(summary.rows for summary in summaries))
        counted = counted_here(
            job, run, list(paths.values()), progress, threads, hierarchies, boundaries
        )
    parts, empty = iter(counted.parts), PartCount(0, 0, 0)
    in_order = [next(parts) if summary.id in paths else empty for summary in summaries]
    return replace(counted, parts=in_order)


def _persons_failures(job: Job, run: Run, summaries: Sequence[Summary]) -> list[str]:
    """The classes whose persons have too few values, where a class may lie in several files.

    Where recoding is not global, each part was checked before it got its name.
    """
    import pyarrow as pa

    from mondrian_ops.data.column_types import plain_schema
    from mondrian_ops.verify.persons import counts_persons_values, persons_failures
    from mondrian_ops.verify.requirements import published_columns

    if not (job.recodes_globally and counts_persons_values(job)):
        return []
    parts, persons = [], []
    for path in run.work.part_paths(summary.id for summary in summaries if summary.rows):
        (part,) = publishing.release_files(path)
        columns = [*published_columns(job, part.columns), *job.sensitive]
        rows = pa.Table.from_batches(list(part.batches(columns)))
        parts.append(rows.cast(plain_schema(rows.schema)))
        persons += run.work.read_persons(publishing.digest_of(path)).chunks
    if not parts:
        return []
    whole = pa.concat_tables(parts), pa.chunked_array(persons)
    return list(persons_failures(job, *whole, "the release"))


def _part_paths(directory: publishing.WorkDir, summaries: Sequence[Summary]) -> dict[int, str]:
    """By fragment that has rows, its part; raises StorageError on one too few or too many."""
    with_rows = [summary.id for summary in summaries if summary.rows]
    paths = dict(zip(with_rows, directory.part_paths(with_rows), strict=True))
    staged = directory.staged()
    stray = staged - {os.path.basename(path) for path in paths.values()}
    beside = {reports.JSON_NAME, reports.HTML_NAME, series.COUNTERFEITS, "_SUCCESS"}
    stray -= beside  # of an attempt before
    if stray:
        raise StorageError(
            f"{directory.staging}: holds {len(stray)} file(s) that belong to no fragment; run "
            "again from the partition task"
        )
    for number, path in paths.items():
        if os.path.basename(path) not in staged:
            raise StorageError(
                f"part of fragment {number}: the file vanished between tasks; run again from "
                "the partition task"
            )
    if not summaries:
        raise StorageError("there are no fragments to wrap up; run again from the partition task")
    return paths


def counted_here(
    job: Job,
    run: Run,
    paths: Sequence[str],
    progress: Progress,
    threads: int,
    hierarchies: Mapping[str, Hierarchy],
    boundaries: Mapping[str, Any] | None,
) -> Counted:
    """The parts counted in threads and merged in order, and the verdict."""
    from mondrian_ops.engines.release_check import Counted, counted_part
    from mondrian_ops.verify import requirements

    parts, directory = [], run.work
    with directory.spill() as spill:
        (first,) = publishing.release_files(paths[0])
        counter = requirements.counter_of(job, first.columns, spill=spill, labels=run.labels)
        work = partial(counted_part, directory, counter, job.entity_id is not None)
        for counted in in_threads(work, paths, threads):
            parts.append(counter.merge(counted))
            progress("wrap_up", len(parts), len(paths))
        count = counter.result()
        verdict = requirements.check(count, job, hierarchies, boundaries=boundaries)
    return Counted(count, parts, verdict)
