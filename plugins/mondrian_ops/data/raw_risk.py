"""How many people of the source share a row's raw quasi-identifiers: the risk before a release.

Measured on sampled rows, each compared with all rows of its fragment. A fragment has all rows of a
combination of raw values, so these counts are those of the whole source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.data.encoding import as_array
from mondrian_ops.data.person_rows import hashed

Ints = NDArray[np.int64]

PEOPLE = (1, 2, 5, 10, 20, 50)
"""Rows are counted by how many people they may be of: at least so many."""

_DIGITS = 4  # more would tell of single rows
_BLOCK = 1 << 14
_FLAGS = 1 << 20
_SHIFT = np.uint64(64 - 20)  # the highest bits depend on all others


def people_like(rows: pa.Table, sampled: Ints, names: Sequence[str], entity_id: str | None) -> Ints:
    """(sampled,) how many rows, or persons, have the values of each ``sampled`` one, itself too.

    ``names``: the columns that are compared, by sums of their values times odd numbers: two
    combinations are hardly ever taken for one.
    """
    key, columns = np.zeros(rows.num_rows, np.uint64), _words([rows[name] for name in names])
    factors = np.random.default_rng(0).integers(0, 1 << 63, len(columns), np.uint64) * 2 + 1
    product = np.empty(_BLOCK, np.uint64)
    for start in range(0, len(key), _BLOCK):  # which stays in the cache
        of_block = key[start : start + _BLOCK]
        for words, factor in zip(columns, factors, strict=True):
            here = product[: len(of_block)]
            np.multiply(words[start : start + _BLOCK], factor, out=here)
            of_block += here
    wanted, place = np.unique(key[sampled], return_inverse=True)
    flags = np.zeros(_FLAGS, np.bool_)
    flags[wanted >> _SHIFT] = True
    near = np.flatnonzero(flags[key >> _SHIFT])  # few but the rows that are looked for
    at = np.minimum(np.searchsorted(wanted, key[near]), len(wanted) - 1)
    is_wanted = wanted[at] == key[near] if len(wanted) else np.zeros(0, np.bool_)
    of_wanted, like = at[is_wanted], near[is_wanted]
    if entity_id is not None:
        persons = hashed(rows[entity_id].take(pa.array(like)))
        of_wanted = np.unique(np.stack([of_wanted, persons]), axis=1)[0]
    people: Ints = np.bincount(of_wanted, minlength=len(wanted))[place]
    return people


def _words(columns: Sequence[pa.ChunkedArray]) -> list[NDArray[np.uint64]]:
    """Numbers of the rows, (rows,) each, that together are the same for equal values only.

    Columns of bytes without missing values share one, eight of them each.
    """
    arrays = list(map(as_array, columns))
    narrow = [each for each in arrays if _is_narrow(each)]
    words = [_word(each) for each in arrays if not _is_narrow(each)]
    for first in range(0, len(narrow), 8):
        together = np.zeros((len(narrow[first]), 8), np.uint8)
        for at, each in enumerate(narrow[first : first + 8]):
            together[:, at] = np.frombuffer(each.buffers()[1], np.uint8, len(each), each.offset)
        words.append(together.view(np.uint64)[:, 0])
    return words


def _is_narrow(values: pa.Array) -> bool:
    return bool(values.type in (pa.int8(), pa.uint8()) and not values.null_count)


def _word(values: pa.Array) -> NDArray[np.uint64]:
    """(rows,) a number for each value, the same for equal values of the column."""
    if pa.types.is_primitive(values.type) and values.type.bit_width == 64 and not values.null_count:
        words: NDArray[np.uint64] = np.frombuffer(
            values.buffers()[1], np.uint64, len(values), 8 * values.offset
        )
        return words
    if not pa.types.is_integer(values.type) or values.null_count:
        values = values.dictionary_encode(null_encoding="encode").indices
    of_rows: NDArray[np.uint64] = values.to_numpy().astype(np.uint64)
    return of_rows


def raw_risk(people: Ints, k: int, persons: Ints | None = None) -> dict[str, Any]:
    """The risk before the release, by how many ``people`` (rows,) each sampled row may be of.

    ``persons`` (rows,): a number of each row's person; None where each row is a person's.
    ``rows_by_people`` has pairs (least people, share of rows), none of which is of fewer than k
    persons. ``unique`` and ``average`` are None where the unique rows, or the others, are.
    """
    every = np.ones(len(people), np.int64)
    counts = rows_by_people((people, every), k, persons)
    unique = people == 1
    few = any(0 < _persons(part, every, persons) < k for part in (unique, ~unique))
    return {
        "unique": None if few else np.count_nonzero(unique) / len(people),
        "average": None if few else round(float(np.mean(1 / people)), _DIGITS),
        "rows_by_people": [[least, rows / len(people)] for least, rows in counts],
    }


def rows_by_people(
    sizes: tuple[Any, Any], k: int, persons: Ints | None = None
) -> list[tuple[int, int]]:
    """Pairs (least people, rows) of some rows, given how many rows have each number of people.

    A pair of fewer than k ``persons`` (see `raw_risk`) is counted with the next one, or with the
    one before the last.
    """
    step, rows = np.searchsorted(PEOPLE, sizes[0], "right") - 1, np.asarray(sizes[1])
    found: list[tuple[int, int]] = []
    waiting, since = np.zeros(len(rows), np.bool_), 0
    for at, least in enumerate(PEOPLE):
        here = step == at
        if not here.any():
            continue
        since = since or least
        waiting |= here
        if _persons(waiting, rows, persons) >= k:
            found.append((since, int(rows[waiting].sum())))
            waiting[:], since = False, 0
    if waiting.any() and found:
        least, count = found.pop()
        found.append((least, count + int(rows[waiting].sum())))
    return found


def _persons(part: NDArray[np.bool_], rows: Ints, persons: Ints | None) -> int:
    """How many persons some of the entries are of."""
    return int(rows[part].sum()) if persons is None else len(np.unique(persons[part]))
