"""The distinct combinations of values in a dataset, counted in one pass.

A combination is stored as indices into lists of values, to which every new value is appended, so
that a single pass finds both the domains and the frequency set.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.encoding import Indexed
from mondrian_ops.data.frequency_set import FrequencySet, packed
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class Combinations:
    """Distinct combinations of values, and how many rows have each.

    values
        By column, its values, with the missing one, in no order. A value may be listed twice, and
        so may its combinations; some values may be in no row.
    frequencies
        Combinations of indices into these lists, in no order.
    """

    values: Mapping[str, pa.Array]
    frequencies: FrequencySet

    @classmethod
    def of(cls, columns: Mapping[str, Indexed]) -> Combinations:
        """Count some rows."""
        values = {name: column.values for name, column in columns.items()}
        indices = [column.indices for column in columns.values()]
        return cls(values, FrequencySet.unordered(indices, _sizes(values)))

    def merged(self, other: Combinations) -> Combinations:
        """The combinations of two parts of a dataset."""
        united = {n: _united(domain, other.values[n]) for n, domain in self.values.items()}
        values = {name: each for name, (each, _) in united.items()}
        indices = (  # one at a time: an unpacked column takes more memory than all packed ones
            np.concatenate([self.indices(name), place[other.indices(name)]])
            for name, (_, place) in united.items()
        )
        rows = np.concatenate([self.frequencies.rows, other.frequencies.rows])
        return Combinations(values, FrequencySet.unordered(indices, _sizes(values), rows))

    def present(self) -> Combinations:
        """Without the values that are in no row."""
        is_present = {
            name: np.bincount(self.indices(name), minlength=len(domain)) > 0
            for name, domain in self.values.items()
        }
        if all(each.all() for each in is_present.values()):
            return self
        values = {n: domain.filter(pa.array(is_present[n])) for n, domain in self.values.items()}
        indices = (
            (np.cumsum(each) - 1).astype(np.int32)[self.indices(name)]
            for name, each in is_present.items()
        )
        sizes = _sizes(values)
        frequencies = FrequencySet(tuple(sizes), packed(indices, sizes), self.frequencies.rows)
        return Combinations(values, frequencies)

    def indices(self, name: str) -> NDArray[np.int32]:
        """(combinations,): the index of each one's value in the list of a column."""
        return self.frequencies.column([*self.values].index(name))

    def counted(self, name: str) -> tuple[pa.Array, pa.Array]:
        """The values of a column, and the rows of each, int64."""
        rows = np.zeros(len(self.values[name]), np.int64)
        np.add.at(rows, self.indices(name), self.frequencies.rows)
        return self.values[name], pa.array(rows)

    def to_columns(self) -> dict[str, pa.Array]:
        """Arrays of several lengths, by name; `from_columns` reads them back."""
        words = {f"word:{at}": pa.array(word) for at, word in enumerate(self.frequencies.words)}
        values = {f"value:{name}": domain for name, domain in self.values.items()}
        return {**values, **words, "rows": pa.array(self.frequencies.rows)}

    @classmethod
    def from_columns(cls, columns: Mapping[str, pa.Array]) -> Combinations:
        """The combinations that `to_columns` wrote."""
        values = {
            name.removeprefix("value:"): domain
            for name, domain in columns.items()
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
        """Add a part. Parts of like size are merged: each is merged log(parts) times at most."""
        self._parts.append(part)
        while len(self._parts) > 1 and 2 * _length(self._parts[-1]) > _length(self._parts[-2]):
            self._merge_last()

    def result(self) -> Combinations:
        """All parts together, without values that are in no row; needs at least one part."""
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
    return [len(domain) for domain in values.values()]


def _united(domain: pa.Array, others: pa.Array) -> tuple[pa.Array, NDArray[np.int32]]:
    """The first list with the new values of the second appended; the indices of the second's."""
    place = pc.index_in(others, value_set=domain)
    is_new = place.is_null()
    new = others.filter(is_new)
    places = pc.fill_null(place, 0).to_numpy().astype(np.int32)
    places[is_new.to_numpy(zero_copy_only=False)] = len(domain) + np.arange(len(new))
    return pa.concat_arrays([domain, new]), places
