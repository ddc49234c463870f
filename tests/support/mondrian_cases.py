"""Small tables in which Mondrian is compared with brute force, and requirements on them."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

import brute_force
from mondrian_ops.cut.algorithms.mondrian import CutPolicy
from mondrian_ops.cut.anonymizer import Anonymizer
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.profile import Profiler
from mondrian_ops.job.job import Job

# Branches interleave: the order of the file is not that of a walk through the tree.
CHAINS = {
    "a1": ["A", "*"],
    "b1": ["B", "*"],
    "a2": ["A", "*"],
    "c1": ["*"],
    "b2": ["B", "*"],
    "a3": ["A", "*"],
}
WALK = ["a1", "a2", "a3", "b1", "b2", "c1"]
TREE = Hierarchy.from_rows([[leaf, *chain] for leaf, chain in CHAINS.items()], "tree.csv")

VALUES = {
    "interval": st.integers(-4, 12),
    "tree": st.sampled_from(sorted(CHAINS)),
    "set": st.sampled_from(["p", "q", "r", "s"]),
    "prefix": st.sampled_from(["10", "101", "1020", "2", "201"]),
}
LISTED = {
    "interval": "interval",
    "tree": "hierarchy:tree.csv",
    "set": "set",
    "prefix": "prefix",
}
TYPES = {"interval": pa.int64(), "tree": pa.string(), "set": pa.string(), "prefix": pa.string()}


# How sensitive values may be spelled, and read alike.
SPELLED = {
    "x": ["x", " x", "x\u00a0", "\uff58"],
    "y": ["y", "y\u200b", "y\t"],
    "z": ["z"],
    "\u00e9": ["\u00e9", "e\u0301", " \u00e9"],
    None: [None, "", " ", "\ufeff"],
}


@st.composite
def spelled(draw, tables):
    """Such tables with sensitive values in several spellings."""
    kinds, columns, sensitive = draw(tables)
    sensitive = [[draw(st.sampled_from(SPELLED[v])) for v in column] for column in sensitive]
    return kinds, columns, sensitive


@st.composite
def tables(draw, max_rows: int = 14):
    """Kinds of attributes, rows of their values and one or two sensitive columns."""
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    count = draw(st.integers(2, max_rows))
    columns = []
    for kind in kinds:
        values = VALUES[kind] if draw(st.booleans()) else st.none() | VALUES[kind]
        columns.append(draw(st.lists(values, min_size=count, max_size=count)))
    sensitive = draw(
        st.lists(
            st.lists(
                st.sampled_from(["x", "y", "z", "\u00e9", None]), min_size=count, max_size=count
            ),
            max_size=2,
        )
    )
    return kinds, columns, sensitive


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


@st.composite
def requirements(draw):
    """The keys of a job that ask something of sensitive columns."""
    return draw(
        st.sampled_from(
            [
                {"l": 2},
                {"l": 3},
                {"l": 2, "diversity": "entropy"},
                {"l": 2.5, "diversity": "entropy"},
                {"l": 2, "diversity": "recursive", "c": 2},
                {"l": 3, "diversity": "recursive", "c": 1.5},
                {"l": 2, "missing_sensitive": "value"},
                {"l": 2.5, "diversity": "entropy", "missing_sensitive": "value"},
                {"l": 2, "diversity": "recursive", "c": 2, "missing_sensitive": "value"},
                {"t": 0.3},
                {"t": 0.25, "t_distance": "ordered"},
                {"l": 2, "t": 0.4},
            ]
        )
    )


def anonymizer_of(kinds, columns, sensitive, keys, greedy="median"):
    names = [f"q{i}" for i in range(len(kinds))]
    extra = [f"s{i}" for i in range(len(sensitive))]
    data = [pa.array(c, TYPES[k]) for c, k in zip(columns, kinds, strict=True)]
    data += [pa.array(column, pa.string()) for column in sensitive]
    table = pa.table(dict(zip([*names, *extra], data, strict=True)))
    listed = [f"{n}={LISTED[k]}" for n, k in zip(names, kinds, strict=True)]
    job = Job.from_dict(
        {**keys, "quasi_identifiers": listed, "sensitive": extra}, paths_required=False
    )
    trees = {n: TREE for n, k in zip(names, kinds, strict=True) if k == "tree"}
    profiler = Profiler(job, table.schema, trees)
    profiler.add(table)
    return Anonymizer(job, profiler.finish(), trees, CutPolicy(greedy)), table


class Case(NamedTuple):
    """A table that is anonymized; ``holds`` says whether some of its rows may be a class."""

    kinds: list[str]
    columns: list[list[Any]]
    sensitive: list[list[Any]]
    keys: dict[str, Any]
    holds: brute_force.Holds
    anonymizer: Anonymizer
    data: pa.Table


def case_of(table, k, required=None, greedy="gain") -> Case:
    """The case of a drawn table, dismissed if its rows as one class break a requirement."""
    kinds, columns, sensitive = table
    keys = {"k": k, **(required or {})} if sensitive else {"k": k}
    holds = privacy_of(sensitive, keys).of_rows(sensitive)
    assume(holds(list(range(len(columns[0])))))
    made = anonymizer_of(kinds, columns, sensitive, keys, greedy)
    return Case(kinds, columns, sensitive, keys, holds, *made)


def classes_of(anonymizer, table, cut) -> set[frozenset[int]]:
    return classes_of_coded(anonymizer.encode(table), cut)


def classes_of_coded(coded, cut) -> set[frozenset[int]]:
    classes = cut.classes(coded)
    assert sorted(classes.index.tolist()) == list(range(coded.count))
    return {frozenset(run.tolist()) for run in np.split(classes.index, classes.starts[1:])}


def reference_attributes(kinds, columns, greedy):
    found = []
    for kind, column in zip(kinds, columns, strict=True):
        present = {value for value in column if value is not None}
        if kind == "interval":
            found.append(brute_force.Interval(max(present) - min(present) if present else 0))
        elif kind == "tree":
            order = list(CHAINS) if greedy == "median" else WALK
            found.append(brute_force.Tree(CHAINS, order, max(1, len(present))))
        elif kind == "set":
            found.append(brute_force.Set(sorted(present)))
        else:
            found.append(brute_force.Prefix(sorted(present)))
    return found


def privacy_of(sensitive, keys) -> brute_force.Privacy:
    return brute_force.Privacy(whole=[Counter(column) for column in sensitive], **keys)


def is_final(rows: frozenset[int], kinds, columns, holds) -> bool:
    """Whether no cut of any attribute leaves two sides that hold."""
    for attribute, column in zip(
        reference_attributes(kinds, columns, "gain"), columns, strict=True
    ):
        places = {i: -99 if column[i] is None else attribute.place(column[i]) for i in rows}
        if isinstance(attribute, brute_force.Prefix):
            places = {i: column[i] or "" for i in rows}
        for at in set(places.values()):
            left = [i for i in rows if places[i] <= at]
            right = [i for i in rows if places[i] > at]
            if right and holds(left) and holds(right):
                return False
    return True


def loss_of(classes, kinds, columns) -> float:
    """Loss of classes in rows times attributes, as `lookahead` weighs it."""
    total = 0.0
    for attribute, column in zip(
        reference_attributes(kinds, columns, "gain"), columns, strict=True
    ):
        for rows in classes:
            values = {column[i] for i in rows}
            mixed = None in values and len(values) > 1
            total += len(rows) * (
                1.0 if mixed else 0.0 if None in values else attribute.loss(values)
            )
    return total
