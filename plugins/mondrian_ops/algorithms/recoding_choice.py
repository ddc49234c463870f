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
from mondrian_ops.core.hierarchy import CodedHierarchy
from mondrian_ops.core.job import Job

if TYPE_CHECKING:
    from mondrian_ops.algorithms.specialization import Level
    from mondrian_ops.algorithms.tds import Found, Map, TwoPhase

__all__ = ["choose_recoding", "parts", "specialized"]


def parts(job: Job) -> range:
    """Random parts of the rows that a first phase works on side by side, if there is one."""
    return job.tds.parts if job.algorithm == "tds" else range(0)


def specialized(anonymizer: Anonymizer, frequencies: FrequencySet, part: int) -> Level:
    """The first phase on one of the `parts`: what its rows by themselves allow."""
    return _two_phase(anonymizer).first(frequencies, part)


def choose_recoding(
    anonymizer: Anonymizer,
    frequencies: FrequencySet,
    levels: Sequence[Level] | None = None,
    in_parallel: Map = map,
) -> Recoding:
    """The recoding of the dataset whose combinations of codes were counted.

    ``levels``: what `specialized` found for each of the `parts`, where that is done already; else
    ``in_parallel`` maps the first phase over them. Raises PrivacyError where no recoding satisfies
    what is asked.
    """
    if anonymizer.job.algorithm == "samarati":
        return _full_domain(anonymizer, frequencies)
    search = _two_phase(anonymizer)
    if levels is None:
        return _top_down(anonymizer, frequencies, search(frequencies, in_parallel))
    return _top_down(anonymizer, frequencies, search.second(frequencies, levels))


def _two_phase(anonymizer: Anonymizer) -> TwoPhase:
    from mondrian_ops.algorithms.tds import TwoPhase

    job = anonymizer.job
    asked = anonymizer.coded_hierarchies, anonymizer.privacy, anonymizer.counted_domains
    return TwoPhase(*asked, job.tds, job.partitioning.seed)


def _full_domain(anonymizer: Anonymizer, frequencies: FrequencySet) -> Recoding:
    from mondrian_ops.algorithms import samarati

    options = anonymizer.job.samarati
    hierarchies = anonymizer.coded_hierarchies
    found = samarati.search(
        frequencies,
        hierarchies,
        anonymizer.privacy,
        anonymizer.counted_domains,
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
        hierarchy.levels[level] for hierarchy, level in zip(hierarchies, found.levels, strict=True)
    ]
    return Recoding.of(frequencies, hierarchies, nodes, found.suppressed, told)


def _top_down(anonymizer: Anonymizer, frequencies: FrequencySet, found: Found) -> Recoding:
    hierarchies = anonymizer.coded_hierarchies
    k, first = found.k_intermediate, [len(level.steps) for level in found.partitions]
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
    return Recoding.of(frequencies, hierarchies, found.cuts, _none(hierarchies), told)


def _none(hierarchies: Sequence[CodedHierarchy]) -> NDArray[np.int32]:
    """No combination is suppressed."""
    return np.zeros((len(hierarchies), 0), np.int32)
