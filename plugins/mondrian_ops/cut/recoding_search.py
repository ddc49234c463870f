"""The search for a dataset's recoding, by Samarati's full-domain levels or by the cuts of TDS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mondrian_ops.cut.anonymizer import Anonymizer
from mondrian_ops.cut.recoding import Recoding
from mondrian_ops.data.frequency_set import FrequencySet
from mondrian_ops.job.job import Job

if TYPE_CHECKING:
    from mondrian_ops.cut.algorithms.tds import Level, Map, TwoPhase, TwoPhaseResult


def first_phase_parts(job: Job) -> range:
    """The random parts of the rows that the first phase of TDS works on; empty for others."""
    return job.tds.parts if job.algorithm == "tds" else range(0)


def choose_recoding(
    anonymizer: Anonymizer,
    frequencies: FrequencySet,
    levels: Sequence[Level] | None = None,
    in_parallel: Map = map,
) -> Recoding:
    """The recoding of a dataset, by the job's algorithm, from the counts of its combinations.

    ``levels``: the result of the first phase of TDS for each part, if it is done; else
    ``in_parallel`` maps it over the parts. Raises PrivacyError where no recoding satisfies the
    criteria, JobError where Samarati's lattice is too large.
    """
    if anonymizer.job.algorithm == "samarati":
        return _full_domain(anonymizer, frequencies)
    search = two_phase(anonymizer)
    if levels is None:
        return _top_down(anonymizer, frequencies, search(frequencies, in_parallel))
    return _top_down(anonymizer, frequencies, search.second(frequencies, levels))


def two_phase(anonymizer: Anonymizer) -> TwoPhase:
    """Both phases of TDS, with the job's options."""
    from mondrian_ops.cut.algorithms.tds import TwoPhase

    job = anonymizer.job
    arguments = anonymizer.coded_hierarchies, anonymizer.privacy, anonymizer.counted_domains
    return TwoPhase(*arguments, job.tds, job.partitioning.seed, anonymizer.persons_values)


def _full_domain(anonymizer: Anonymizer, frequencies: FrequencySet) -> Recoding:
    from mondrian_ops.cut.algorithms import samarati

    options = anonymizer.job.samarati
    hierarchies = anonymizer.coded_hierarchies
    result = samarati.search(
        frequencies,
        hierarchies,
        anonymizer.privacy,
        anonymizer.counted_domains,
        options.suppressible(frequencies.total),
        options.choice,
        anonymizer.persons_values,
    )
    levels = dict(zip(anonymizer.job.quasi_identifier_names, result.levels, strict=True))
    figures = {
        "levels": levels,
        "height": result.height,
        "lattice_nodes": result.nodes,
        "checked_nodes": result.checked,
        "loss": result.loss,
        "summary": f"{options.choice} of {result.nodes:,} lattice nodes, {result.checked:,} of "
        f"which were checked; height {result.height}",
    }
    nodes = [
        hierarchy.levels[level] for hierarchy, level in zip(hierarchies, result.levels, strict=True)
    ]
    return Recoding.of(frequencies, hierarchies, nodes, result.suppressed, figures)


def _top_down(
    anonymizer: Anonymizer, frequencies: FrequencySet, result: TwoPhaseResult
) -> Recoding:
    hierarchies = anonymizer.coded_hierarchies
    k, first = result.k_intermediate, [len(level.steps) for level in result.partitions]
    second = len(result.final.steps)
    summary = f"{second} specialization{'s' * (second != 1)}"
    if first:
        summary = (
            f"{min(first)} to {max(first)} specializations in each of {len(first)} parts for k = "
            f"{k:,}, then {second} of all rows, starting at the level that the parts share"
        )
    figures = {
        "metrics": {"ILoss": result.iloss},
        "k_intermediate": k,
        "specializations": {"parts": first, "whole": second},
        "summary": summary,
    }
    suppressed = np.zeros((len(hierarchies), 0), np.int32)
    return Recoding.of(frequencies, hierarchies, result.final.cuts, suppressed, figures)
