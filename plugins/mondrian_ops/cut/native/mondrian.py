"""Mondrian's cuts: coded rows, cut policies, classes, and trees that are cut node by node."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.native.class_criteria import DISTINCT, Criteria, CriteriaStruct
from mondrian_ops.native.arrays import Floats, Ints, address, check_below, check_starts
from mondrian_ops.native.library import function

# Kinds of attribute; they decide the loss of publishing a set of codes.
INTERVAL, TREE, SET = 0, 1, 2

# Cut policies. MEDIAN cuts the attribute of largest representativity at its median. GAIN takes the
# cut that reduces the loss of the rows most. WIDEST_GAIN adds the loss of the attribute to the gain
# per row, so that wide attributes come first; which of the two loses less depends on the data.
# BALANCED is MEDIAN without splitting off missing values first. RELAXED halves a node on its widest
# attribute, with rows of the median value on both sides where needed.
MEDIAN, GAIN, WIDEST_GAIN, BALANCED, RELAXED = 0, 1, 2, 3, 4

BLOCK = 1 << 15
"""Rows of the largest nodes that are coded anew, or searched locally."""


MOST_JOINED = 16


class Rows(NamedTuple):
    """Coded rows: code 0 is the missing value, codes of an attribute are in its order.

    Tables over codes are flat; those of attribute a start at ``first[a]``.
    """

    codes: NDArray[np.unsignedinteger[Any]]  # (attributes, rows), C-contiguous
    sensitive: NDArray[np.int32]  # (sensitive attributes, rows)
    kind: Ints  # (attributes,): INTERVAL, TREE or SET
    first: Ints  # (attributes + 1,)
    low: Floats  # INTERVAL: lower end of a code's interval
    high: Floats  # INTERVAL: upper end; equal to the lower unless gridded
    step: Floats  # TREE: loss of the lowest common ancestor of a code and the next one; SET: loss
    # of 1, 2, ... values
    span: Floats  # (attributes,): INTERVAL: the width that loses 1; not 0
    most: Floats  # (attributes,): the greatest loss: no interval loses more, and "*" as much
    present: Floats  # (attributes,): distinct values present in the whole dataset
    persons: int = 0  # 1 where the last sensitive column only distinguishes persons


class KernelPolicy(NamedTuple):
    """How cuts are chosen: greedily or, in nodes of at most ``rollout_rows``, by looking ahead."""

    greedy: int  # a cut policy; it also finishes the subtrees that looking ahead compares
    candidates: int  # cuts of each attribute whose subtrees are compared
    rollout_rows: int  # 0: never look ahead
    group_rows: int = 0  # nodes of so many rows may be cut by groups; at most rollout_rows
    joined: int = 0  # how many classes are joined and cut again, and how often for each; 0: never


class Multiway(NamedTuple):
    """DI-Mondrian cuts at up to ``cut_points`` points at once, if parts average ``room`` k rows."""

    cut_points: int
    room: int


_MOST_COLUMNS = 1 << 15
_MANY = 1 << 31  # more than any number of rows; C multiplies two of them in 64 bits


Extents: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.uint8]]
"""The least and the greatest code of each class in each attribute, (attributes, classes) both."""


class RowsStruct(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("rows", "attributes", "sensitive_columns")),
        *((name, ctypes.c_int64) for name in ("persons", "code_bytes")),
        *((name, ctypes.c_void_p) for name in ("codes", "sensitive", "kind", "first", "low")),
        *((name, ctypes.c_void_p) for name in ("high", "step", "span", "most", "present")),
    )


class _Policy(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in KernelPolicy._fields)


class _Multiway(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in (*Multiway._fields, "sensitive_codes"))


class _Extents(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("most", "classes")),
        *((name, ctypes.c_void_p) for name in ("low", "high")),
    )


def rows_struct(rows: Rows) -> RowsStruct:
    """The rows for C. Raises TypeError or ValueError where their arrays do not fit together."""
    if rows.codes.ndim != 2:
        raise ValueError(f"codes: (attributes, rows) expected, got {rows.codes.shape}")
    attributes, count = rows.codes.shape
    width = rows.codes.dtype.itemsize
    if rows.codes.dtype not in (np.uint8, np.uint16, np.uint32):
        raise TypeError(f"codes: unsigned, of 1, 2 or 4 bytes expected, got {rows.codes.dtype}")
    columns = len(rows.sensitive)
    if not 0 < attributes < _MOST_COLUMNS or not columns < _MOST_COLUMNS or not count < 1 << 31:
        raise ValueError(
            f"codes, sensitive: 1 to {_MOST_COLUMNS - 1} attributes and fewer than 2**31 rows "
            f"expected, got {attributes}, {columns} sensitive ones and {count} rows"
        )
    made = RowsStruct(
        rows=count,
        attributes=attributes,
        sensitive_columns=columns,
        persons=int(bool(rows.persons) and columns > 0),
        code_bytes=width,
        codes=address(rows.codes, rows.codes.dtype, attributes, count, what="codes"),
        sensitive=address(rows.sensitive, np.int32, columns, count, what="sensitive"),
        **_tables(rows, attributes),
    )
    if count and np.any(rows.codes.max(axis=1) >= np.diff(rows.first)):
        raise ValueError("codes: beyond the tables of their attribute")
    check_below(rows.sensitive, 1 << 31, "sensitive")
    return made


def _tables(rows: Rows, attributes: int) -> dict[str, int]:
    """The addresses of the attributes' tables, by name."""
    sizes = dict.fromkeys(("kind", "span", "most", "present"), attributes)
    codes = int(rows.first.flat[-1]) if rows.first.size else 0
    sizes |= {"first": attributes + 1} | dict.fromkeys(("low", "high", "step"), codes)
    places = {}
    for name, size in sizes.items():
        dtype = np.int64 if name in ("kind", "first") else np.float64
        places[name] = address(getattr(rows, name), dtype, size, what=name)
        if dtype is np.float64 and not np.isfinite(getattr(rows, name)).all():
            raise ValueError(f"{name}: all must be finite")
    check_below(rows.kind, SET + 1, "kind")
    check_below(rows.first, codes + 1, "first")
    if rows.first[0] != 0 or np.any(np.diff(rows.first) < 1):
        raise ValueError("first: must begin with 0 and ascend")
    return places


