"""Searches of the lattice over small hierarchies."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from mondrian_ops.algorithms.samarati import search
from mondrian_ops.core.criteria import Privacy, SensitiveDomain
from mondrian_ops.core.frequency_set import FrequencySet
from mondrian_ops.core.hierarchy import Hierarchy
from mondrian_ops.core.job import Job
from mondrian_ops.core.taxonomy import Taxonomy

__all__ = [
    "CHOICES",
    "EVEN",
    "FLAT",
    "SENSITIVE",
    "TREES",
    "UNEVEN",
    "coded",
    "domain_of",
    "privacy_of",
    "searched",
    "suppressed_labels",
    "taxonomy",
    "tree",
    "way_up",
]

CHOICES = ("first", "minimal", "optimal")
EVEN = {"a1": "AM*", "a2": "AM*", "a3": "BM*", "a4": "BM*", "a5": "CN*", "a6": "CN*"}
UNEVEN = {"b1": "PQ*", "b2": "PQ*", "b3": "Q*", "b4": "*"}
FLAT = {"c1": "*", "c2": "*"}
TREES = [EVEN, UNEVEN, FLAT, {"d1": "*"}]
SENSITIVE = ["x", "y", "z"]


def tree(chains) -> Hierarchy:
    return Hierarchy.from_rows([[leaf, *above] for leaf, above in chains.items()], "tree")


def taxonomy(hierarchy: Hierarchy) -> Taxonomy:
    return Taxonomy.of(hierarchy, np.arange(len(hierarchy.leaves)))


def coded(hierarchy: Hierarchy, column) -> np.ndarray:
    code = {None: 0} | {leaf: at + 1 for at, leaf in enumerate(hierarchy.leaves)}
    return np.array([code[value] for value in column])


def privacy_of(k: int, asked, columns: int) -> Privacy:
    names = [f"s{i}" for i in range(columns)]
    keys = asked if columns else {}
    job = {"k": k, **keys, "quasi_identifiers": ["q"], "sensitive": names}
    return Privacy.of(Job.from_dict(job, paths_required=False), {})


def domain_of(name: str, column) -> SensitiveDomain:
    whole = Counter(column)
    values = sorted(value for value in whole if value is not None)
    missing = [whole[None]] if None in whole else []
    counts = np.array([*missing, *(whole[value] for value in values)], np.int64)
    return SensitiveDomain(name, pa.array(values, pa.string()), counts)


def searched(trees, columns, sensitive, k, asked, max_suppressed, choice):
    hierarchies = [tree(chains) for chains in trees]
    domains = [domain_of(f"s{i}", column) for i, column in enumerate(sensitive)]
    codes = [coded(h, column) for h, column in zip(hierarchies, columns, strict=True)]
    codes += [d.encode(pa.array(c, pa.string())) for d, c in zip(domains, sensitive, strict=True)]
    sizes = [len(h.leaves) + 1 for h in hierarchies] + [len(d.counts) for d in domains]
    return search(
        FrequencySet.of(codes, sizes),
        [taxonomy(hierarchy) for hierarchy in hierarchies],
        privacy_of(k, asked, len(sensitive)),
        domains,
        max_suppressed,
        choice,
    )


def way_up(chains, value) -> list:
    """What a value is published as on each level."""
    depth = max(map(len, chains.values()))
    if value is None:
        return [None] * depth + ["*"]
    return [value] * (depth - len(chains[value]) + 1) + list(chains[value])


def suppressed_labels(trees, found) -> set:
    labels = [[None, *tree(chains).labels] for chains in trees]
    return {
        tuple(each[node] for each, node in zip(labels, nodes, strict=True))
        for nodes in found.suppressed.T.tolist()
    }
