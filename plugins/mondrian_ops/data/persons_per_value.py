"""The persons that have each value of a column, up to as many as matter.

One person may have all rows of a value, so that its rows say nothing of how many it hides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops.data.encoding import Indexed, as_array
from mondrian_ops.data.person_rows import hashed
from mondrian_ops.data.persons import Ints, LeafPersons
from mondrian_ops.late_methods import dataclass

_FIRST_ROWS = 1 << 12


@dataclass(frozen=True)
class PersonsPerValue:
    """Pairs of a value and a person that has it, at most ``enough`` of each value.

    ``values`` and ``persons`` (pairs,), which are hashes: the count is never too high. All rows
    without a person count as one. The missing value is a value, too.
    """

    enough: int
    values: pa.Array
    persons: Ints

    @classmethod
    def of_each(
        cls, enough: int, columns: Mapping[str, Indexed], entity_id: pa.Array
    ) -> dict[str, Self]:
        """The persons of the values of several ``columns`` of some rows, by column."""
        person, found = hashed(entity_id), {}
        for name, column in columns.items():
            pairs = _pairs(enough, column, person)
            values = column.values.take(pa.array(pairs.leaf))
            found[name] = cls(enough, values, pairs.person)
        return found

    @classmethod
    def joined(cls, parts: Sequence[PersonsPerValue]) -> Self:
        """The persons of several parts, of which there is at least one."""
        enough = parts[0].enough
        values = as_array(pa.chunked_array([part.values for part in parts]))
        listed = values.dictionary_encode(null_encoding="encode")
        leaf = listed.indices.to_numpy().astype(np.int64)
        pairs = LeafPersons(enough, leaf, np.concatenate([part.persons for part in parts]))
        kept = pairs.added([])
        return cls(enough, listed.dictionary.take(pa.array(kept.leaf)), kept.person)

    def count(self, values: pa.Array) -> Ints:
        """The persons of each of some ``values``, exact below ``enough``."""
        place = pc.index_in(self.values, value_set=values).drop_null().to_numpy()
        return np.bincount(place, minlength=len(values)).astype(np.int64)


def _pairs(enough: int, column: Indexed, person: Ints) -> LeafPersons:
    """Most values of few reach ``enough`` with the first rows; the other rows are left out."""
    place = column.indices.astype(np.int64)
    first = LeafPersons(enough, place[:_FIRST_ROWS], person[:_FIRST_ROWS]).added([])
    if len(place) <= _FIRST_ROWS:
        return first
    is_full = np.bincount(first.leaf, minlength=len(column.values)) >= enough
    left = _FIRST_ROWS + np.flatnonzero(~is_full[place[_FIRST_ROWS:]])
    return first.added([LeafPersons(enough, place[left], person[left])])
