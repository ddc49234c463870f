"""Coded hierarchies of every shape."""

from __future__ import annotations

import numpy as np

from mondrian_ops.data.hierarchy import CodedHierarchy, Hierarchy

TREES = {
    "uneven": ["a1;A;*", "b1;B;BB;*", "a2;A;*", "c;*", "b2;B;BB;*", "b3;BC;BB;*", "a3;A;*"],
    "chain": ["a;A;AA;*", "b;A;AA;*", "c;C;CC;*"],  # nodes with one child
    "flat": ["p;*", "q;*", "r;*", "s;*"],
    "one": ["only;*"],
    "line": None,
}


def coded_hierarchy(name):
    if name == "line":
        texts = [str(n) for n in range(9)]
        hierarchy = Hierarchy.from_order(texts, np.arange(9.0), name)
    else:
        hierarchy = Hierarchy.from_rows([row.split(";") for row in TREES[name]], name)
    return CodedHierarchy.of(hierarchy, np.arange(len(hierarchy.leaves)))


HIERARCHIES = {name: coded_hierarchy(name) for name in TREES}
