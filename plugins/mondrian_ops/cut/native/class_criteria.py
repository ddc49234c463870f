"""Privacy criteria on classes, as the kernels check them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.native.arrays import Floats, Ints, address, check_below, check_rows, check_starts
from mondrian_ops.native.library import Asking, function

# Kinds of privacy criterion on a sensitive attribute.
DISTINCT, ENTROPY, RECURSIVE, T_EQUAL, T_ORDERED, T_TREE, NEAR, ASKED = 0, 1, 2, 3, 4, 5, 6, 7

Asked = Callable[[Ints], NDArray[np.bool_]]
"""(classes,) which classes satisfy a criterion of the kind ASKED, by counts (classes, codes)."""


class Criteria(NamedTuple):
    """k, and the criteria on the sensitive attributes, one entry per criterion."""

    k: int
    kind: Ints  # (criteria,)
    column: Ints  # (criteria,): row of the sensitive matrix
    level: Floats  # (criteria,): l, or t
    c: Floats  # (criteria,): the c of recursive (c, l)-diversity
    codes: Ints  # (criteria,): sensitive codes
    uncounted: Ints  # (criteria,): 1 where code 0, the missing value, does not count, else 0
    share: Floats  # of t-closeness: distribution over the whole dataset, flat
    share_first: Ints  # (criteria + 1,)
    parent: NDArray[np.int32]  # T_TREE: parents in the sensitive hierarchy, flat, children first
    height: Floats  # T_TREE: height of a node over the height of the tree, flat
    parent_first: Ints  # (criteria + 1,)
    near_end: NDArray[np.int32]  # NEAR: the greatest code that is near each code, flat, ascending
    near_first: Ints  # (criteria + 1,)
    asked: Sequence[Asked | None] = ()  # (criteria,) or none: ASKED: what kernels ask


_ASKED = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class CriteriaStruct(Asking):
    """`Criteria` as kernels.h declares them; it keeps their arrays alive."""

    _fields_: ClassVar[list[tuple[str, Any]]] = [
        ("k", ctypes.c_int64),
        ("count", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in Criteria._fields[1:-1]),
        ("asked", _ASKED),
    ]
    of: Criteria

    @classmethod
    def made(cls, criteria: Criteria, columns: int) -> CriteriaStruct:
        """The struct for rows with ``columns`` sensitive columns.

        Raises TypeError or ValueError where an array is not as `Criteria` declares it.
        """
        count = len(criteria.kind)
        per_criterion, flat, starts = (count,), (None,), (count + 1,)
        nodes = (len(criteria.parent),)
        shapes = (*(per_criterion,) * 6, flat, starts, flat, nodes, starts, flat, starts)
        places = [
            address(getattr(criteria, name), dtype, *shape, what=f"criteria: {name}")
            for (name, dtype), shape in zip(_DTYPES.items(), shapes, strict=True)
        ]
        _check(criteria, columns)
        made = cls(criteria.k, count, *places)
        made.of = criteria
        if any(criteria.asked):
            made.asked = _ASKED(_asking(criteria, made.failures))
        return made


def _asking(criteria: Criteria, failures: list[BaseException]) -> Callable[..., None]:
    """What kernels call, perhaps in threads of their own; after a failure no class satisfies it."""

    def ask(j: int, classes: int, counts: int, holds: int) -> None:
        codes, asked = int(criteria.codes[j]), criteria.asked[j]
        found = (ctypes.c_uint8 * classes).from_address(holds)
        ctypes.memset(found, 0, classes)
        if asked is None or failures:
            return
        table = (ctypes.c_int64 * (classes * codes)).from_address(counts)
        try:
            of_classes = np.array(table, np.int64)  # a copy: C counts others there next
            np.array(found, copy=False)[:] = asked(of_classes.reshape(classes, codes))
        except BaseException as error:
            failures.append(error)

    return ask


_FLOATS = ("level", "c", "share", "height")
_NARROW = ("parent", "near_end")
_DTYPES = {
    name: np.dtype(
        np.int32 if name in _NARROW else np.float64 if name in _FLOATS else np.int64,
    )
    for name in Criteria._fields[1:-1]
}


def _check(criteria: Criteria, columns: int) -> None:
    """Raises ValueError where a criterion would make C read outside of the arrays.

    Uses Python's numbers: criteria are few, and many small sets of rows call this.
    """
    if not -(1 << 63) <= criteria.k < 1 << 63:
        raise ValueError(f"criteria: k must fit into 64 bits, got {criteria.k}")
    _check_runs(criteria.share_first.tolist(), len(criteria.share), "share_first")
    _check_runs(criteria.parent_first.tolist(), len(criteria.parent), "parent_first")
    _check_runs(criteria.near_first.tolist(), len(criteria.near_end), "near_first")
    for j in range(len(criteria.kind)):
        kind, codes = int(criteria.kind[j]), int(criteria.codes[j])
        _check_within(kind, 0, ASKED, "kind")
        _check_within(int(criteria.column[j]), 0, columns - 1, "column")
        _check_within(int(criteria.uncounted[j]), 0, 1, "uncounted")
        if kind == ASKED and (len(criteria.asked) <= j or criteria.asked[j] is None or not codes):
            raise ValueError("criteria: what is asked is missing")
        if kind != ASKED and not abs(criteria.level[j]) < 1 << 62:
            raise ValueError("criteria: level must fit into 63 bits")
        _check_within(codes, int(criteria.uncounted[j]), 1 << 31, "codes")
        if (
            kind in (T_EQUAL, T_ORDERED, T_TREE)
            and criteria.share_first[j + 1] - criteria.share_first[j] < codes
        ):
            raise ValueError("criteria: share must have an entry for every code")
        parents = criteria.parent[criteria.parent_first[j] : criteria.parent_first[j + 1]]
        if parents.size and parents.max() >= len(parents):
            raise ValueError("criteria: parent must be a node of the same hierarchy")
        if kind == NEAR:
            _check_near(
                criteria.near_end[criteria.near_first[j] : criteria.near_first[j + 1]], codes
            )


def _check_near(near_end: NDArray[np.int32], codes: int) -> None:
    own = np.arange(codes, dtype=np.int64)
    if len(near_end) != codes or (near_end < own).any() or (near_end[:-1] > near_end[1:]).any():
        raise ValueError("criteria: near_end must ascend, and be no less than each code")


def _check_within(number: int, least: int, most: int, what: str) -> None:
    if not least <= number <= most:
        raise ValueError(f"criteria: {what} must be from {least} to {most}, got {number}")


def _check_runs(starts: list[int], stop: int, what: str) -> None:
    if not 0 <= starts[0] <= starts[-1] <= stop or starts != sorted(starts):
        raise ValueError(f"criteria: {what} must ascend from 0 to {stop} at most")


_POINTER, _INTEGER, _CRITERIA = ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(CriteriaStruct)

_satisfies = function("mo_satisfies", _POINTER, _CRITERIA, _INTEGER)
_groups_satisfy = function(
    "mo_groups_satisfy",
    *(_POINTER, _INTEGER, _POINTER, _INTEGER, _POINTER, _INTEGER, _POINTER, _CRITERIA, _POINTER),
    stoppable=True,
)


def satisfies(counts: Ints, criteria: Criteria, j: int) -> bool:
    """Whether rows with these sensitive ``counts`` (codes,) satisfy criterion ``j``.

    Where the missing value is ``uncounted``, l-diversity is required of the other rows by
    themselves.
    """
    made = CriteriaStruct.made(criteria, int(criteria.column.max(initial=0)) + 1)
    if not 0 <= j < len(criteria.kind):
        raise ValueError(f"j: must be from 0 to less than {len(criteria.kind)}, got {j}")
    where = address(counts, np.int64, int(criteria.codes[j]), what="counts")
    check_rows(counts)
    return bool(_satisfies(where, made, j))


def groups_satisfy(
    index: NDArray[np.int32],
    starts: Ints,
    sensitive: NDArray[np.int32],
    rows: Ints,
    criteria: Criteria,
) -> NDArray[np.bool_]:
    """Whether each group has k rows and satisfies every criterion: (groups,) bool.

    Group i is the combinations ``index[starts[i]:starts[i + 1]]``, the last one to the end of
    ``index``; ``sensitive`` (sensitive columns, combinations) are their codes and ``rows``
    (combinations,) how many rows have each.
    """
    combinations = len(rows)
    holds = np.zeros(len(starts), np.bool_)
    where = address(sensitive, np.int32, None, combinations, what="sensitive")
    made = CriteriaStruct.made(criteria, len(sensitive))
    arguments = (
        address(index, np.int32, None, what="index"),
        len(index),
        address(starts, np.int64, None, what="starts"),
        len(starts),
        where,
        combinations,
        address(rows, np.int64, None, what="rows"),
    )
    check_rows(rows)
    check_below(index, combinations, "index")
    check_starts(starts, len(index), "starts")
    for column, codes in zip(criteria.column.tolist(), criteria.codes.tolist(), strict=True):
        check_below(sensitive[column], codes, "sensitive")
    _groups_satisfy(*arguments, made, holds.ctypes.data)
    return holds
