"""Phase three: check the release as written, measure it, publish it, or refuse."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import pyarrow as pa

from mondrian_ops import report as reports
from mondrian_ops import storage
from mondrian_ops.core import verification
from mondrian_ops.core.errors import PrivacyError, StorageError
from mondrian_ops.core.job import Job
from mondrian_ops.engines.fragment import Summary
from mondrian_ops.engines.local import in_threads
from mondrian_ops.engines.run import Run
from mondrian_ops.pipeline.assembly import Report, assembled
from mondrian_ops.pipeline.checks import hierarchies_of, lost_rows
from mondrian_ops.progress import Display, Progress

__all__ = ["wrap_up"]


def wrap_up(
    job: Job, *, work: str, summaries: Sequence[Summary], progress: Progress | None = None
) -> Report:
    """Phase three: check the release as written, measure it, publish it; returns the report.

    Raises PrivacyError, and publishes nothing, when a class of the release fails; StorageError when
    a part or the working files vanished.
    """
    progress = progress or Display()
    started = time.perf_counter()
    directory = storage.WorkDir.entered(work)
    state = Run(directory).state
    if storage.published(str(job.output), directory.token):  # by an attempt that then was killed
        storage.publish(directory.staging, str(job.output), directory.token)  # tidies up after it
        return reports.parsed(storage.read_file(f"{job.output}/{reports.JSON_NAME}"))
    summaries = _by_fragment(summaries)
    lacking = len(state["leaves"]) - len({summary["id"] for summary in summaries})
    if lacking:
        raise StorageError(
            f"{lacking} of {len(state['leaves'])} fragments were not anonymized, so nothing is "
            "published; see their tasks, then run again from the partition task"
        )
    count, parts = _recounted(job, directory, summaries, progress)
    verdict = verification.check(count, job, hierarchies_of(job, of_sensitive=True))
    suppressed = sum(summary["suppressed"] for summary in summaries)
    failures = [*verdict.failures, *lost_rows(job, state["rows"], count.rows, suppressed)]
    if failures:
        raise PrivacyError("the release is refused and not published: " + "; ".join(failures))
    for summary, part in zip(summaries, parts, strict=True):
        summary["equivalence_classes"], summary["DP"] = part.classes, part.dp
    report = assembled(job, state, summaries, count, verdict, started)
    for name, content in reports.files(report).items():
        storage.write_file(f"{directory.staging}/{name}", content)
    storage.publish(directory.staging, str(job.output), directory.token)
    return report


def _by_fragment(summaries: Sequence[Summary]) -> list[Summary]:
    """One summary per fragment, in order; some tasks had several fragments."""
    each = [one for summary in summaries for one in summary.get("summaries", [summary])]
    return sorted(each, key=lambda summary: int(summary["id"]))


def _recounted(
    job: Job, directory: storage.WorkDir, summaries: Sequence[Summary], progress: Progress
) -> tuple[verification.ReleaseCount, list[verification.PartCount]]:
    """The release counted from its files, whole and part by part."""
    counter = None
    parts = []
    paths = [directory.part_path(summary["id"]) for summary in summaries]
    staged = directory.staged()
    stray = staged - {os.path.basename(path) for path in paths}
    stray -= {reports.JSON_NAME, reports.HTML_NAME, "_SUCCESS"}  # of an attempt before
    if stray:
        raise StorageError(
            f"{directory.staging}: holds {len(stray)} file(s) of no fragment; run again from the "
            "partition task"
        )
    for summary, path in zip(summaries, paths, strict=True):
        if os.path.basename(path) not in staged:
            raise StorageError(
                f"part of fragment {summary['id']}: vanished between tasks; run again from the "
                "partition task"
            )
    # Parts are read ahead in threads and counted here, in order.
    for name, table in in_threads(_read_part, paths):
        counter = counter or verification.counter_of(job, table.column_names)
        parts.append(counter.add(table, name))
        progress("wrap_up", len(parts), len(summaries))
    if counter is None:
        raise StorageError("there are no fragments to wrap up; run again from the partition task")
    return counter.result(), parts


def _read_part(path: str) -> tuple[str, pa.Table]:
    ((name, table),) = storage.read_release(path)
    return name, table
