"""Recoding in tasks of its own: the first phase part by part, then the decision for all rows.

Both work on what :func:`~mondrian_ops.pipeline.partition` without ``recode`` has left.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from mondrian_ops import storage
from mondrian_ops.algorithms.recoding import choose_recoding, first_phase_parts, two_phase
from mondrian_ops.core.job import Job
from mondrian_ops.engines.handover import Fragment, Part, PartSummary
from mondrian_ops.engines.run import Run
from mondrian_ops.pipeline.partition import recoded, to_map

__all__ = ["parts_to_map", "recode", "specialize_part"]


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
    run = Run(storage.WorkDir.attach(part.work))
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
    run = Run(storage.WorkDir.attach(work))
    state = run.state
    if state.recoding is None:
        levels = [run.level(part) for part in first_phase_parts(run.dataset.job)]
        run.save_recoding(choose_recoding(run.anonymizer, run.frequencies, levels))
        timings = dict(state.timings_s)
        if summaries:
            began = min(each.finished - each.seconds for each in summaries)
            timings["specialize_part"] = max(each.finished for each in summaries) - began
        state = recoded(run, state)
        timings["recode"] = time.perf_counter() - started
        run.save_state(replace(state, timings_s=timings))
    return to_map(run)
