"""The phases of a job one by one, as Airflow's tasks call them, the first phase of TDS mapped."""

from __future__ import annotations

import json
from typing import Any

from mondrian_ops import pipeline, publish
from mondrian_ops.job.job import Job


def run_mapped(job: Job, work: str | None = None) -> dict[str, Any]:
    """Every part and fragment by itself, the last first; the report of the release."""
    work = work or publish.work_path(str(job.output), "mapped")
    try:
        parts = travelled(pipeline.parts_to_map(job, work))
        assert parts, "there is no first phase to map"
        pipeline.partition(job, work=work, recode=False)
        specialized = [travelled(pipeline.specialize_part(part)) for part in reversed(parts)]
        fragments = travelled(pipeline.recode(work, specialized))
        summaries = [pipeline.anonymize_fragment(each) for each in reversed(fragments)]
        return pipeline.wrap_up(job, work=work, summaries=travelled(summaries))
    finally:
        pipeline.discard(work)


def travelled(value: Any) -> Any:
    """What a task returned, as the next one gets it."""
    if isinstance(value, list):
        return [travelled(each) for each in value]
    return type(value).from_dict(json.loads(json.dumps(value.to_dict(), allow_nan=False)))
