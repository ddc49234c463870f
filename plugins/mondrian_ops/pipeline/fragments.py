"""Phase two, which runs in a task for each fragment; it imports nothing of the other phases."""

from __future__ import annotations

from mondrian_ops import publish, series
from mondrian_ops.engines import Engine, engine_of
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.run import Run
from mondrian_ops.progress import Display, Progress


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


def set_class_maker(run: Run) -> None:
    """Let the run form the classes that its job asks for."""
    if run.dataset.job.follows_persons:
        run.class_maker = series.form_classes


def _entered(work: str) -> Run:
    run = Run(publish.WorkDir.attach(work))
    set_class_maker(run)  # raises StorageError where the working files cannot be read
    return run


def discard(work: str) -> None:
    """Remove the working files of a run; nothing happens where there are none."""
    publish.WorkDir(work).remove()
