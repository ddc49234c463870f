"""Arguments of the kernels from bytes: such as they are meant, then with a few that are hostile.

Of a call that the border between Python and C lets through, no kernel may read or write outside of
what it was given: AddressSanitizer sees that where the kernels are watched (:mod:`sanitized`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.native import class_criteria, mondrian, top_down
from mondrian_ops.cut.native.class_criteria import ASKED, Criteria
from mondrian_ops.data.native import counting, lookup
from mondrian_ops.generalize.native import classes
from mondrian_ops.verify.native import equal_rows, source_rows, value_counts, value_figures

Given = TypeVar("Given", bound=tuple[Any, ...])

_REFUSED = (TypeError, ValueError, MemoryError)
_DTYPES = ("u1", "u2", "u4", "u8", "i4", "i8", "f8", ">i8", "O")
_NUMBERS = (
    -1, 0, 1, 2, 3, 5, 255, 256, 65_535, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 62,
    (1 << 63) - 1, -(1 << 63), float("nan"), float("inf"), -1.0, 1e300, 1e-300,
)  # fmt: skip
_INTEGERS = (*(each for each in _NUMBERS if isinstance(each, int)), 1 << 63, 1 << 64, -(1 << 70))


class Bytes:
    """Numbers from bytes; all 0 when there are no more."""

    def __init__(self, content: bytes) -> None:
        self._left = iter(content)

    def below(self, limit: int) -> int:
        """From 0 to ``limit``, 256 at most, less one."""
        return next(self._left, 0) % max(limit, 1)

    def array(self, dtype: str, limit: int, *shape: int) -> NDArray[Any]:
        """An array of numbers below a limit."""
        count = int(np.prod(shape))
        return np.array([self.below(limit) for _ in range(count)], dtype).reshape(shape)

    def starts(self, stop: int, least: int) -> NDArray[np.int64]:
        """Where runs of at least so many begin, the first at 0."""
        found = [0] if stop >= least else []
        while found and len(found) < 9 and found[-1] + 2 * max(least, 1) <= stop:
            found.append(found[-1] + max(least, 1) + self.below(3))
        return np.array([at for at in found if at + least <= stop], np.int64)

    def hostile(self, given: Given) -> Given:
        """The arguments, of which up to three are changed."""
        changed = list(given)
        for _ in range(self.below(4)):
            at = self.below(len(changed))
            changed[at] = self._other(changed[at])
        return given._make(changed) if hasattr(given, "_make") else tuple(changed)  # type: ignore[return-value]

    def _other(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            with np.errstate(all="ignore"), contextlib.suppress(OverflowError):
                return self._other_array(value)
            return value
        if isinstance(value, tuple):
            return self.hostile(value)
        return _INTEGERS[self.below(len(_INTEGERS))]

    def _other_array(self, array: NDArray[Any]) -> NDArray[Any]:
        kind = self.below(8)
        if kind == 0:
            return array.astype(_DTYPES[self.below(len(_DTYPES))])
        if kind == 1:
            return array[: self.below(len(array) + 1)] if array.ndim else array
        if kind == 2:
            return np.concatenate([array, array[: self.below(len(array) + 1)]])
        if kind == 3:
            return array.T[::-1]
        if kind == 4:
            return array[..., np.newaxis]
        if kind == 5:
            array = array.copy()
            array.flags.writeable = False
            return array
        array = array.copy()
        if array.size:
            number = _NUMBERS[self.below(len(_NUMBERS))]
            array.flat[self.below(array.size)] = np.asarray(number).astype(array.dtype)
        return array


class _Table(NamedTuple):
    rows: mondrian.Rows
    criteria: Criteria


def _criteria(drawn: Bytes, columns: int, codes: int, persons: bool) -> Criteria:
    """Up to two criteria on each but the column of the persons, which has one of its own."""
    column = [c for c in range(columns - persons) for _ in range(drawn.below(3))]
    kind = [drawn.below(ASKED + 1) for _ in column]
    if persons:
        column.append(columns - 1)
        kind.append(0)
    count = len(kind)
    # A tree of two levels: the codes, and the root.
    parent = np.array([*([codes] * codes), -1] * count, np.int32)
    near_end = np.minimum(np.arange(codes) + drawn.below(3), codes - 1).astype(np.int32)
    return Criteria(
        k=1 + drawn.below(4),
        kind=np.array(kind, np.int64),
        column=np.array(column, np.int64),
        level=drawn.array("f8", 4, count) / 2,
        c=1 + drawn.array("f8", 4, count) / 2,
        codes=np.full(count, codes),
        uncounted=np.where(np.array(column, int) < columns - persons, drawn.below(2), 0),
        share=np.full(count * codes, 1 / codes),
        share_first=np.arange(count + 1) * codes,
        parent=parent,
        height=np.ones(len(parent)),
        parent_first=np.arange(count + 1) * (codes + 1),
        near_end=np.tile(near_end, count),
        near_first=np.arange(count + 1) * codes,
        asked=[lambda counts: counts.max(axis=1) < counts.sum(axis=1)] * count,
    )


def _table(drawn: Bytes) -> _Table:
    attributes, columns, count = 1 + drawn.below(3), drawn.below(3), drawn.below(60)
    persons = drawn.below(4) == 0 and columns > 0
    sizes = 1 + drawn.array("i8", 9, attributes)
    codes = [drawn.array("u4", int(size), count) for size in sizes]
    first = np.concatenate([[0], sizes.cumsum()])
    total = int(first[-1])
    rows = mondrian.Rows(
        codes=np.array(codes).astype(("u1", "u2", "u4")[drawn.below(3)]),
        sensitive=drawn.array("i4", 5, columns, count),
        kind=drawn.array("i8", 3, attributes),
        first=first,
        low=np.arange(total) / total,
        high=np.arange(total) / total,
        step=drawn.array("f8", 5, total) / 4,
        span=np.ones(attributes),
        most=np.full(attributes, (1.0, 0.5, 4.0)[drawn.below(3)]),
        present=sizes.astype(float),
        persons=int(persons),
    )
    return _Table(rows, _criteria(drawn, columns, 5, persons))


def _permutes(index: NDArray[np.int32], starts: NDArray[np.int64], rows: mondrian.Rows) -> None:
    count = rows.codes.shape[1]
    assert sorted(index.tolist()) == list(range(count))
    assert (starts[:1] == 0).all()
    assert (np.diff(starts) > 0).all()


def _mondrian(drawn: Bytes) -> None:
    policy = mondrian.KernelPolicy(
        greedy=drawn.below(5),
        candidates=1 + drawn.below(4),
        rollout_rows=(rollout := drawn.below(70)),
        group_rows=drawn.below(rollout + 1),
        joined=(0, 2, 3, 4)[drawn.below(4)],
    )
    rows, asked, policy = drawn.hostile((*drawn.hostile(_table(drawn)), policy))
    index, starts = mondrian.classes(rows, asked, policy)
    _permutes(index, starts, rows)
    index, starts = drawn.hostile((index, starts))
    mondrian.loss(rows, asked, policy, index, starts)
    tree = mondrian.Tree(rows, asked, policy)
    start, stop = drawn.hostile((0, rows.codes.shape[1]))
    attribute, code = tree.cut(start, stop)
    attribute, code = drawn.hostile((attribute, code))
    tree.split(start, stop, attribute, code)


def _multiway(drawn: Bytes) -> None:
    multiway = mondrian.Multiway(1 + drawn.below(5), 1 + drawn.below(5))
    rows, asked, multiway = drawn.hostile((*drawn.hostile(_table(drawn)), multiway))
    _permutes(*mondrian.multiway_classes(rows, asked, multiway), rows)
    tree = mondrian.MultiwayTree(rows, asked, multiway)
    tree.cut(*drawn.hostile((0, rows.codes.shape[1])))


def _classes(drawn: Bytes) -> None:
    count, size = 1 + drawn.below(30), 1 + drawn.below(9)
    codes = drawn.array(("u1", "u2", "u4", "i8")[drawn.below(4)], size, count)
    index = drawn.array("i4", count, drawn.below(40))
    starts = drawn.starts(len(index), 1)
    classes.extents(*drawn.hostile((codes, index, starts)))
    arguments = drawn.hostile((codes, index, starts, size))
    if not 1 << 24 < arguments[3] <= 1 << 32:  # so many codes only take memory and time
        classes.distinct_per_class(*arguments)
    columns = drawn.array(("u1", "u2", "u4")[drawn.below(3)], size, drawn.below(19), len(codes))
    classes.extents_of_columns(*drawn.hostile((columns, index, starts)))
    random = drawn.array("u4", 256, len(index)) << np.uint32(24)
    classes.shuffle_classes(*drawn.hostile((index, starts, random)))


def _labels(drawn: Bytes) -> None:
    count, size = drawn.below(20), 1 + drawn.below(9)
    dtype = ("u1", "u2", "u4", "i8")[drawn.below(4)]
    pairs = drawn.hostile((*drawn.array(dtype, size, 2, count), size))
    if pairs[2] <= 1 << 12:
        classes.number_pairs(*pairs)
    labels = tuple(
        drawn.array(("u1", "u2", "u4")[drawn.below(3)], 256, count)
        for _ in range(1 + drawn.below(3))
    )
    order, _ = classes.sort_classes(drawn.hostile(labels))
    starts = drawn.starts(count, 0)
    arranged = np.arange(len(starts), dtype=np.int32)[::-1].copy()
    classes.arrange_classes(*drawn.hostile((np.arange(count, dtype=np.int32), starts, arranged)))
    sizes = drawn.array("i8", 9, count)
    given = drawn.hostile((labels[0], order, sizes))
    if (
        not isinstance(given[2], np.ndarray)
        or given[2].dtype == object
        or given[2].sum() <= 1 << 20
    ):
        classes.repeat(*given)


def _routing(drawn: Bytes) -> None:
    rows, columns, nodes = drawn.below(20), 1 + drawn.below(3), 1 + drawn.below(8)
    tree = [drawn.array("i8", limit, nodes) for limit in (columns, 9, nodes, nodes)]
    leaf = drawn.array("i8", 9, nodes) - 4
    places = drawn.array(("u1", "u2", "u4")[drawn.below(3)], 9, columns, rows)
    classes.route_rows(*drawn.hostile((places, *tree, leaf)))


def _lookup(drawn: Bytes) -> None:
    count, size = drawn.below(40), 1 + drawn.below(20)
    values = drawn.array(
        ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8")[drawn.below(8)], 20, count
    )
    valid = (None, drawn.array("u1", 256, count // 8 + 2))[drawn.below(2)]
    of = lookup.SmallRange(values, drawn.below(3), size, valid, drawn.below(9))
    table = drawn.array(("u1", "i2", "u4", "f8")[drawn.below(4)], 99, size + 1)
    found = np.zeros(count, table.dtype)
    for work, given in (
        (lookup.SmallRange.mark, (of, np.zeros(size + 1, bool))),
        (lookup.SmallRange.tally, (of, np.zeros(size + 1, np.int64))),
        (lookup.SmallRange.look_up, (of, table, found)),
    ):
        work(*drawn.hostile(given))
    leaves = drawn.array(("u1", "u2", "u4")[drawn.below(3)], 9, count)
    pairs = drawn.hostile((leaves, drawn.array("i4", 9, count), 9, 9))
    if abs(pairs[2]) * abs(pairs[3]) <= 1 << 20:
        lookup.count_pairs(*pairs)


def _counting(drawn: Bytes) -> None:
    wide, n, columns, size = 1 + drawn.below(2), drawn.below(40), 1 + drawn.below(3), 8
    words = drawn.array("u8", 64, wide, n)
    places = np.array([[drawn.below(wide), 3 * at, 7] for at in range(columns)], np.uint64)
    tables = drawn.array("u8", size, columns * size)
    first = np.arange(columns) * size
    rows = 1 + drawn.array("i8", 9, n)
    counting.recode(*drawn.hostile((words, rows, places, tables, first)))
    keys = drawn.array("u8", 256, wide)
    index, starts = counting.group_by_bits(*drawn.hostile((words, keys)))
    sensitive = drawn.array("i4", 5, 2, n)
    asked = drawn.hostile(_criteria(drawn, 2, 5, persons=False))
    class_criteria.groups_satisfy(*drawn.hostile((index, starts, sensitive, rows, asked)))


def _criterion(drawn: Bytes) -> None:
    asked = _criteria(drawn, 1 + drawn.below(2), 5, persons=False)
    counts = drawn.array("i8", 9, 5)
    class_criteria.satisfies(*drawn.hostile((counts, asked, drawn.below(3))))


def _top_down(drawn: Bytes) -> None:
    """Each attribute's tree has two levels: the codes, and the root."""
    attributes, columns, n = 1 + drawn.below(3), drawn.below(2), 1 + drawn.below(30)
    size = 1 + drawn.below(6)
    numbers = range(attributes)
    root = [a * (size + 1) for a in numbers]
    attribute = np.repeat(np.arange(attributes), size + 1).astype(np.int32)
    leaf = np.tile(np.arange(size + 1) > 0, attributes)
    member = np.concatenate([[a * size, *range(a * size, (a + 1) * size)] for a in numbers])
    forest = top_down.Forest(
        first=np.arange(attributes + 1) * size,
        attribute=attribute,
        child_first=np.concatenate([[0], np.where(leaf, 0, size).cumsum()]),
        children=np.flatnonzero(leaf).astype(np.int32),
        member_first=member.astype(np.int64),
        member_stop=member + np.where(leaf, 1, size),
        members=np.arange(attributes * size, dtype=np.int32),
        gain=drawn.array("f8", 9, len(attribute)),
    )
    places = range(attributes + columns)
    packed = np.zeros(n, np.uint64)
    for at in places:
        packed |= drawn.array("u8", min(size, 5), n) << np.uint64(8 * at)
    combinations = top_down.PackedCombinations(
        words=packed[np.newaxis].copy(),
        rows=1 + drawn.array("i8", 5, n),
        word=np.zeros(len(places), np.int64),
        shift=np.array([8 * at for at in places], np.uint64),
        mask=np.full(len(places), 255, np.uint64),
    )
    cut = np.repeat(root, size).astype(np.int32)
    asked = _criteria(drawn, columns, 5, persons=False)
    given = (drawn.hostile(combinations), drawn.hostile(forest), cut, drawn.hostile(asked))
    top_down.specialize(*drawn.hostile(given))
    part, parts, seed = drawn.below(3), 1 + drawn.below(3), drawn.below(256)
    arguments = drawn.hostile((combinations.rows, part, parts, seed))
    rows = arguments[0]
    if rows.size and abs(rows.sum(dtype="f8")) < 1 << 16:  # each row takes time
        top_down.rows_of_part(*arguments)


