"""Taxonomies: what a code of a quasi-identifier can be generalized to, up to the common root.

The view of a hierarchy that recoding whole columns needs: nodes above codes, the missing value
beside all others under the root.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.core.hierarchy import Hierarchy

__all__ = ["MISSING", "STAR", "Nodes", "Taxonomy"]

MISSING = 0
"""The node of the missing value."""
STAR = -1
"""Published "*": a value that is missing in some rows and present in others."""

Nodes = NDArray[np.int32]


@dataclass(frozen=True)
class Taxonomy:
    """The nodes above the codes of one quasi-identifier.

    Node 0 is the missing value; node n + 1 is node n of the hierarchy.

    levels
        (depth, codes) int32, the node above each code: row 0 holds the code's own leaf, the last
        row the root. Where a branch is shorter its leaf is repeated from below, as the missing
        value is, so that an inner node is on one row only and its children are on the row before.
    ncp, lm
        (nodes,) float64, loss of publishing the node: NCP and Iyengar's. A leaf loses nothing.
    leaves
        (nodes,) int64, leaves under the node; 0 for the missing value.
    """

    levels: Nodes
    ncp: NDArray[np.float64]
    lm: NDArray[np.float64]
    leaves: NDArray[np.int64]

    @classmethod
    def of(cls, hierarchy: Hierarchy, order: NDArray[np.int64]) -> Taxonomy:
        """The taxonomy over codes 1, 2, ..., the leaves of ``hierarchy`` in this ``order``."""
        above = hierarchy.ancestors[:, order] + 1
        missing = np.zeros((len(above), 1), np.int32)
        missing[-1] = hierarchy.root + 1
        ncp, lm = hierarchy.losses()
        return cls(
            levels=np.ascontiguousarray(np.hstack([missing, above]), np.int32),
            ncp=np.concatenate([[0.0], ncp]),
            lm=np.concatenate([[0.0], lm]),
            leaves=np.concatenate([[0], hierarchy.leaf_count]).astype(np.int64),
        )

    def parents(self) -> Nodes:
        """(nodes,) the node above each; -1 above the root and above nodes that no code is under."""
        parent = np.full(self.nodes, -1, np.int32)
        for child, above in zip(self.levels[:-1], self.levels[1:], strict=True):
            parent[child] = np.where(child == above, parent[child], above)
        return parent

    @property
    def height(self) -> int:
        """The level of the root; levels count from 0, the values themselves."""
        return len(self.levels) - 1

    @property
    def root(self) -> int:
        """The node above all others."""
        return int(self.levels[-1, 0])

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.leaves)
