"""The attacker who holds all nights of a series, as a program that shares no code with the checks.

The attacker knows every person's quasi-identifiers and nights, and therefore the person's class in
each release, and intersects the sensitive values of these classes (Ganta et al., KDD 2008).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

_ALL = ~np.uint64(0)


class Attacker:
    """What is left of each person's possible sensitive values; persons are small whole numbers."""

    def __init__(self) -> None:
        self._common = np.empty(0, dtype=np.uint64)
        self._seen = np.empty(0, dtype=bool)
        self._subtracted = np.empty(0, dtype=bool)
        self._last = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        self._bits: dict[str, int] = {}

    def learn(
        self,
        persons: np.ndarray,
        their_classes: np.ndarray,
        classes: np.ndarray,
        values: pa.ChunkedArray,
    ) -> None:
        """Take in one release: (p,) persons and their classes; (n,) classes and values of rows.

        A missing value is no value. At most 64 values can be told apart.
        """
        encoded = values.combine_chunks().cast(pa.string()).dictionary_encode()
        for text in encoded.dictionary.to_pylist():
            self._bits.setdefault(text, len(self._bits))
        if len(self._bits) > 64:
            raise ValueError(f"{len(self._bits)} sensitive values; at most 64 can be told apart")
        shifts = [self._bits[text] for text in encoded.dictionary.to_pylist()]
        bits = np.append(np.uint64(1) << np.array(shifts, dtype=np.uint64), np.uint64(0))
        of_class = np.zeros(classes.max() + 1, dtype=np.uint64)
        places = encoded.indices.fill_null(len(shifts)).to_numpy()
        np.bitwise_or.at(of_class, classes, bits[places])
        self._reach(int(persons.max()) + 1)
        np.bitwise_and.at(self._common, persons, of_class[their_classes])
        self._seen[persons] = True
        tonight = (persons, their_classes)
        for one, other in ((self._last, tonight), (tonight, self._last)):
            self._subtracted[_alone_missing(*one, *other, len(self._seen))] = True
        self._last = tonight

    def subtracted(self) -> np.ndarray:
        """(persons,) of everybody in any release: whose class was there without them a night apart.

        One person left or came, and nothing else changed in the class. Whoever recognizes it in
        both releases and knows who that was subtracts its values, and is left with the person's.
        """
        return self._subtracted[self._seen]

    def left(self) -> np.ndarray:
        """(persons,) how many values are left of each person who is in any release."""
        counts: np.ndarray = np.bitwise_count(self._common[self._seen])
        return counts

    def _reach(self, persons: int) -> None:
        more = max(0, persons - len(self._seen))
        self._common = np.append(self._common, np.full(more, _ALL))
        self._seen = np.append(self._seen, np.zeros(more, dtype=bool))
        self._subtracted = np.append(self._subtracted, np.zeros(more, dtype=bool))


def _alone_missing(
    persons: np.ndarray,
    classes: np.ndarray,
    others: np.ndarray,
    their_classes: np.ndarray,
    most: int,
) -> np.ndarray:
    """The persons without whom, and without nobody else, their class is one of the other night."""
    if not len(persons) or not len(others):
        return np.empty(0, dtype=np.int64)
    there = np.full(most, -1)
    there[others] = their_classes
    went = there[persons]
    count = classes.max() + 1
    least, greatest = np.full(count, most), np.full(count, -1)
    present = went >= 0
    np.minimum.at(least, classes[present], went[present])
    np.maximum.at(greatest, classes[present], went[present])
    sizes = np.bincount(classes, minlength=count)
    whole = (greatest >= 0) & (least == greatest)
    whole &= np.bincount(classes[~present], minlength=count) == 1
    whole &= np.bincount(their_classes)[np.maximum(greatest, 0)] == sizes - 1
    found: np.ndarray = persons[~present & whole[classes]]
    return found


def classes_of(release: pa.Table, columns: Sequence[str]) -> np.ndarray:
    """(rows,) the number of each row's class: rows whose published columns are equal."""
    classes = np.zeros(len(release), dtype=np.int64)
    for name in columns:
        column = release[name].combine_chunks()
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        codes = column.indices.fill_null(len(column.dictionary)).to_numpy()
        pairs = classes * (len(column.dictionary) + 1) + codes
        classes = np.unique(pairs, return_inverse=True)[1]
    return classes