def _recount(drawn: Bytes) -> None:
    """One of the loops with hostile arguments: each would refuse those of the next."""
    count, size, values = drawn.below(40), 1 + drawn.below(9), 1 + drawn.below(9)
    kind = ("u1", "u2", "u4")[drawn.below(3)]
    columns = [drawn.array("i4", 2, count) for _ in range(1 + drawn.below(2))]
    starts, keys = equal_rows.equal_runs(columns, count), drawn.array("u8", 9, count)
    codes, places = drawn.array(kind, size, values), drawn.array("i4", values, count)
    pairs = value_counts.count_values(places, starts, codes, size)
    order, groups = equal_rows.group_keys(keys[: len(starts)].copy())
    classes_of = np.repeat(np.arange(len(starts)), np.diff(pairs.first))
    wide = pairs.codes.astype(np.int64), pairs.counts.astype(np.int64)
    ranks = (drawn.array("i4", 5, size) - 1).astype(np.int32)
    unsigned, radices = [each.astype(kind) for each in columns], [size] * len(columns)
    numbers = drawn.array(("u1", "i4", "i8")[drawn.below(3)], size, count)
    loops: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = (
        (equal_rows.equal_runs, (columns, count)),
        (equal_rows.distances, (numbers, 0, size)),
        (equal_rows.join_codes, (unsigned, radices, keys)),
        (equal_rows.group_keys, (keys,)),
        (source_rows.distinct_rows, (places, values)),
        (source_rows.rows_differ, (codes.take(places % size), codes, places % size)),
        (value_counts.count_values, (places, starts, codes, size)),
        (value_counts.sum_values, (pairs, order, groups, size)),
        (value_counts.sum_by_code, (pairs.codes, pairs.counts, size)),
        (value_figures.ends_of_ranks, (classes_of, wide[0], len(starts), ranks)),
        (value_figures.greatest_shares, (classes_of, *wide, np.ones(len(starts), np.int64), size)),
    )
    loop, arguments = loops[drawn.below(len(loops))]
    loop(*drawn.hostile(arguments))


_CALLS: tuple[Callable[[Bytes], None], ...] = (
    _mondrian, _multiway, _classes, _labels, _routing, _lookup, _counting, _criterion, _top_down,
    _recount,
)  # fmt: skip


def kernels(content: bytes) -> None:
    """Any arguments of the kernels: they are refused, or nothing outside of them is touched."""
    drawn = Bytes(content)
    call = _CALLS[drawn.below(len(_CALLS))]
    with contextlib.suppress(*_REFUSED):
        call(drawn)
