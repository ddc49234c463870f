"""What the catalogue keeps of a release: the contract of its dataset, its night, its people.

Each is for the jobs that ask for it; the others start without its modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from mondrian_ops import series
from mondrian_ops.engines.run import Run
from mondrian_ops.job.job import Job
from mondrian_ops.pipeline.report_builder import Report, is_held


def note(job: Job, run: Run, report: Report) -> None:
    """Add to the report how the release differs from the last one, and who was released before.

    Raises PrivacyError where the job refuses that.
    """
    if run.dataset.contract is not None:
        from mondrian_ops.pipeline import contract

        contract.note(run.dataset.contract, report)
    if job.compares_people:
        from mondrian_ops.pipeline import overlap_check

        overlap_check.note(job, run.work, report)


@contextmanager
def recorded(job: Job, run: Run, report: Report) -> Iterator[None]:
    """Record the release around the block, which publishes it; a night may publish nothing.

    Raises, before the block, as :mod:`contract`, :mod:`series` and :mod:`overlap_check` do.
    """
    with ExitStack() as kept:
        if run.dataset.contract is not None:
            from mondrian_ops.pipeline import contract

            settled = contract.settled(run.dataset.contract, run.state)
            kept.enter_context(contract.recorded(job, run.work, settled))
        if run.dataset.night is not None:
            kept.enter_context(series.committed(job, run, report))
        if job.compares_people and not is_held(report):
            from mondrian_ops.pipeline import overlap_check

            kept.enter_context(overlap_check.recorded(job, run.work))
        yield


def confirm(job: Job, run: Run, report: Report) -> None:
    """Confirm the publication of an attempt that was killed after it published."""
    if job.compares_people and not is_held(report):
        from mondrian_ops.pipeline import overlap_check

        overlap_check.confirm(job, run.work)
    if run.dataset.night is not None and not is_held(report):
        series.confirm(job, run, report)
    if run.dataset.contract is not None:
        from mondrian_ops.pipeline import contract

        contract.confirm(job, run.work, contract.settled(run.dataset.contract, run.state))