def _policy(policy: KernelPolicy) -> _Policy:
    if not 0 <= policy.greedy <= RELAXED or not 0 <= policy.rollout_rows < 1 << 63:
        raise ValueError(f"{policy}: not a policy")
    if not 1 <= policy.candidates <= BLOCK:
        raise ValueError(f"{policy}: from 1 to {BLOCK} candidates expected")
    if not 0 <= policy.group_rows <= min(policy.rollout_rows, BLOCK):
        raise ValueError(f"{policy}: no more than rollout_rows, or {BLOCK}, in groups")
    if not 0 <= policy.joined <= MOST_JOINED or policy.joined == 1:
        raise ValueError(f"{policy}: 0 or 2 to {MOST_JOINED} joined classes expected")
    return _Policy(*policy)


def _checked(rows: Rows, criteria: Criteria) -> tuple[RowsStruct, CriteriaStruct]:
    """Rows and criteria for C."""
    struct = rows_struct(rows)
    criteria_struct = CriteriaStruct.made(criteria, len(rows.sensitive))
    if criteria.k < 1:
        raise ValueError(f"k: 1 or more expected, got {criteria.k}")
    criteria_struct.k = min(criteria.k, _MANY)
    for column, codes in zip(criteria.column, criteria.codes, strict=True):
        check_below(rows.sensitive[column], int(codes), "sensitive")
    if struct.persons:
        _check_persons(criteria, len(rows.sensitive) - 1)
    return struct, criteria_struct


def _check_persons(criteria: Criteria, column: int) -> None:
    """Raises ValueError on other criteria than distinct persons: blocks renumber their codes."""
    of = criteria.column == column
    if not of.any() or (criteria.kind[of] != DISTINCT).any() or criteria.uncounted[of].any():
        raise ValueError("persons: only a criterion on their number is supported")


_TABLE = (ctypes.POINTER(RowsStruct), ctypes.POINTER(CriteriaStruct))
_POINTER, _INT = ctypes.c_void_p, ctypes.c_int64
_classes = function(
    "mo_classes", *_TABLE, ctypes.POINTER(_Policy), _INT, _POINTER, _POINTER,
    ctypes.POINTER(_Extents), stoppable=True)  # fmt: skip
