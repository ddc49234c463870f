"""Global recoding: every value of a column generalized alike in all rows.

Samarati's full-domain levels and the cuts of TDS both end in a recoding: a node for each code, and
the combinations of nodes whose rows are suppressed. Any part of the dataset is recoded by look-up,
without regard to the others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.cut import samarati
from mondrian_ops.cut.tds import Level, Map, TwoPhase, TwoPhaseResult
from mondrian_ops.data.encoding import Codes
from mondrian_ops.data.frequency_set import FrequencySet, group, packed
from mondrian_ops.data.hierarchy import MISSING, STAR, CodedHierarchy
from mondrian_ops.generalize.attributes import Classes
from mondrian_ops.job.job import Job

if TYPE_CHECKING:
    from mondrian_ops.cut.anonymizer import Anonymizer

Nodes = NDArray[np.int32]


@dataclass(frozen=True)
class Recoding:
    """The node to which each code is generalized.

    nodes
        by attribute: (codes,) int32, node of its hierarchy, or STAR.
    suppressed
        (attributes, combinations) int32, combinations of nodes whose rows are suppressed.
    figures
        for the report, a JSON value.
    """

    nodes: tuple[Nodes, ...]
    suppressed: Nodes
    figures: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        frequencies: FrequencySet,
        hierarchies: Sequence[CodedHierarchy],
        nodes: Sequence[Nodes],
        suppressed: Nodes,
        figures: dict[str, Any],
    ) -> Recoding:
        """A recoding to nodes of the hierarchies; a root over missing values is published "*"."""
        nodes, suppressed = [column.copy() for column in nodes], suppressed.copy()
        for a, (hierarchy, codes) in enumerate(
            zip(hierarchies, frequencies.codes(), strict=False)  # sensitive columns follow
        ):
            if (codes == MISSING).any():
                nodes[a][nodes[a] == hierarchy.root] = STAR
                suppressed[a][suppressed[a] == hierarchy.root] = STAR
        return cls(tuple(nodes), suppressed, figures)

    def classes(self, codes: Sequence[Codes]) -> tuple[Classes, Nodes]:
        """The classes of some rows, and the nodes of each, (attributes, classes).

        ``codes``: (rows,) of each attribute. Suppressed rows are in no class.
        """
        chosen = [nodes[column] for nodes, column in zip(self.nodes, codes, strict=True)]
        gone = self.suppressed.shape[1]
        columns = [np.concatenate(pair) + 1 for pair in zip(self.suppressed, chosen, strict=True)]
        words = packed(columns, [int(column.max(initial=0)) + 1 for column in columns])
        order, starts = group(words)
        published = order[starts] >= gone  # the order is stable: suppressed combinations come first
        sizes = np.diff(starts, append=len(order))
        index = (order[np.repeat(published, sizes)] - gone).astype(np.int32)
        sizes = sizes[published]
        starts = np.cumsum(sizes) - sizes
        first = index[starts]
        return Classes(index, starts), np.array([nodes[first] for nodes in chosen])

    def to_table(self) -> pa.Table:
        """One row of lists, for Arrow IPC; `from_table` reads it back."""
        columns = {}
        for a, nodes in enumerate(self.nodes):
            columns[f"nodes:{a}"] = pa.array([nodes])
            columns[f"suppressed:{a}"] = pa.array([self.suppressed[a]])
        return pa.table(columns).replace_schema_metadata({"figures": json.dumps(self.figures)})

    @classmethod
    def from_table(cls, table: pa.Table) -> Recoding:
        """The recoding that `to_table` wrote."""
        lists = [column.chunk(0).flatten().to_numpy() for column in table.columns]
        figures = json.loads(table.schema.metadata[b"figures"])
        return cls(tuple(lists[::2]), np.array(lists[1::2]), figures)


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
    job = anonymizer.job
    arguments = anonymizer.coded_hierarchies, anonymizer.privacy, anonymizer.counted_domains
    return TwoPhase(*arguments, job.tds, job.partitioning.seed)


def _full_domain(anonymizer: Anonymizer, frequencies: FrequencySet) -> Recoding:
    options = anonymizer.job.samarati
    hierarchies = anonymizer.coded_hierarchies
    result = samarati.search(
        frequencies,
        hierarchies,
        anonymizer.privacy,
        anonymizer.counted_domains,
        options.suppressible(frequencies.total),
        options.choice,
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
