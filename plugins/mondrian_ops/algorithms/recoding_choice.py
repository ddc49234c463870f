"""Which recoding a job gets: by the algorithm that it names.

What few jobs need is imported late: compiled functions take time to load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.algorithms.anonymizer import Anonymizer
from mondrian_ops.algorithms.recoding import Recoding
from mondrian_ops.core.frequency_set import FrequencySet
from mondrian_ops.core.job import Job
from mondrian_ops.core.taxonomy import Taxonomy

if TYPE_CHECKING:
    from mondrian_ops.algorithms.specialization import Level

__all__ = ["choose_recoding", "parts", "specialized"]


def parts(job: Job) -> int:
    """Random parts of the rows that a first phase works on side by side; 0: there is none."""
    return job.tds.partitions if job.algorithm == "tds" and job.tds.partitions > 1 else 0


def specialized(anonymizer: Anonymizer, frequencies: FrequencySet, part: int) -> Level:
    """The first phase on one of the `parts`: what its rows by themselves allow."""
    from mondrian_ops.algorithms import tds

    job, privacy = anonymizer.job, anonymizer.privacy
    dealt = tds.partition(frequencies, part, parts(job), job.partitioning.seed)
    k = tds.intermediate_k(frequencies.total, parts(job), privacy, job.tds.k_intermediate)
    return tds.partition_level(dealt, anonymizer.taxonomies, privacy, anonymizer.domains, k)


def choose_recoding(
    anonymizer: Anonymizer, frequencies: FrequencySet, levels: Sequence[Level] = ()
) -> Recoding:
    """The recoding of the dataset whose combinations of codes were counted.

    ``levels``: what `specialized` found for each of the `parts`. Raises PrivacyError where no
    recoding satisfies what is asked.
    """
    if anonymizer.job.algorithm == "samarati":
        return _full_domain(anonymizer, frequencies)
    return _top_down(anonymizer, frequencies, levels)


def _full_domain(anonymizer: Anonymizer, frequencies: FrequencySet) -> Recoding:
    from mondrian_ops.algorithms import samarati

    options = anonymizer.job.samarati
    taxonomies = anonymizer.taxonomies
    found = samarati.search(
        frequencies,
        taxonomies,
        anonymizer.privacy,
        anonymizer.domains,
        options.suppressible(frequencies.total),
        options.choice,
    )
    levels = dict(zip(anonymizer.job.quasi_identifier_names, found.levels, strict=True))
    told = {
        "levels": levels,
        "height": found.height,
        "lattice_nodes": found.nodes,
        "checked_nodes": found.checked,
        "loss": found.loss,
        "summary": f"{options.choice} of {found.nodes:,} nodes of the lattice, of which the "
        f"classes of {found.checked:,} were counted; height {found.height}",
    }
    nodes = [
        taxonomy.levels[level] for taxonomy, level in zip(taxonomies, found.levels, strict=True)
    ]
    return Recoding.of(frequencies, taxonomies, nodes, found.suppressed, told)


def _top_down(
    anonymizer: Anonymizer, frequencies: FrequencySet, levels: Sequence[Level]
) -> Recoding:
    from mondrian_ops.algorithms import tds

    privacy, taxonomies, asked = anonymizer.privacy, anonymizer.taxonomies, anonymizer.job.tds
    rows = frequencies.total
    k = tds.intermediate_k(rows, asked.partitions, privacy, asked.k_intermediate)
    found = tds.finish(frequencies, taxonomies, privacy, anonymizer.domains, k, levels)
    first = [len(level.steps) for level in levels]
    second = len(found.final.steps)
    summary = f"{second} specialization{'s' * (second != 1)}"
    if first:
        summary = (
            f"{min(first)} to {max(first)} specializations in each of {len(first)} parts for "
            f"k = {k:,}, then {second} of all rows from the level that they share"
        )
    told = {
        "metrics": {"ILoss": found.iloss},
        "k_intermediate": k,
        "specializations": {"parts": first, "whole": second},
        "summary": summary,
    }
    return Recoding.of(frequencies, taxonomies, found.cuts, _none(taxonomies), told)


def _none(taxonomies: Sequence[Taxonomy]) -> NDArray[np.int32]:
    """No combination is suppressed."""
    return np.zeros((len(taxonomies), 0), np.int32)
