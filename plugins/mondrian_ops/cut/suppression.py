"""Which rows Mondrian leaves out: those without which the others lose least.

A row saves by itself where it alone stretches a class that stays large enough, and all rows of a
class save together. Both are compared by what they save per row. Half of the rows are left out of
the classes as they were cut, then the others are cut anew, and the second half follows; where the
new cut helps nothing, the old classes stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.algorithms.mondrian import CodedRows
from mondrian_ops.generalize.attributes import Attribute, Classes
from mondrian_ops.native.arrays import Floats

_ROUNDS = 3  # after each, the savings of the remaining rows are measured anew
_LARGEST = 100  # rows of a class that single rows are taken from
_COMPARED = 1 << 21  # rows of the classes that are compared at once
_PER_ROW = 4  # classes compared for each row that may be left out

Cutting = Callable[[NDArray[np.int32]], Classes]
"""Cuts some rows, by their numbers, into classes."""


def without_costly_rows(
    attributes: Sequence[Attribute], coded: CodedRows, classes: Classes, most: int, cut: Cutting
) -> Classes:
    """The classes without up to ``most`` rows, or others of the rows that remain."""
    if most < 1 or len(classes.starts) < 2:
        return classes
    trimming = _Trimming(attributes, coded)
    count = len(classes.index)
    half = trimming.without(classes, most // 2)
    kept = trimming.without(half, most - (count - len(half.index)))
    anew = cut(np.sort(half.index))
    anew = trimming.without(anew, most - (count - len(anew.index)))
    return min(kept, anew, key=trimming.mean_loss)


class _Trimming:
    """Leaves rows out of classes."""

    def __init__(self, attributes: Sequence[Attribute], coded: CodedRows) -> None:
        self._attributes, self._coded = attributes, coded

    def mean_loss(self, classes: Classes) -> float:
        """The loss per row."""
        return float(np.average(self._losses(classes), weights=classes.sizes))

    def without(self, classes: Classes, most: int) -> Classes:
        """The classes without up to ``most`` rows."""
        for rounds in range(_ROUNDS, 0, -1):
            quota = -(-most // rounds)
            chosen = self._chosen(classes, quota, most) if quota > 0 else []
            if not chosen:
                break
            most -= len(chosen)
            classes = _kept(classes, chosen)
        return classes

    def _losses(self, classes: Classes) -> Floats:
        """(classes,) the loss of each row of a class, summed over the columns."""
        lost: Floats = sum(
            (
                attribute.publish(encoded, classes).ncp
                for attribute, encoded in zip(self._attributes, self._coded.encoded, strict=True)
            ),
            start=np.zeros(len(classes.starts)),
        )
        return lost

    def _chosen(self, classes: Classes, quota: int, most: int) -> list[int]:
        """Rows to leave out, one or all of a class: as many as ``quota``, or up to ``most``."""
        losses, sizes = self._losses(classes), classes.sizes
        first = losses.argsort(kind="stable")[::-1][: _PER_ROW * quota]
        whole = [(float(losses[at]), at, _rows_of(classes, at)) for at in first.tolist()]
        options = sorted([*whole, *self._single(classes, losses * sizes, quota)], key=_saving)
        chosen: list[int] = []
        used: set[int] = set()
        for saved, at, rows in options:
            is_last = len(used) + 1 >= len(sizes)
            if len(chosen) >= quota:
                break
            if saved > 0 and at not in used and not is_last and len(chosen) + len(rows) <= most:
                used.add(at)
                chosen += rows.tolist()
        return chosen

    def _single(
        self, classes: Classes, lost: Floats, quota: int
    ) -> list[tuple[float, int, NDArray[np.int32]]]:
        """What each row of the classes that lose most saves alone, its class and its number."""
        sizes = classes.sizes
        able = np.flatnonzero((sizes > 2) & (sizes <= _LARGEST) & (lost > 0))
        able = able[np.argsort(-lost[able], kind="stable")][: _PER_ROW * quota]
        able = able[np.cumsum(sizes[able] * (sizes[able] - 1)) <= _COMPARED]
        if not len(able):
            return []
        others, lengths = [], []
        for at in able.tolist():
            rows, size = _rows_of(classes, at), int(sizes[at])
            others.append(np.tile(rows, (size, 1))[~np.eye(size, dtype=bool)])
            lengths += [size - 1] * size
        starts = np.cumsum([0, *lengths[:-1]])
        remaining = Classes(np.concatenate(others).astype(np.int32), starts.astype(np.int64))
        holds = self._coded.satisfied(remaining)
        class_of = np.repeat(able, sizes[able])
        saved = lost[class_of] - self._losses(remaining) * remaining.sizes
        rows = np.concatenate([_rows_of(classes, at) for at in able.tolist()])
        return [
            (float(saved[at]), int(class_of[at]), rows[at : at + 1])
            for at in np.flatnonzero(holds).tolist()
        ]


def _saving(option: tuple[float, int, NDArray[np.int32]]) -> tuple[float, int]:
    return -option[0], option[1]


def _rows_of(classes: Classes, at: int) -> NDArray[np.int32]:
    stop = classes.starts[at + 1] if at + 1 < len(classes.starts) else len(classes.index)
    return classes.index[classes.starts[at] : stop]


def _kept(classes: Classes, without: Sequence[int]) -> Classes:
    """The classes without some rows; those that lose all of them are gone."""
    stays = ~np.isin(classes.index, np.asarray(without))
    class_of = np.repeat(np.arange(len(classes.starts)), classes.sizes)[stays]
    starts = np.flatnonzero(np.diff(class_of, prepend=-1))
    return Classes(classes.index[stays], starts.astype(np.int64))
