"""Top-down specialization by its definitions, and datasets for it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from copy import copy

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import brute_force
from mondrian_ops.algorithms import tds
from mondrian_ops.core.criteria import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Privacy,
    RecursiveDiversity,
    SensitiveDomain,
    TCloseness,
)
from mondrian_ops.core.frequency_set import FrequencySet
from mondrian_ops.core.job import Tds
from taxonomies import TAXONOMIES, TREES

__all__ = [
    "CRITERIA",
    "Data",
    "as_lists",
    "by_definition",
    "candidates",
    "children",
    "classes",
    "datasets",
    "gain",
    "holds",
    "specialized",
]

CRITERIA = [
    lambda c: DistinctDiversity(c, 2),
    lambda c: DistinctDiversity(c, 3),
    lambda c: DistinctDiversity(c, 2, missing_counts=True),
    lambda c: EntropyDiversity(c, 1.7),
    lambda c: RecursiveDiversity(c, 2, 1.5),
    lambda c: RecursiveDiversity(c, 2, 1.5, missing_counts=True),
    lambda c: TCloseness(c, 0.3, "equal"),
    lambda c: TCloseness(c, 0.25, "ordered"),
]


class Data:
    """A drawn dataset: rows of codes, quasi-identifiers first."""

    def __init__(self, names, rows, criteria, k, codes=4):
        self.whole = rows
        self.taxonomies = [TAXONOMIES[name] for name in names]
        self.quasi = len(names)
        self.rows = rows
        self.labels = len(rows[0]) - len(names)
        self.codes = codes  # of a sensitive column, missing values among them
        values = pa.array([f"s{value}" for value in range(1, codes)])
        self.domains = [
            SensitiveDomain(f"s{j}", values, np.array(counts))
            for j, counts in enumerate(self.shares())
        ]
        self.privacy = Privacy(KAnonymity(k), tuple(criteria))
        sizes = [*(t.levels.shape[1] for t in self.taxonomies), *[codes] * self.labels]
        self.frequencies = FrequencySet.of(
            [np.array(column) for column in zip(*rows, strict=True)], sizes
        )

    def shares(self):
        columns = list(zip(*self.whole, strict=True))[self.quasi :]
        return [[column.count(s) for s in range(self.codes)] for column in columns]

    @property
    def asked(self):
        return self.taxonomies, self.privacy, self.domains

    def two_phase(self, partitions, k_intermediate, seed=0, in_parallel=map):
        return self.search(partitions, k_intermediate, seed)(self.frequencies, in_parallel)

    def part(self, number, partitions, seed):
        """A part of the rows; the whole's shares of sensitive values stay what they are."""
        dealt = tds.partition(self.frequencies, number, partitions, seed)
        rows = np.repeat(dealt.codes(), dealt.rows, axis=1)
        part = copy(self)
        part.rows = list(map(tuple, rows.T.tolist()))
        return part

    def search(self, partitions, k_intermediate, seed=0):
        return tds.TwoPhase(*self.asked, Tds(partitions, k_intermediate), seed)


@st.composite
def datasets(draw, max_rows=30, least_k=1):
    names = draw(st.lists(st.sampled_from(sorted(TREES)), min_size=1, max_size=3))
    labels = draw(st.integers(0, 2))
    count = draw(st.integers(1, max_rows))
    # Few values of each column: else hardly anything can be specialized.
    columns = []
    for name in names:
        codes = TAXONOMIES[name].levels.shape[1]
        values = draw(st.lists(st.integers(0, codes - 1), min_size=1, max_size=4))
        columns.append(draw(st.lists(st.sampled_from(values), min_size=count, max_size=count)))
    codes, values = draw(st.sampled_from([(4, [0, 1, 2, 3]), (60, [0, 1, 30, 59])]))
    for _ in range(labels):
        columns.append(draw(st.lists(st.sampled_from(values), min_size=count, max_size=count)))
    kinds = draw(st.lists(st.sampled_from(CRITERIA), max_size=2)) if labels else []
    criteria = [kind(f"s{draw(st.integers(0, labels - 1))}") for kind in kinds]
    k = draw(st.integers(least_k, 4))
    return Data(names, list(zip(*columns, strict=True)), criteria, k, codes)


