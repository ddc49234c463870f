"""The distinct combinations of values that rows have, counted while they pass.

No domain has to be known beforehand: a combination is one of places in lists of values, which grow
as values are met. So a single pass over a dataset finds both its domains and its frequency set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.core.encoding import Indexed
from mondrian_ops.core.frequency_set import FrequencySet

__all__ = ["CombinationTally", "Combinations"]


@dataclass(frozen=True)
class Combinations:
    """Distinct combinations of values, and how many rows have each.

    values
        By column, its values, the missing one among them, in no order. One may be there twice, and
        so may a combination then; or in no row.
    frequencies
        Combinations of places in these lists, in no order.
    """

    values: Mapping[str, pa.Array]
    frequencies: FrequencySet

    @classmethod
    def of(cls, columns: Mapping[str, Indexed]) -> Combinations:
        """Count some rows."""
        values = {name: column.values for name, column in columns.items()}
        places = [column.indices for column in columns.values()]
        return cls(values, FrequencySet.unordered(places, _sizes(values)))

    def merged(self, other: Combinations) -> Combinations:
        """What two parts of a dataset hold together."""
        values, places = {}, []
        for name, known in self.values.items():
            values[name], place = _united(known, other.values[name])
            places.append(np.concatenate([self.places(name), place[other.places(name)]]))
        rows = np.concatenate([self.frequencies.rows, other.frequencies.rows])
        return Combinations(values, FrequencySet.unordered(places, _sizes(values), rows))

    def present(self) -> Combinations:
        """The same without values that are in no row."""
        values, places = {}, []
        for name, known in self.values.items():
            codes = self.places(name)
            is_present = np.bincount(codes, minlength=len(known)) > 0
            values[name] = known.filter(pa.array(is_present))
            places.append((np.cumsum(is_present) - 1)[codes])
        rows = self.frequencies.rows
        return Combinations(values, FrequencySet.unordered(places, _sizes(values), rows))

    def places(self, name: str) -> NDArray[np.int32]:
        """(combinations,): where in the list of a column the value of each is."""
        return self.frequencies.column([*self.values].index(name))

    def counted(self, name: str) -> tuple[pa.Array, pa.Array]:
        """The values of a column, and the rows of each, int64."""
        rows = np.zeros(len(self.values[name]), np.int64)
        np.add.at(rows, self.places(name), self.frequencies.rows)
        return self.values[name], pa.array(rows)

    def to_columns(self) -> dict[str, pa.Array]:
        """Arrays of several lengths, by name; `from_columns` reads them back."""
        words = {f"word:{at}": pa.array(word) for at, word in enumerate(self.frequencies.words)}
        values = {f"value:{name}": known for name, known in self.values.items()}
        return {**values, **words, "rows": pa.array(self.frequencies.rows)}

    @classmethod
    def from_columns(cls, columns: Mapping[str, pa.Array]) -> Combinations:
        """The combinations that `to_columns` gave."""
        values = {
            name.removeprefix("value:"): known
            for name, known in columns.items()
            if name.startswith("value:")
        }
        words = [word.to_numpy() for name, word in columns.items() if name.startswith("word:")]
        rows = columns["rows"].to_numpy()
        return cls(values, FrequencySet(tuple(_sizes(values)), np.stack(words), rows))


class CombinationTally:
    """Combinations of parts of a dataset, added up."""

    def __init__(self) -> None:
        self._parts: list[Combinations] = []

    def add(self, part: Combinations) -> None:
        """Take in another part; each combination is counted as often as the logarithm of parts."""
        self._parts.append(part)
        while len(self._parts) > 1 and 2 * _length(self._parts[-1]) > _length(self._parts[-2]):
            self._merge_last()

    def result(self) -> Combinations:
        """All parts together, of which there must be one, and no value that is in no row."""
        while len(self._parts) > 1:
            self._merge_last()
        self._parts = [self._parts[0].present()]
        return self._parts[0]

    def _merge_last(self) -> None:
        last = self._parts.pop()
        self._parts[-1] = self._parts[-1].merged(last)


def _length(part: Combinations) -> int:
    return len(part.frequencies.rows)


def _sizes(values: Mapping[str, pa.Array]) -> list[int]:
    return [len(known) for known in values.values()]


def _united(known: pa.Array, others: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
    """The values of two lists, those of the first in their places; those of the second's values."""
    place = pc.index_in(others, value_set=known)
    is_new = place.is_null()
    new = others.filter(is_new)
    places = pc.fill_null(place, 0).to_numpy().astype(np.int64)
    places[is_new.to_numpy(zero_copy_only=False)] = len(known) + np.arange(len(new))
    return pa.concat_arrays([known, new]), places
