"""The count of one part of a release in shares, so that a cluster checks what one process could.

A share has the classes of a part whose hashes fall to one bucket. Equal classes of all parts are in
shares of the same bucket, and are joined there where all values are equal: the hash divides the
classes and decides nothing. What concerns a part as a whole travels as its head.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.verify.classes import CountedClasses
from mondrian_ops.verify.counts import CountedPart, PartCount
from mondrian_ops.verify.native.value_counts import CountedPairs
from mondrian_ops.verify.spilling import batch_of, classes_in, hashes_of
from mondrian_ops.verify.values import ColumnValues, IdentifierValues

ROW_BITS = 44
"""Bits that number the rows of one part of a release, or of a source; those above number parts."""

_ABOUT = b"part"


def shares_of(part: CountedPart, buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """Each bucket that has classes of the part, from 0 on, and its share of them.

    A share has only the values that occur in it.
    """
    quasi = len(part.classes.codes)
    bucket_of = hashes_of(part.classes, part.values) % np.uint64(buckets)
    order = np.argsort(bucket_of, kind="stable")
    codes = [*part.classes.codes, *(pairs.codes for pairs in part.classes.pairs)]
    batch = batch_of(part.classes, list(map(pa.array, codes))).take(pa.array(order))
    starts = np.searchsorted(bucket_of[order], np.arange(buckets + 1, dtype=np.uint64))
    for bucket in np.flatnonzero(np.diff(starts)).tolist():
        start, stop = int(starts[bucket]), int(starts[bucket + 1])
        columns = batch.slice(start, stop - start).columns
        share = classes_in([columns], quasi, lambda _, arrays: arrays[0].to_numpy())
        codes = [*share.codes, *(pairs.codes for pairs in share.pairs)]
        written = [_used(each, of.values) for each, of in zip(codes, part.values, strict=True)]
        table = pa.Table.from_batches([batch_of(share, written)])
        yield bucket, _described(table, part, int(share.sizes.sum()))


def part_of_share(table: pa.Table, quasi: int) -> CountedPart:
    """The count whose share a table is; ``quasi``: the number of its quasi-identifiers."""
    values: list[ColumnValues] = []

    def codes_of(_: int, arrays: Sequence[pa.Array[Any]]) -> NDArray[Any]:
        (column,) = arrays
        values.append(_values_of(column.dictionary))
        codes: NDArray[Any] = column.indices.cast(pa.int64()).fill_null(-1).to_numpy() + 1
        return codes.astype(np.min_scalar_type(len(column.dictionary)))

    columns = [column.combine_chunks() for column in table.columns]
    return _part(table, values, classes_in([columns], quasi, codes_of), {})


def head_of(part: CountedPart, whole: Collection[str] = ()) -> pa.Table:
    """The part without its classes; of its values those of ``whole``, else one of each column."""
    columns = [
        each.values if each.name in whole else each.values.slice(0, 1) for each in part.values
    ]
    published = {name: each for name, each in part.identifiers.items() if each.is_published}
    columns += [each.distinct for each in published.values()]
    lists = [
        pa.ListArray.from_arrays(pa.array([0, len(each)], pa.int32()), each) for each in columns
    ]
    names = list(map(str, range(len(columns))))
    counted = part.counted
    return _described(pa.table(lists, names), part, counted.rows, list(published), counted.losses)


def part_of_head(table: pa.Table, quasi: int) -> CountedPart:
    """The count whose head a table is, without its classes."""
    arrays = [column.combine_chunks().flatten() for column in table.columns]
    names = json.loads(table.schema.metadata[_ABOUT])["identifiers"]
    columns = len(arrays) - len(names)
    identifiers = {name: IdentifierValues(name) for name in names}
    for identifier, array in zip(identifiers.values(), arrays[columns:], strict=True):
        identifier.add(array)
    none, code = np.zeros(0, np.int64), np.zeros(0, np.uint8)
    pairs = [CountedPairs(np.zeros(1, np.int64), code, code)] * (columns - quasi)
    classes = CountedClasses([code] * quasi, none, none, pairs)
    return _part(table, list(map(_values_of, arrays[:columns])), classes, identifiers)


def _described(
    table: pa.Table,
    part: CountedPart,
    rows: int,
    identifiers: Iterable[str] = (),
    losses: Mapping[str, Any] = MappingProxyType({}),
) -> pa.Table:
    """The table, with what is no array."""
    about = {
        "name": part.name,
        "counted": [rows, part.counted.classes, part.counted.dp, dict(losses)],
        "columns": part.columns,
        "identifiers": list(identifiers),
    }
    return table.replace_schema_metadata({_ABOUT: json.dumps(about)})


def _part(
    table: pa.Table,
    values: list[ColumnValues],
    classes: CountedClasses,
    identifiers: dict[str, IdentifierValues],
) -> CountedPart:
    about = json.loads(table.schema.metadata[_ABOUT])
    counted, columns = PartCount(*about["counted"]), tuple(about["columns"])
    return CountedPart(about["name"], counted, columns, values, classes, identifiers)


def _values_of(values: pa.Array[Any]) -> ColumnValues:
    column = ColumnValues("")
    column.values = values
    return column


def _used(codes: NDArray[Any], values: pa.Array[Any]) -> pa.DictionaryArray[Any, Any]:
    """Some codes as indices into those of the values that they stand for."""
    used, place = np.unique(codes, return_inverse=True)
    used = used[used > 0].astype(np.int64)
    missing = codes == 0
    indices = pa.array((place - missing.any()).astype(np.int32), mask=missing)
    return pa.DictionaryArray.from_arrays(indices, values.take(pa.array(used - 1)))