_loss = function(
    "mo_loss", *_TABLE, ctypes.POINTER(_Policy), _POINTER, _POINTER, _INT,
    ctypes.POINTER(ctypes.c_double), stoppable=True)  # fmt: skip
_multiway_classes = function(
    "mo_multiway_classes", *_TABLE, ctypes.POINTER(_Multiway), _POINTER, _POINTER, stoppable=True
)
_open = function("mo_open_tree", *_TABLE, ctypes.POINTER(_Policy), ctypes.POINTER(_POINTER))
_open_multiway = function(
    "mo_open_multiway_tree", *_TABLE, ctypes.POINTER(_Multiway), ctypes.POINTER(_POINTER)
)
_close = function("mo_close_tree", _POINTER, result=None)
_cut = function(
    "mo_cut", _POINTER, _INT, _INT, ctypes.POINTER(_INT), ctypes.POINTER(_INT), result=None
)
_multiway_cut = function(
    "mo_multiway_cut", _POINTER, _INT, _INT, ctypes.POINTER(_INT), ctypes.POINTER(_INT), _POINTER,
    result=None,
)  # fmt: skip
_split = function("mo_split", _POINTER, _INT, _INT, _INT, _INT, result=_INT)


def classes(
    rows: Rows, criteria: Criteria, policy: KernelPolicy, cores: int = 1
) -> tuple[NDArray[np.int32], Ints]:
    """Cut rows until no valid cut is left, in at most ``cores`` threads.

    Returns the numbers of the rows class by class, (rows,) int32, and where in these each class
    starts, (classes,) int64. The number of threads does not change them. The rows as a whole must
    satisfy the criteria. Raises MemoryError.
    """
    return _classes_of(rows, criteria, policy, cores, None)


