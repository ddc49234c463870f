"""A sample of whole fragments of a large dataset, to measure loss and risk without cutting it all.

A sample of rows is sparser than the dataset, so that at the same k its classes reach further and
lose more. A fragment is as dense as the dataset. So the dataset is divided into many fragments, as
a run divides it; some are drawn, evenly along the tree of the plan; and each is anonymized as a run
would, with the spans of the whole dataset. That is a systematic cluster sample, and the loss per
row is a ratio estimate with a standard error (Cochran, Sampling Techniques, 1977, chapters 6, 8 and
9A).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mondrian_ops import publish
from mondrian_ops.cut import planning
from mondrian_ops.cut.anonymizer import Anonymizer, Released
from mondrian_ops.data.profile import Profile, profiled_columns
from mondrian_ops.engines.handover import Sample
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.run import Dataset, Run
from mondrian_ops.engines.scan import Counting, SampledRows
from mondrian_ops.engines.threads import at_once, in_threads, shared_rows
from mondrian_ops.engines.use_samples import SAMPLED
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.job.sections import Partitioning
from mondrian_ops.progress import Progress
from mondrian_ops.tables.batch_sizes import BATCH_ROWS
from mondrian_ops.verify import requirements
from mondrian_ops.verify.arrays import decoded
from mondrian_ops.verify.counts import PartCount, ReleaseCount
from mondrian_ops.verify.labels import labels_of_job
from mondrian_ops.verify.use import columns_of_table, query_errors

_PILOT = "pilot.arrow"
_DRAWN = "drawn.json"

# A fragment has room for so many classes of the largest k, so that its borders matter little.
_CLASSES = 100
_LEAST_ROWS = 1_000
# Fewer fragments do not represent the others; more need more open files and larger plans.
_LEAST_DRAWN, _MOST_DRAWN, _MOST_FRAGMENTS = 16, 400, 4_096
# Rows per fragment in the sample of the plan: fewer lead to worse cuts.
_SAMPLE_PER_FRAGMENT = 200


class Size(NamedTuple):
    """The number of fragments that a dataset is divided into, and how many of them are drawn."""

    fragments: int
    drawn: int


def size_of(rows: int, wanted: int, k: int) -> Size | None:
    """The size of a sample of about ``wanted`` rows, for classes of up to ``k``; None: all rows."""
    if wanted >= rows:
        return None
    each = max(_CLASSES * k, _LEAST_ROWS, -(-rows // _MOST_FRAGMENTS), -(-wanted // _MOST_DRAWN))
    size = Size(rows // each, max(_LEAST_DRAWN, round(wanted / each)))
    return size if size.drawn < size.fragments else None


def draw(dataset: Dataset, size: Size, work: str, progress: Progress) -> Sample:
    """Divide the dataset, and copy the rows of the drawn fragments to private working files.

    Takes two passes over the source: one for profile and plan, one for the rows.
    """
    run = Run(publish.WorkDir(work), replace(dataset, job=_lenient(dataset.job, size)))
    run.dataset.save(run.work)
    rows = dataset.source.rows
    with dataset.source.unchanged():
        LocalEngine().draft(run, lambda read: progress("profile", read, rows))
        seed = run.dataset.job.partitioning.seed
        leaves = _evenly(run.draft.plan.leaves, size.drawn, seed)
        kept = _keep(run, leaves, progress)
    run.work.write_json(_DRAWN, leaves)
    return Sample(work, rows, kept, fragments=run.draft.plan.leaves, drawn=len(leaves))


def measure(job: Job, work: str) -> dict[str, Any]:
    """The figures of ``job`` on the drawn fragments; sums are scaled to the whole dataset.

    Raises PrivacyError where the dataset cannot satisfy the criteria.
    """
    run = Run(publish.WorkDir(work))
    # Losses are measured on what is published: text says more than bounds do.
    job = replace(job, interval_style="text")
    pilot = run.work.read_arrow(_PILOT)
    profile = run.draft.profile.with_quantiles(job, pilot)  # grids depend on k
    anonymizer = _anonymizer(job, run, profile, pilot)
    labels = labels_of_job(
        profile.resolved(job),
        profile.types,
        profile.domains,
        profile.boundaries,
        run.dataset.hierarchies,
        profile.pointed,
        profile.counts,
        profile.quantiles,
        profile.robust_ends,
    )
    fragments = [publish.read_fragment(run.work, leaf) for leaf in run.work.read_json(_DRAWN)]
    parts, counter = list[PartCount](), None
    merged = list(_merged(anonymizer, fragments))
    threads = at_once(max((rows.num_rows for rows in merged), default=0))
    samples: list[tuple[pa.Table, pa.Table]] = []
    most = -(-SAMPLED // max(1, len(merged)))
    for rows, released in zip(merged, in_threads(anonymizer.release, merged, threads), strict=True):
        table = released.table
        counter = counter or requirements.counter_of(job, table.column_names, labels=labels)
        parts.append(counter.add(table))
        samples.append(_sampled(rows, released, most))
    if counter is None:
        raise PrivacyError(
            "the sampled fragments together do not meet the requirements; lower k or l, or raise t"
        )
    count = counter.result()
    verdict = requirements.check(count, job)
    if not verdict.passed:
        raise PrivacyError("the release would be refused: " + "; ".join(verdict.failures))
    share = len(fragments) / run.draft.plan.leaves
    figures = _figures(job, profile.rows, parts, count, verdict)
    raw, shown = (pa.concat_tables(each) for each in zip(*samples, strict=True))
    errors = query_errors(list(columns_of_table(labels, raw, shown).values()), job.k)
    return figures | {
        "GCP_error": _standard_error(job, parts, share),
        "query_error": None if errors is None else errors.median,
    }


def _sampled(rows: pa.Table, released: Released, most: int) -> tuple[pa.Table, pa.Table]:
    """Up to ``most`` of the rows, as they came and as they are published."""
    names = [name for name in released.table.column_names if name in rows.column_names]
    by_row = np.argsort(released.order)  # rows are published in random order
    drawn = pa.array(by_row[planning.chosen_rows(len(by_row), most, 0)])
    raw = rows.take(pa.array(released.order).take(drawn))
    return raw, pa.table({name: decoded(released.table[name].take(drawn)) for name in names})


def _lenient(job: Job, size: Size) -> Job:
    """The job without its criteria: the plan is the same for all points."""
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
        l_width={},
        algorithm="mondrian",
        cut="median" if job.cut == "median" else "gain",
        relaxed=False,
        engine="local",
        partitioning=partitioning,
    )


def _evenly(fragments: int, drawn: int, seed: int) -> list[int]:
    """``drawn`` of the fragments at even distances, each with the same probability."""
    step = fragments / min(drawn, fragments)
    first = np.random.default_rng(seed).uniform(0, step)
    return [int(first + at * step) for at in range(min(drawn, fragments))]


def _keep(run: Run, leaves: Sequence[int], progress: Progress) -> int:
    """Write the rows of the chosen leaves to the working files, and the pilot; the rows kept."""
    job, source = run.dataset.job, run.dataset.source
    uncounted = replace(job, sensitive=())  # their values need no count
    columns = profiled_columns(job)
    counting = Counting(
        Anonymizer(uncounted, run.draft.profile, run.dataset.hierarchies, run.anonymizer.cut),
        run.draft.plan,
        columns,
    )
    pilot = SampledRows(source, columns, planning.PILOT_ROWS, job.partitioning.seed)
    wanted, seen, kept = set(leaves), 0, 0
    read = source.batches(columns, batch_rows=shared_rows(BATCH_ROWS), lists=False)
    batches = _passing(pilot, read)
    with publish.FragmentWriter(run.work) as writer:
        for counts, routed in in_threads(counting.count, counting.blocks(batches)):
            for leaf, rows in routed:
                if leaf in wanted:
                    writer.append(leaf, rows)
                    kept += rows.num_rows
            seen += int(counts.rows.sum())
            progress("draw", seen, source.rows)
    run.work.write_arrow(_PILOT, pa.Table.from_batches(pilot.taken))
    return kept


def _passing(rows: SampledRows, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows.take_from(batch)
        yield batch


def _anonymizer(job: Job, run: Run, profile: Profile, pilot: pa.Table) -> Anonymizer:
    """The anonymizer of a run of ``job`` on a dataset of this ``profile``."""
    hierarchies = run.dataset.hierarchies
    whole = replace(job.partitioning, fragments=1, max_rows=profile.rows)
    draft = planning.draft(replace(job, partitioning=whole), profile, hierarchies, pilot, pilot)
    return draft.anonymizer(job, hierarchies)


def _merged(anonymizer: Anonymizer, fragments: Sequence[pa.Table]) -> Iterator[pa.Table]:
    """The fragments; one that breaks a criterion is merged with the next.

    A last one that breaks a criterion is left out, since no other follows.
    """
    waiting: list[pa.Table] = []
    for rows in fragments:
        waiting.append(rows)
        together = pa.concat_tables(waiting)
        counts = [
            np.bincount(domain.encode(together[domain.name]), minlength=len(domain.counts))
            for domain in anonymizer.domains
        ]
        if anonymizer.privacy.holds(together.num_rows, counts, anonymizer.domains):
            yield together
            waiting.clear()


def _figures(
    job: Job,
    rows: int,
    parts: Sequence[PartCount],
    count: ReleaseCount,
    verdict: requirements.Verdict,
) -> dict[str, Any]:
    scale = rows / count.rows
    values = count.rows * len(job.quasi_identifiers)
    ncp, lm = (sum(_lost(part, metric) for part in parts) for metric in ("NCP", "LM"))
    return {
        "achieved": verdict.achieved,
        "rows": rows,
        "suppressed": 0,
        "equivalence_classes": round(count.classes * scale),
        "NCP": ncp * scale,
        "GCP": ncp / values,
        "LM": lm / values,
        "GCP_robust": sum(_lost(part, "NCP_robust") for part in parts) / values,
        "information_lost": _information_lost(job, parts, count.rows),
        "DP": round(count.dp * scale),
        "C_avg": count.c_avg(job.k),
        "risk_max": count.prosecutor_max,
        "risk_avg": count.prosecutor_avg,
    }


def _lost(part: PartCount, metric: str) -> float:
    """The losses of a part over all quasi-identifiers."""
    return sum(float(losses[metric]) for losses in part.losses.values())


def _information_lost(job: Job, parts: Sequence[PartCount], rows: int) -> float:
    """The share of the columns' bits that is lost, by their weights."""
    weights = {each.name: float(each.weight) for each in job.quasi_identifiers}
    lost = sum(
        weight * min(1.0, sum(part.losses[name]["information"] for part in parts) / rows)
        for name, weight in weights.items()
    )
    return float(lost) / sum(weights.values())


def _standard_error(job: Job, parts: Sequence[PartCount], share: float) -> float | None:
    """The standard error of GCP, a ratio of two sums over a ``share`` of the fragments.

    None for a single fragment.
    """
    n = len(parts)
    if n < 2:
        return None
    rows = np.array([part.rows for part in parts], np.float64)
    lost = np.array([_lost(part, "NCP") for part in parts]) / len(job.quasi_identifiers)
    off = lost - lost.sum() / rows.sum() * rows
    return math.sqrt((1 - share) * n / (n - 1) * float(off @ off)) / float(rows.sum())
