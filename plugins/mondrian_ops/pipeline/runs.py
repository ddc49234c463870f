"""All phases at once, and what is done around a run."""

from __future__ import annotations

import uuid
from itertools import chain
from typing import Any

from mondrian_ops import storage
from mondrian_ops.core.errors import ApprovalError, InputError
from mondrian_ops.core.job import Job
from mondrian_ops.engines import Engine, engine_of
from mondrian_ops.engines.fragment import Summary
from mondrian_ops.engines.run import Run
from mondrian_ops.pipeline.approval import Approve
from mondrian_ops.pipeline.assembly import Report
from mondrian_ops.pipeline.checks import hierarchies_of
from mondrian_ops.pipeline.partition import partition
from mondrian_ops.pipeline.wrap_up import wrap_up
from mondrian_ops.progress import Display, Progress

__all__ = ["discard", "give_up", "run", "verify"]


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
            summaries=_anonymized(work, engine, progress),
            progress=progress,
            approve=approve,
        )
    finally:
        discard(work)


def _anonymized(work: str, engine: Engine, progress: Progress) -> list[Summary]:
    state = (here := Run(storage.WorkDir.entered(work))).state
    summaries: list[Summary] = []
    progress("anonymize", 0, state["rows"])
    for summary in engine.anonymize(here, state["fragments"]):
        summaries.append(summary)
        progress("anonymize", sum(each["rows"] for each in summaries), state["rows"])
    return summaries


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