def children(tree, node):
    """The nodes right under a node."""
    found = set()
    for below, above in zip(tree.levels[:-1], tree.levels[1:], strict=True):
        found |= {c for c, p in zip(below.tolist(), above.tolist(), strict=True) if p == node != c}
    return found


def specialized(tree, cut, node):
    """The cut after a specialization: every code of ``node`` goes to its child."""
    below = children(tree, node)
    return [
        next(n for n in tree.levels[:, code].tolist() if n in below) if at == node else at
        for code, at in enumerate(cut)
    ]


def classes(data, cuts):
    found = defaultdict(list)
    for row in data.rows:
        found[tuple(cut[row[a]] for a, cut in enumerate(cuts))].append(row)
    return list(found.values())


def holds(data, group, k):
    if len(group) < max(k, data.privacy.k.k):
        return False
    for criterion in data.privacy.criteria:
        column = data.quasi + int(criterion.column[1:])
        counts = Counter(row[column] for row in group)
        whole = Counter(dict(enumerate(data.shares()[column - data.quasi])))
        present = Counter({code: n for code, n in counts.items() if code})  # 0 is missing
        values = counts if criterion.missing_counts else present
        match criterion:
            case DistinctDiversity(level=level):
                good = len(values) >= level
            case EntropyDiversity(level=level):
                good = brute_force.entropy(values) >= math.log(level) - 1e-9
            case RecursiveDiversity(level=level, ratio=c):
                good = bool(values) and brute_force.recursive(values, c, int(level))
            case TCloseness(level=t, distance="equal"):
                good = brute_force.closeness_equal(counts, whole) <= t + 1e-9
            case TCloseness(level=t):
                good = brute_force.closeness_ordered(counts, whole) <= t + 1e-9
        if not good:
            return False
    return True


def gain(data, a, tree, node):
    """Equations 2 and 3, summed over the sensitive columns; without one the rows' own numbers."""
    columns = range(data.quasi, data.quasi + data.labels)
    labelled = [(row, [row[c] for c in columns] or [at]) for at, row in enumerate(data.rows)]

    def members(n):
        return [labels for row, labels in labelled if n in tree.levels[:, row[a]]]

    def bits(group, j):
        counts = Counter(labels[j] for labels in group)
        return sum(-n / len(group) * math.log2(n / len(group)) for n in counts.values())

    parent = members(node)
    parts = [members(child) for child in children(tree, node)]
    total = 0.0
    for j in range(max(1, data.labels)) if parent else ():
        total += bits(parent, j)
        total -= sum(len(part) / len(parent) * bits(part, j) for part in parts if part)
    return round(max(total, 0.0), 9)


def candidates(data, cuts, k):
    """Every valid specialization of a level: IGPL, attribute, node, the level after it."""
    anonymity = min(map(len, classes(data, cuts)))
    for a, tree in enumerate(data.taxonomies):
        for node in set(cuts[a]):
            if not children(tree, node):
                continue
            after = [*cuts[:a], specialized(tree, cuts[a], node), *cuts[a + 1 :]]
            groups = classes(data, after)
            if all(holds(data, group, k) for group in groups):
                loss = anonymity - min(map(len, groups))
                yield gain(data, a, tree, node) / (loss + 1), a, node, after


def by_definition(data, cuts, k):
    """Algorithm 4: the level, and the specializations in order."""
    steps = []
    while offers := list(candidates(data, cuts, k)):
        _, a, node, cuts = max(offers, key=lambda offer: (offer[0], -offer[1], -offer[2]))
        steps.append((a, node))
    return cuts, steps


def as_lists(cuts):
    return [cut.tolist() for cut in cuts]
