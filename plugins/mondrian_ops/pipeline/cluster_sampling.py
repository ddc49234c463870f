"""Whole fragments drawn from a large dataset, to measure loss and risk on without cutting it all.

A sample of rows is no smaller copy of a dataset: it is sparser, so that at the same k its classes
reach further and lose more. A fragment is as dense as the dataset. So the dataset is divided into
many fragments as a run divides it, some are drawn, evenly along the tree of the plan, and each is
anonymized as a run would, on the scale of the whole. That is a systematic cluster sample, and what
is lost per row a ratio estimate with a standard error (Cochran, Sampling Techniques, 1977,
chapters 6, 8 and 9A).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mondrian_ops import storage
from mondrian_ops.algorithms import planning
from mondrian_ops.algorithms.anonymizer import Anonymizer
from mondrian_ops.core import verification
from mondrian_ops.core.errors import PrivacyError
from mondrian_ops.core.job import Job, Partitioning
from mondrian_ops.core.profile import profiled_columns
from mondrian_ops.engines.counting import Counting
from mondrian_ops.engines.handover import Sample
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.profiling import Draw
from mondrian_ops.engines.run import Dataset, Run
from mondrian_ops.engines.threads import in_threads
from mondrian_ops.progress import Progress

__all__ = ["Size", "draw", "measure", "size_of"]

_PILOT = "pilot.arrow"
_DRAWN = "drawn.json"

# A fragment has room for so many classes of the largest k, so that its borders weigh little.
_CLASSES = 100
_LEAST_ROWS = 1_000
# Fewer fragments say little about the others; more are more open files and larger plans.
_LEAST_DRAWN, _MOST_DRAWN, _MOST_FRAGMENTS = 16, 400, 4_096
# The plan is made on so many rows for each: on fewer, its cuts are bad ones, and lose more.
_SAMPLE_PER_FRAGMENT = 200


class Size(NamedTuple):
    """How many fragments a dataset is divided into, and how many of them are drawn."""

    fragments: int
    drawn: int


def size_of(rows: int, wanted: int, k: int) -> Size | None:
    """The sample of about ``wanted`` rows for classes of up to ``k``; None: take all rows."""
    if wanted >= rows:
        return None
    each = max(_CLASSES * k, _LEAST_ROWS, -(-rows // _MOST_FRAGMENTS), -(-wanted // _MOST_DRAWN))
    size = Size(rows // each, max(_LEAST_DRAWN, round(wanted / each)))
    return size if size.drawn < size.fragments else None


def draw(dataset: Dataset, size: Size, work: str, progress: Progress) -> Sample:
    """Divide the dataset, and keep the rows of the drawn fragments in private working files.

    Two passes: the profile with the plan, and the rows.
    """
    run = Run(storage.WorkDir(work), replace(dataset, job=_lenient(dataset.job, size)))
    run.dataset.save(run.work)
    rows = dataset.source.rows
    run.save_draft(LocalEngine().draft(run, lambda read: progress("survey", read, rows)))
    seed = run.dataset.job.partitioning.seed
    leaves = _evenly(run.draft.plan.leaves, size.drawn, seed)
    kept = _keep(run, leaves, progress)
    run.work.write_json(_DRAWN, leaves)
    return Sample(work, rows, kept, fragments=run.draft.plan.leaves, drawn=len(leaves))


def measure(job: Job, work: str) -> dict[str, Any]:
    """The figures of ``job`` on the drawn fragments; sums are scaled to the whole dataset.

    Raises PrivacyError where the dataset cannot satisfy what is asked.
    """
    run = Run(storage.WorkDir(work))
    anonymizer = _anonymizer(job, run)
    drawn = [storage.read_fragment(run.work, leaf) for leaf in run.work.read_json(_DRAWN)]
    summaries, counter = [], None
    standing = list(_standing(anonymizer, drawn))
    for released, summary, _ in in_threads(anonymizer.release, standing):
        counter = counter or verification.counter_of(job, released.column_names)
        counter.add(released)
        summaries.append(summary)
    if counter is None:
        raise PrivacyError(
            "the drawn fragments together do not satisfy what is asked; ask for less"
        )
    count = counter.result()
    verdict = verification.check(count, job)
    if not verdict.passed:
        raise PrivacyError("the release would be refused: " + "; ".join(verdict.failures))
    share = len(drawn) / run.draft.plan.leaves
    figures = _figures(job, run.draft.profile.rows, summaries, count, verdict)
    return figures | {"GCP_error": _standard_error(job, summaries, share)}


def _lenient(job: Job, size: Size) -> Job:
    """The job without its requirements: what the points ask for is none of the plan's business."""
    partitioning = Partitioning(
        fragments=size.fragments,
        seed=job.partitioning.seed,
        min_sample=size.fragments * _SAMPLE_PER_FRAGMENT,
    )
    return replace(
        job,
        k=2,
        l=None,
        diversity="distinct",
        c=None,
        algorithm="mondrian",
        cut="median" if job.cut == "median" else "gain",
        relaxed=False,
        engine="local",
        partitioning=partitioning,
    )


