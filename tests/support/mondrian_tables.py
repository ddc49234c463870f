"""Tables that are cut, and what is published of them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from mondrian_cases import CHAINS

__all__ = ["contents", "random_table", "skewed_table"]


def contents(classes, table, kinds) -> Counter:
    """The classes by the quasi-identifiers of their rows: which of several rows that have the same
    ones is in which class is drawn by lot."""
    rows = [tuple(row.values())[: len(kinds)] for row in table.to_pylist()]
    return Counter(tuple(sorted((rows[i] for i in each), key=repr)) for each in classes)


def random_table(seed: int, rows: int):
    generator = np.random.default_rng(seed)
    kinds = ["interval", "interval", "tree"]
    columns = [
        generator.integers(0, 17, rows).tolist(),
        generator.integers(-40, 40, rows).tolist(),
        generator.choice(sorted(CHAINS), rows).tolist(),
    ]
    return kinds, columns


def skewed_table(seed: int, rows: int):
    """Few frequent and many rare values, as of countries or occupations."""
    generator = np.random.default_rng(seed)
    rare = np.array([0.02, 0.6, 0.02, 0.3, 0.02, 0.04])
    kinds = ["interval", "tree", "tree", "set"]
    columns = [
        generator.integers(17, 90, rows).tolist(),
        generator.choice(sorted(CHAINS), rows, p=rare).tolist(),
        generator.choice(sorted(CHAINS), rows, p=rare[::-1]).tolist(),
        generator.choice(["p", "q", "r", "s"], rows, p=[0.7, 0.03, 0.25, 0.02]).tolist(),
    ]
    return kinds, columns
