"""What the attacker of a series has: releases as published, and drops as delivered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass
class Release:
    """A release as published: its classes, and the class and the sensitive value of each row."""

    published: Mapping[str, pa.Array]  # (classes,) by column
    number_of: Mapping[int, int]  # the class of a hash
    class_of: Ints  # (rows,)
    value: Ints  # (rows,)
    made_up: Counter[int | None]  # rows of each class that are nobody's; None: of no class here

    @property
    def values(self) -> list[set[int]]:
        """The sensitive values in each class."""
        found: list[set[int]] = [set() for _ in self.number_of]
        for number, value in zip(self.class_of.tolist(), self.value.tolist(), strict=True):
            found[number].add(value)
        return found


@dataclass
class DropRows:
    """Rows of a drop: the persons, their sensitive values as written, and quasi-identifiers.

    ``seen`` (rows,) bool: whether an earlier release may have the row, and it was counted there.
    """

    person: Ints
    value: Ints
    places: pa.Table
    seen: NDArray[np.bool_]

    def without(self, used: Iterable[int]) -> DropRows:
        """The rows that are not ``used``."""
        rest = np.setdiff1d(np.arange(len(self.person)), np.array(list(used), np.int64))
        places = self.places.take(pa.array(rest))
        return DropRows(self.person[rest], self.value[rest], places, self.seen[rest])
