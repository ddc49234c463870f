"""The calls of a program: a run as a whole; a check."""

from __future__ import annotations

import tempfile
import uuid
from typing import Any

from mondrian_ops import publish, series
from mondrian_ops.engines import Engine, engine_of
from mondrian_ops.errors import ApprovalError, InputError
from mondrian_ops.job.job import Job
from mondrian_ops.phases import Phases
from mondrian_ops.pipeline.approval import Approve, refuse_without_users
from mondrian_ops.pipeline.checks import hierarchies_of
from mondrian_ops.pipeline.fragments import anonymize_all, discard
from mondrian_ops.pipeline.partitioning import partition
from mondrian_ops.pipeline.report_builder import Report
from mondrian_ops.pipeline.wrapping_up import wrap_up
from mondrian_ops.progress import Display, Progress

_ROWS_ONLY = (
    "{} here, because a release does not tell which rows belong to one person; the "
    "persons were counted before publication (see verification in the release's report)"
)

_NO_BOUNDARIES = (
    "the catalogue does not know this release as a night of a series, so its intervals were not "
    "compared with the boundaries of one"
)


def run(
    job: Job,
    progress: Progress | None = None,
    engine: Engine | None = None,
    approve: Approve | None = None,
    phases: Phases | None = None,
) -> Report:
    """All three phases here, by the job's engine; returns the report of the published release.

    ``approve`` is called with the report of a release that needs approval, and returns the name of
    the approver, or None. ``phases``, which may have measured the start, get what this process
    does; the report has those of the fragments, too.

    Raises ApprovalError where nobody approves, and before any work where ``require_approval`` is
    set and ``approve`` is not.
    """
    _refuse_without_approver(job, approve)
    progress = progress or Display()
    engine, last = engine or engine_of(job), Phases()
    work = publish.work_path(str(job.output), uuid.uuid4().hex)
    try:
        partition(job, work=work, progress=progress, engine=engine, phases=phases)
        if job.series is not None:  # the policies of rows that waited may require an approval
            job = publish.WorkDir(work).job
            refuse_without_users(job, work)
            _refuse_without_approver(job, approve)
        return wrap_up(
            job,
            work=work,
            summaries=anonymize_all(work, engine, progress),
            progress=progress,
            approve=approve,
            engine=engine,
            phases=last,
        )
    finally:
        discard(work)
        if phases is not None:
            phases.take(last.costs())


def _refuse_without_approver(job: Job, approve: Approve | None) -> None:
    if job.require_approval and approve is None:
        raise ApprovalError(
            "require_approval: nobody can be asked; pass approve=, or run the job in Airflow"
        )


def verify(job: Job, release: str) -> dict[str, Any]:
    """Check any release, a directory or file, against the criteria of ``job``.

    Returns ``{"passed", "rows", "equivalence_classes", "achieved", "checked", "failures",
    "notes"}``. Where the job counts persons, k counts rows instead, since a release does not tell
    which rows belong to one person; a note says so.
    """
    from mondrian_ops.verify import requirements

    counter = None
    with tempfile.TemporaryFile() as spill:
        for file in publish.release_files(release):
            counter = counter or requirements.counter_of(
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
        verdict = requirements.check(count, job, hierarchies, rows_only=True, boundaries=boundaries)
    verdict = series.without_counterfeits(job, release, verdict, _counterfeits_of(job, release))
    notes = []
    if job.entity_id is not None:
        of_rows = "k counts rows" if job.l is None else "k and l count rows"
        notes.append(_ROWS_ONLY.format(of_rows))
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
    report = publish.report_of(release)
    if report is None:
        return None if job.has_counterfeits else 0
    try:
        return int(report["series"]["people"]["counterfeits"])
    except (KeyError, TypeError, ValueError):  # it is of no night whose rows may be made up
        return 0


def verify_series(job: Job, release: str) -> dict[str, Any]:
    """Attack all releases of a series at once; ``release``: the output of any of its nights.

    Returns ``{"passed", "nights", "failures", "not_looked_at", "notes", "subtracted"}``. It passes
    if nobody is left with less than the job says, nothing was changed, and each night could be
    looked at.

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
        "subtracted": found.subtracted,
    }
