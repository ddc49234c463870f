"""t-closeness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.criteria.base import CutCriterion, Tables
from mondrian_ops.cut.native import class_criteria
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class TCloseness(CutCriterion):
    """Distribution within t of the whole dataset's (Li, Li and Venkatasubramanian 2007).

    The distance is the variational one (``equal``), or the earth mover's over the order of the
    values (``ordered``) or over a hierarchy (``hierarchical``); sections 5.1 to 5.3. The missing
    value counts like any other: a class that has more of it than others discloses something, too.
    """

    distance: str
    hierarchy: Hierarchy | None = None

    @classmethod
    def of(cls, job: Job, column: str, hierarchies: Mapping[str, Hierarchy]) -> Self | None:
        if job.t is None:
            return None
        return cls(column, job.t, job.t_distance, hierarchies.get(column))

    @property
    def kind(self) -> int:  # type: ignore[override]
        return {
            "equal": class_criteria.T_EQUAL,
            "ordered": class_criteria.T_ORDERED,
            "hierarchical": class_criteria.T_TREE,
        }[self.distance]

    def __str__(self) -> str:
        return f"t-closeness of {self.column}, t = {self.level:g}, {self.distance} distance"

    def tables(self, domain: SensitiveDomain) -> Tables:
        share = domain.counts / max(1, domain.counts.sum())
        if self.hierarchy is None:
            return Tables(share)
        return Tables(share, *_tree(self.hierarchy, domain))


def _tree(
    hierarchy: Hierarchy, domain: SensitiveDomain
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Parents and relative heights of a sensitive hierarchy, nodes after all their children.

    The first nodes are the codes of ``domain`` (its values are the hierarchy's leaves); a missing
    value is one more leaf right under the root.
    """
    height = np.zeros(len(hierarchy.parent), np.int64)
    for level, nodes in enumerate(hierarchy.ancestors):
        np.maximum.at(height, nodes, level)
    inner = np.arange(len(hierarchy.leaves), len(hierarchy.parent))
    inner = inner[np.argsort(height[inner], kind="stable")]
    shift = int(domain.missing)
    order = np.concatenate([np.arange(len(hierarchy.leaves)), inner])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) + shift
    parent = hierarchy.parent[order]
    placed = np.where(parent >= 0, place[parent], -1)
    heights = height[order] / max(1, height.max())
    if shift:
        placed = np.concatenate([[place[order[-1]]], placed])
        heights = np.concatenate([[0.0], heights])
    return placed.astype(np.int32), heights.astype(np.float64)
