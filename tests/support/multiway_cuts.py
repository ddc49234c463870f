"""The tree that a cut into several parts grows."""

from __future__ import annotations

import numpy as np

__all__ = ["classes_of", "nodes_of"]


def classes_of(coded, cut) -> set[frozenset[int]]:
    classes = cut.classes(coded)
    assert sorted(classes.index.tolist()) == list(range(coded.count))
    return {frozenset(run.tolist()) for run in np.split(classes.index, classes.starts[1:])}


def nodes_of(coded, cut):
    """The tree that a cut grows: (node, attribute or -1, its parts), as lists of rows."""
    waiting = [list(range(coded.count))]
    while waiting:
        node = waiting.pop()
        a, codes = (-1, [])
        if len(node) >= 2 * coded.criteria.k:
            a, codes = cut.splitter(coded, np.array(node, np.int32))(0, len(node))
        if a < 0:
            yield node, a, []
            continue
        assert codes == sorted(set(codes))
        part_of = np.searchsorted(codes, coded.rows.codes[a][node])
        parts = [
            [row for row, part in zip(node, part_of, strict=True) if part == at]
            for at in range(len(codes) + 1)
        ]
        yield node, a, parts
        waiting += parts
