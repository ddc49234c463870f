"""Phase two: fragments become parts of the release."""

from __future__ import annotations

from typing import Any

from mondrian_ops import storage
from mondrian_ops.core.job import Job
from mondrian_ops.core.plan import check_schema
from mondrian_ops.engines import Engine, engine_of
from mondrian_ops.engines.fragment import Fragment, Summary
from mondrian_ops.engines.run import Run

__all__ = ["anonymize_fragment"]


def anonymize_fragment(
    job: Job, fragment: Fragment, engine: Engine | None = None, cores: int = 1
) -> dict[str, Any] | Summary:
    """One fragment cut, generalized and written as one part of the release.

    Returns a small summary: ``{"id", "where", "rows", "equivalence_classes", "DP", "NCP",
    "attributes", "seconds", "finished"}``; for several fragments in one, ``{"summaries"}`` of them.
    A retry keeps the parts that are there. Without an ``engine`` it is the job's; the local one
    takes so many ``cores``: a worker that runs several tasks has no more for each.

    Raises InputError where the input changed since it was counted, StorageError where the working
    files vanished.
    """
    check_schema(fragment)
    run = Run(storage.WorkDir.entered(fragment["work"]))
    run.dataset  # noqa: B018 - where the working files cannot be seen, say so before all else
    engine = engine or engine_of(job, cores)
    if "fragments" in fragment:
        return {"summaries": list(engine.anonymize(run, run.state["fragments"]))}
    (summary,) = engine.anonymize(run, [fragment])
    return summary
