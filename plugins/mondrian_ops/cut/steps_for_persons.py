"""Which specializations leave persons the values that l needs: asked of each class that they make.

The kernel asks classes for what rows need. What it specializes is done here once more, step by
step, and a step that would make a class whose persons have too few values is left out, with all
that follow from it. A class without that step is a union of classes that the kernel asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.native.top_down import Forest, Specialized
from mondrian_ops.cut.person_values import PersonsValues
from mondrian_ops.data.frequency_set import FrequencySet, group, packed
from mondrian_ops.generalize.attributes import Classes

Ints = NDArray[np.integer[Any]]


class CheckedSteps:
    """The level of a top-down specialization, ``cut`` (codes,), whose classes persons allow."""

    def __init__(
        self, frequencies: FrequencySet, forest: Forest, cut: Ints, values: PersonsValues
    ) -> None:
        self.cut: NDArray[np.int32] = cut.astype(np.int32)
        self._steps: list[int] = []
        self._refused: list[int] = []
        self._forest = forest
        self._values = values
        codes = frequencies.codes()
        attributes = len(forest.first) - 1
        # Codes, and so nodes, of all attributes are numbered through.
        self._code_of = codes[:attributes] + forest.first[:-1, None].astype(np.int32)
        self._sensitive = codes[attributes:]
        nodes = self.cut[self._code_of]
        self._class_of = np.zeros(nodes.shape[1], np.int64)
        self._classes = self._numbered = 0
        self.holds = self._accept(np.arange(nodes.shape[1]), nodes)

    @property
    def result(self) -> Specialized:
        """The level, and the steps taken to it."""
        return Specialized(np.array(self._steps, np.int32), self.cut, self._classes)

    def take(self, steps: Ints) -> bool:
        """Take the kernel's ``steps`` from the level on, those that persons allow, in order.

        Returns whether some were refused.
        """
        forest, before = self._forest, len(self._refused)
        for node in steps.tolist():
            first, stop = forest.child_first[node : node + 2]
            children = forest.children[first:stop]
            below = self.cut.copy()
            for child in children.tolist():
                members = forest.members[forest.member_first[child] : forest.member_stop[child]]
                below[members] = child
            codes = self._code_of[forest.attribute[node]]
            rows = np.flatnonzero(self.cut[codes] == node)
            if not len(rows):  # it follows from a step that was refused
                continue
            parted = [self._class_of[rows], below[codes[rows]]]
            if self._accept(rows, parted):
                self.cut = below
                self._steps.append(node)
            else:
                self._refused.append(node)
        return len(self._refused) > before

    def without_refused(self) -> Forest:
        """The forest, in which the nodes whose specialization was refused are leaves."""
        forest = self._forest
        kept = np.diff(forest.child_first)
        parent = np.repeat(np.arange(len(kept)), kept)
        kept[self._refused] = 0
        return forest._replace(
            child_first=np.concatenate([[0], np.cumsum(kept)]),
            children=forest.children[~np.isin(parent, self._refused)],
        )

    def _accept(self, rows: Ints, parted: Any) -> bool:
        """Part the classes of ``rows`` by the columns ``parted``, if persons allow it."""
        order, starts = group(packed(parted, [int(each.max(initial=0)) + 1 for each in parted]))
        classes = Classes(rows[order].astype(np.int32), starts.astype(np.int64))
        if not self._values.satisfied(classes, self._sensitive).all():
            return False
        gone = len(np.unique(self._class_of[rows])) if self._classes else 0
        numbers = self._numbered + np.arange(len(starts))
        self._class_of[classes.index] = np.repeat(numbers, classes.sizes)
        self._numbered += len(starts)
        self._classes += len(starts) - gone
        return True
