"""Nodes that are looked at through a block."""

from __future__ import annotations

import numpy as np

from mondrian_cases import CHAINS, anonymizer_of, classes_of
from mondrian_ops.algorithms import mondrian
from mondrian_ops.algorithms.mondrian import Cut


def test_blocks_of_small_nodes_change_nothing():
    """40,000 rows are cut outside blocks first; the classes are those of a cut without blocks."""
    generator = np.random.default_rng(5)
    rows = 40_000
    columns = [
        generator.integers(0, 5000, rows).tolist(),
        generator.choice(["p", "q", "r", "s"], rows).tolist(),
        generator.choice(sorted(CHAINS), rows).tolist(),
    ]
    kinds = ["interval", "set", "tree"]
    for greedy, rollout, nested in (
        ("median", 0, 0),
        ("gain", 0, 0),
        ("gain", 3000, 0),
        ("gain", 3000, 3000),
    ):
        cut = Cut(greedy, rollout, 0, nested)
        anonymizer, data = anonymizer_of(kinds, columns, [], {"k": 800}, greedy)
        coded = anonymizer.encode(data)
        policy = cut.policy()
        work = coded.work(policy)
        index = np.arange(rows, dtype=np.int32)
        waiting, found = [(0, rows)], set()
        while waiting:
            start, stop = waiting.pop()
            a, code = (-1, 0)
            if stop - start >= 1600:
                a, code = mondrian.kernels.cut_of(
                    coded.rows, index, start, stop, coded.criteria, policy, work
                )
            if a < 0:
                found.add(frozenset(index[start:stop].tolist()))
                continue
            codes = coded.rows.codes[a]
            inside = index[start:stop].copy()
            left = inside[codes[inside] <= code]
            index[start:stop] = np.concatenate([left, inside[codes[inside] > code]])
            waiting += [(start, start + len(left)), (start + len(left), stop)]
        assert classes_of(anonymizer, data, cut) == found
