"""Top-down specialization on counted combinations (two-phase TDS, sections 3.2 and 5)."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.native.class_criteria import Criteria, CriteriaStruct
from mondrian_ops.native.arrays import (
    Floats,
    Ints,
    Words,
    address,
    check_below,
    check_count,
    check_rows,
    check_starts,
    check_writable,
)
from mondrian_ops.native.library import function

Nodes: TypeAlias = NDArray[np.int32]

_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int64


class PackedCombinations(NamedTuple):
    """Packed combinations of codes; quasi-identifiers come first, then sensitive columns."""

    words: Words  # (words, combinations)
    rows: Ints  # (combinations,): one at least of each
    word: Ints  # (columns,)
    shift: Words  # (columns,)
    mask: Words  # (columns,)


class Forest(NamedTuple):
    """The hierarchies of all attributes. The codes of attribute a start at ``first[a]``."""

    first: Ints  # (attributes + 1,)
    attribute: Nodes  # (nodes,)
    child_first: Ints  # (nodes + 1,)
    children: Nodes
    member_first: Ints  # (nodes,): the codes under a node are members[first:stop]
    member_stop: Ints  # (nodes,)
    members: Nodes  # (codes,)
    gain: Floats  # (nodes,): information gain of specializing the node


class Specialized(NamedTuple):
    """The result; 0 classes where a class of the start cut breaks a criterion."""

    steps: Nodes  # (steps,): the nodes specialized, in order
    cut: Nodes  # (codes,)
    classes: int


class _CombinationsStruct(ctypes.Structure):
    _fields_: ClassVar[list[tuple[str, Any]]] = [
        *((name, _INTEGER) for name in ("count", "wide", "columns")),
        *((name, _POINTER) for name in PackedCombinations._fields),
    ]


class _ForestStruct(ctypes.Structure):
    _fields_: ClassVar[list[tuple[str, Any]]] = [
        *((name, _INTEGER) for name in ("attributes", "nodes")),
        *((name, _POINTER) for name in Forest._fields),
    ]


_specialize = function(
    "mo_specialize",
    *map(ctypes.POINTER, (_CombinationsStruct, _ForestStruct, CriteriaStruct)),
    *(_POINTER, _POINTER, ctypes.POINTER(_INTEGER), ctypes.POINTER(_INTEGER)),
    stoppable=True,
)
_rows_of_part = function(
    "mo_rows_of_part",
    *(_POINTER, _INTEGER, _INTEGER, _INTEGER, ctypes.c_uint64, _POINTER),
    result=None,
)


def specialize(
    combinations: PackedCombinations, forest: Forest, cut: Nodes, criteria: Criteria
) -> Specialized:
    """Perform the best valid specialization of ``cut`` (codes,) until none is left (algorithm 4).

    Permutes the combinations.
    """
    forest_struct = _forest(forest)
    nodes, attributes = len(forest.attribute), len(forest.first) - 1
    combinations_struct = _combinations(combinations, attributes)
    criteria_struct = CriteriaStruct.made(criteria, len(combinations.word) - attributes)
    address(cut, np.int32, len(forest.members), what="cut")
    check_below(cut, nodes, "cut")
    if (forest.attribute[cut] != np.repeat(np.arange(attributes), np.diff(forest.first))).any():
        raise ValueError("cut: a code's node must be of its attribute")
    cut, steps = cut.copy(), np.empty(nodes, np.int32)
    count, classes = _INTEGER(), _INTEGER()
    _specialize(
        combinations_struct,
        forest_struct,
        criteria_struct,
        *(cut.ctypes.data, steps.ctypes.data),
        *(ctypes.byref(count), ctypes.byref(classes)),
    )
    return Specialized(steps[: count.value].copy(), cut, classes.value)


def _combinations(combinations: PackedCombinations, attributes: int) -> _CombinationsStruct:
    """The combinations for C. The kernel itself checks their codes against the tables."""
    words, rows, columns = combinations.words, combinations.rows, len(combinations.word)
    made = _CombinationsStruct(
        *(len(rows), len(words), columns),
        address(words, np.uint64, None, len(rows), what="words"),
        address(rows, np.int64, None, what="rows"),
        address(combinations.word, np.int64, columns, what="word"),
        address(combinations.shift, np.uint64, columns, what="shift"),
        address(combinations.mask, np.uint64, columns, what="mask"),
    )
    check_writable(words, "words")
    check_writable(rows, "rows")
    check_count(len(rows), "combinations")
    check_below(combinations.word, len(words), "word")
    check_below(combinations.shift, 64, "shift")
    if columns < attributes:
        raise ValueError(f"columns: there are {attributes} attributes, got {columns} columns")
    check_rows(rows, least=1)
    return made


def _forest(forest: Forest) -> _ForestStruct:
    """The forest for C."""
    nodes, attributes, codes = len(forest.attribute), len(forest.first) - 1, len(forest.members)
    made = _ForestStruct(
        *(attributes, nodes),
        address(forest.first, np.int64, None, what="first"),
        address(forest.attribute, np.int32, None, what="attribute"),
        address(forest.child_first, np.int64, nodes + 1, what="child_first"),
        address(forest.children, np.int32, None, what="children"),
        address(forest.member_first, np.int64, nodes, what="member_first"),
        address(forest.member_stop, np.int64, nodes, what="member_stop"),
        address(forest.members, np.int32, None, what="members"),
        address(forest.gain, np.float64, nodes, what="gain"),
    )
    check_starts(forest.first, codes, "first")
    if not len(forest.first) or forest.first[0] != 0 or forest.first[-1] != codes:
        raise ValueError("first: must begin with 0 and end with the number of members")
    check_below(forest.attribute, attributes, "attribute")
    check_starts(forest.child_first, len(forest.children), "child_first")
    check_below(forest.children, nodes, "children")
    check_below(forest.member_first, codes + 1, "member_first")
    check_below(forest.member_stop, codes + 1, "member_stop")
    check_below(forest.members, codes, "members")
    _check_attributes(forest)
    return made


def _check_attributes(forest: Forest) -> None:
    """Raises ValueError unless the codes and children of each node are of its own attribute."""
    attribute_of = np.repeat(np.arange(len(forest.first) - 1), np.diff(forest.first))  # of a code
    start, stop = forest.first[forest.attribute], forest.first[forest.attribute + 1]
    parent = np.repeat(np.arange(len(forest.attribute)), np.diff(forest.child_first))
    children = forest.children[forest.child_first[0] : forest.child_first[-1]]
    if (
        (attribute_of[forest.members] != attribute_of).any()
        or ((forest.member_first < start) | (forest.member_stop > stop)).any()
        or (forest.attribute[children] != forest.attribute[parent]).any()
    ):
        raise ValueError("forest: members and children must be of their node's attribute")


def rows_of_part(rows: Ints, part: int, parts: int, seed: int) -> Ints:
    """How many rows of each combination lie in ``part``, one of ``parts`` random parts.

    Hashing a row's number (splitmix64) decides its part, so a part is the same wherever it is
    computed, without the others.
    """
    if not 0 <= part < parts <= 1 << 32:
        raise ValueError(f"part: must be from 0 to less than {parts}, got {part}")
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"seed: must be from 0 to less than 2^64, got {seed}")
    where = address(rows, np.int64, None, what="rows")
    rows_of_part = np.empty(len(rows), np.int64)
    _rows_of_part(where, len(rows), part, parts, seed, rows_of_part.ctypes.data)
    return rows_of_part
