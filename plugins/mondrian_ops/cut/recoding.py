"""Global recoding: every value of a column generalized alike in all rows.

A recoding is a node for each code, and the combinations of nodes whose rows are suppressed. Any
part of the dataset is recoded by look-up, without regard to the others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.data.encoding import Codes
from mondrian_ops.data.frequency_set import FrequencySet, group, packed
from mondrian_ops.data.hierarchy import MISSING, STAR, CodedHierarchy
from mondrian_ops.generalize.attributes import Classes
from mondrian_ops.late_methods import dataclass

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