def _evenly(fragments: int, drawn: int, seed: int) -> list[int]:
    """``drawn`` of the fragments at even distances, each as likely as any other."""
    step = fragments / min(drawn, fragments)
    first = np.random.default_rng(seed).uniform(0, step)
    return [int(first + at * step) for at in range(min(drawn, fragments))]


def _keep(run: Run, leaves: Sequence[int], progress: Progress) -> int:
    """Write the rows of the chosen leaves, and those of the pilot, to the working files."""
    job, source = run.dataset.job, run.dataset.source
    unasked = replace(job, sensitive=())  # nothing of theirs is to be counted
    columns = profiled_columns(job)
    counting = Counting(
        Anonymizer(unasked, run.draft.profile, run.dataset.hierarchies, run.anonymizer.cut),
        run.draft.plan,
        columns,
    )
    chosen = planning.chosen_rows(source.rows, planning.PILOT_ROWS, job.partitioning.seed)
    pilot = Draw(chosen, source.schema)
    wanted, seen, kept = set(leaves), 0, 0
    batches = _passing(pilot, source.batches(columns))
    with storage.FragmentWriter(run.work) as writer:
        for counts, routed in in_threads(counting.count, batches):
            for leaf, rows in routed:
                if leaf in wanted:
                    writer.append(leaf, rows)
                    kept += rows.num_rows
            seen += int(counts.rows.sum())
            progress("draw", seen, source.rows)
    run.work.write_arrow(_PILOT, pa.Table.from_batches(pilot.taken))
    return kept


def _passing(draw: Draw, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        draw.take_from(batch)
        yield batch


def _anonymizer(job: Job, run: Run) -> Anonymizer:
    """What a run of ``job`` would anonymize each of its fragments with."""
    survey, hierarchies = run.draft.profile, run.dataset.hierarchies
    pilot = run.work.read_arrow(_PILOT)
    whole = replace(job.partitioning, fragments=1, max_rows=survey.rows)
    draft = planning.draft(replace(job, partitioning=whole), survey, hierarchies, pilot, pilot)
    return draft.anonymizer(job, hierarchies)


def _standing(anonymizer: Anonymizer, drawn: Sequence[pa.Table]) -> Iterator[pa.Table]:
    """The fragments; one that cannot stand alone is merged with the next that was drawn.

    What is left over at the end, and cannot stand, is left out: there is no neighbour to take it.
    """
    waiting: list[pa.Table] = []
    for rows in drawn:
        waiting.append(rows)
        together = pa.concat_tables(waiting)
        if _stands(anonymizer, together):
            yield together
            waiting.clear()


def _stands(anonymizer: Anonymizer, rows: pa.Table) -> bool:
    domains = anonymizer.domains
    counts = [
        np.bincount(each.encode(rows[each.name]), minlength=len(each.counts)) for each in domains
    ]
    return anonymizer.privacy.holds(rows.num_rows, counts, domains)


def _figures(
    job: Job,
    rows: int,
    summaries: Sequence[Mapping[str, Any]],
    count: verification.ReleaseCount,
    verdict: verification.Verdict,
) -> dict[str, Any]:
    scale = rows / count.rows
    values = count.rows * len(job.quasi_identifiers)
    ncp = sum(summary["NCP"] for summary in summaries)
    lm = sum(each["LM"] for summary in summaries for each in summary["attributes"].values())
    return {
        "achieved": verdict.achieved,
        "rows": rows,
        "suppressed": 0,
        "equivalence_classes": round(count.classes * scale),
        "NCP": ncp * scale,
        "GCP": ncp / values,
        "LM": lm / values,
        "DP": round(count.dp * scale),
        "C_avg": count.c_avg(job.k),
        "risk_max": count.prosecutor_max,
        "risk_avg": count.prosecutor_avg,
    }


def _standard_error(job: Job, summaries: Sequence[Mapping[str, Any]], share: float) -> float | None:
    """Of GCP, a ratio of two sums over a ``share`` of the fragments; None where there is one."""
    n = len(summaries)
    if n < 2:
        return None
    rows = np.array([summary["rows"] for summary in summaries], np.float64)
    lost = np.array([summary["NCP"] for summary in summaries]) / len(job.quasi_identifiers)
    off = lost - lost.sum() / rows.sum() * rows
    return math.sqrt((1 - share) * n / (n - 1) * float(off @ off)) / float(rows.sum())