def classes_with_extents(
    rows: Rows, criteria: Criteria, policy: KernelPolicy, cores: int = 1
) -> tuple[NDArray[np.int32], Ints, Extents | None]:
    """`classes`, and their extents where these come with them: where all attributes have few codes.

    The cutting has the rows side by side in the end; to fetch them again takes ten times as long.
    """
    attributes, count = rows.codes.shape
    most = max(1, count // max(1, criteria.k))
    low, high = (np.empty((attributes, most), np.uint8) for _ in range(2))
    extents = _Extents(most, 0, low.ctypes.data, high.ctypes.data)
    index, starts = _classes_of(rows, criteria, policy, cores, ctypes.byref(extents))
    found = extents.classes
    return index, starts, (low[:, :found], high[:, :found]) if found else None


def _classes_of(
    rows: Rows, criteria: Criteria, policy: KernelPolicy, cores: int, extents: Any
) -> tuple[NDArray[np.int32], Ints]:
    if cores < 1:
        raise ValueError(f"cores: 1 or more expected, got {cores}")
    structs = (*_checked(rows, criteria), _policy(policy))
    index, class_starts = _result_arrays(rows)
    if len(index):
        into = index.ctypes.data, class_starts.ctypes.data
        _classes(*structs, min(cores, _MANY), *into, extents)
    return index, np.flatnonzero(class_starts)


def multiway_classes(
    rows: Rows, criteria: Criteria, multiway: Multiway
) -> tuple[NDArray[np.int32], Ints]:
    """`classes` by DI-Mondrian, which cuts nodes into several parts at once.

    For every kind of attribute, the tables ``low`` and ``high`` of the rows hold the position of a
    value, from 0 to 1, in the range or the order of the whole dataset.
    """
    structs = (*_checked(rows, criteria), _multiway(rows, criteria, multiway))
    index, class_starts = _result_arrays(rows)
    if len(index):
        _multiway_classes(*structs, index.ctypes.data, class_starts.ctypes.data)
    return index, np.flatnonzero(class_starts)


def _result_arrays(rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    count = rows.codes.shape[1]
    return np.empty(count, np.int32), np.zeros(count, np.uint8)


def _multiway(rows: Rows, criteria: Criteria, multiway: Multiway) -> _Multiway:
    if min(multiway) < 1:
        raise ValueError(f"{multiway}: must be 1 or more")
    codes = int(rows.sensitive.max(initial=0)) + 1
    points, room = (min(number, _MANY) for number in multiway)
    return _Multiway(points, room, max(codes, int(criteria.codes.max(initial=1))))


def loss(
    rows: Rows,
    criteria: Criteria,
    policy: KernelPolicy,
    index: NDArray[np.int32],
    starts: Ints,
) -> float:
    """The loss of all classes together, in rows times attributes.

    ``index`` and ``starts`` are the classes, as `classes` returns them.
    """
    structs = _checked(rows, criteria)
    count = rows.codes.shape[1]
    check_below(index, count, "index")
    check_starts(starts, count, "starts", least=1)
    total = ctypes.c_double()
    where = address(index, np.int32, count, what="index")
    begin = address(starts, np.int64, None, what="starts")
    _loss(*structs, _policy(policy), where, begin, len(starts), ctypes.byref(total))
    return total.value


class _NodeTree:
    """Rows that are cut node by node; a node is the places from ``start`` to before ``stop``."""

    _structs: tuple[RowsStruct, CriteriaStruct]

    def __init__(self, rows: Rows, criteria: Criteria, opened: ctypes.c_void_p) -> None:
        self._keep = rows, criteria  # C reads their arrays
        self._count = rows.codes.shape[1]
        self._attributes = rows.codes.shape[0]
        self._tree = opened
        weakref.finalize(self, _close, opened)

    def split(self, start: int, stop: int, attribute: int, code: int) -> int:
        """Move the rows of a node up to a code to the front; returns where the others start."""
        self._check(start, stop)
        if not 0 <= attribute < self._attributes or not 0 <= code < 1 << 63:
            raise ValueError(f"attribute {attribute}, code {code}: out of range")
        return int(_split(self._tree, start, stop, attribute, code))

    def _raise_failure(self) -> None:
        """Raise the first error of a criterion that was asked about a cut."""
        for failure in self._structs[1].failures:
            raise failure

    def _check(self, start: int, stop: int) -> None:
        if not 0 <= start < stop <= self._count:
            raise ValueError(f"{start} to {stop}: not a node of {self._count} rows")


class Tree(_NodeTree):
    """Rows that are cut node by node, by a policy. Raises MemoryError."""

    def __init__(self, rows: Rows, criteria: Criteria, policy: KernelPolicy) -> None:
        self._structs = _checked(rows, criteria)
        opened = _POINTER()
        _open(*self._structs, _policy(policy), ctypes.byref(opened))
        super().__init__(rows, criteria, opened)

    def cut(self, start: int, stop: int) -> tuple[int, int]:
        """The best ordered cut of a node: an attribute, and the greatest code of the first side.

        The attribute is -1 where the node is final, or its best cut splits off a group, which a
        condition cannot express.
        """
        self._check(start, stop)
        attribute, code = _INT(), _INT()
        _cut(self._tree, start, stop, ctypes.byref(attribute), ctypes.byref(code))
        self._raise_failure()
        return attribute.value, code.value


class MultiwayTree(_NodeTree):
    """Rows that are cut node by node into several parts; rows as in `multiway_classes`."""

    def __init__(self, rows: Rows, criteria: Criteria, multiway: Multiway) -> None:
        self._structs = _checked(rows, criteria)
        opened = _POINTER()
        points = _multiway(rows, criteria, multiway)
        most = min(multiway.cut_points, rows.codes.shape[1])
        self._points = np.zeros(max(1, most), np.int64)
        _open_multiway(*self._structs, points, ctypes.byref(opened))
        super().__init__(rows, criteria, opened)

    def cut(self, start: int, stop: int) -> tuple[int, list[int]]:
        """The attribute of a node's cut, -1 if it is final, and the codes above which it is cut."""
        self._check(start, stop)
        attribute, count = _INT(), _INT()
        _multiway_cut(
            self._tree, start, stop, ctypes.byref(attribute), ctypes.byref(count),
            self._points.ctypes.data,
        )  # fmt: skip
        self._raise_failure()
        return attribute.value, self._points[: count.value].tolist()
