"""Classes of a release that are too many for memory: runs of them in one private file.

A run is sorted by buckets, a hash of what is published, so that equal classes of all runs are in
the same bucket. Some buckets at a time are read back, and their classes joined where all values are
equal: the hash divides the classes and decides nothing.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.verify.classes import CountedClasses, group_classes, pair_weight
from mondrian_ops.verify.native.value_counts import CountedPairs, least_type
from mondrian_ops.verify.values import ColumnValues, places

Ints = NDArray[np.int64]

_BITS = 10
_BUCKETS = 1 << _BITS
_CODED = (1 << 16) - 1  # a column of more values is written as values, not as codes
_ODD = np.uint64(0x9E3779B97F4A7C15)


class _Run(NamedTuple):
    """Classes that were written together, one record batch per bucket that has any.

    ``offsets`` (buckets + 1,) int64: where the bucket's batch starts in the file. ``entries``
    (buckets,): what its classes and pairs weigh, as `classes.entries` says. ``plain``: by column,
    whether it is written as values.
    """

    schema: pa.Schema
    offsets: Ints
    entries: NDArray[Any]
    plain: list[bool]


class SpilledClasses:
    """Classes in a file, written run by run and read bucket by bucket.

    Args:
        file: a file without content, which nobody else uses.
        values: of the quasi-identifiers, then of the columns whose values are counted.
        quasi: how many of these are quasi-identifiers.
        coded: columns whose codes must not change, because they stand for the whole release.
    """

    def __init__(
        self, file: IO[bytes], values: Sequence[ColumnValues], quasi: int, coded: range
    ) -> None:
        self._file = file
        self._values = values
        self._quasi = quasi
        self._coded = coded
        self.runs: list[_Run] = []

    def append(self, classes: CountedClasses) -> None:
        """Write a run. Afterwards columns of many values keep only the first ones, coded anew."""
        hashes = hashes_of(classes, self._values)
        buckets = (hashes >> np.uint64(64 - _BITS)).astype(np.uint16)
        order = np.argsort(buckets, kind="stable")
        plain = [
            len(of.values) > _CODED and at not in self._coded for at, of in enumerate(self._values)
        ]
        batch = batch_of(classes, self._written(classes, plain)).take(pa.array(order))
        entries = np.bincount(buckets, minlength=_BUCKETS)
        starts = np.concatenate([[0], np.cumsum(entries)])
        offsets = [self._file.seek(0, os.SEEK_END)]
        for start, stop in pairwise(starts.tolist()):
            if start < stop:
                self._file.write(batch.slice(start, stop - start).serialize())
            offsets.append(self._file.tell())
        for pairs in classes.pairs:
            weights = np.diff(pairs.first) * pair_weight(pairs)
            entries = entries + np.bincount(buckets, weights, minlength=_BUCKETS)
        self.runs.append(_Run(batch.schema, np.array(offsets), entries, plain))
        for of, is_plain in zip(self._values, plain, strict=True):
            if is_plain:
                of.keep(_CODED)

    def partitions(self, most: int) -> Iterator[CountedClasses]:
        """All classes, equal ones joined, some buckets at a time.

        These have together at most ``most`` entries in the runs, or are one bucket.
        """
        entries = np.sum([run.entries for run in self.runs], axis=0)
        first = 0
        while first < _BUCKETS:
            fitting = int(np.searchsorted(np.cumsum(entries[first:]), most, side="right"))
            stop = first + max(1, fitting)
            if entries[first:stop].any():
                yield self._joined([self._read(run, first, stop) for run in self.runs])
            first = stop

    def _written(self, classes: CountedClasses, plain: Sequence[bool]) -> list[pa.Array[Any]]:
        """The codes of each column, or their values where it is ``plain``."""
        codes = [*classes.codes, *(pairs.codes for pairs in classes.pairs)]
        return [
            _decoded(each, of) if is_plain else pa.array(each)
            for each, of, is_plain in zip(codes, self._values, plain, strict=True)
        ]

    def _read(self, run: _Run, first: int, stop: int) -> list[pa.Array[Any]]:
        """The columns of some buckets of a run."""
        start, end = int(run.offsets[first]), int(run.offsets[stop])
        self._file.seek(start)
        content = self._file.read(end - start)
        if len(content) < end - start:
            raise OSError("the file of spilled classes is shorter than what was written to it")
        reader, batches = pa.BufferReader(content), []
        while reader.tell() < len(content):
            batches.append(pa.ipc.read_record_batch(pa.ipc.read_message(reader), run.schema))
        table = pa.Table.from_batches(batches, run.schema)
        return [column.combine_chunks() for column in table.columns]

    def _joined(self, runs: Sequence[list[pa.Array[Any]]]) -> CountedClasses:
        """The classes of some buckets of all runs, equal ones joined."""
        radices: list[int] = []

        def codes_of(at: int, arrays: Sequence[pa.Array[Any]]) -> NDArray[Any]:
            codes, radix = self._codes(at, arrays)
            radices.append(radix)
            return codes

        whole = classes_in(runs, self._quasi, codes_of)
        return group_classes([whole], radices[: self._quasi], radices[self._quasi :])

    def _codes(self, at: int, runs: Sequence[pa.Array[Any]]) -> tuple[NDArray[Any], int]:
        """Codes of a column in all runs, equal for equal values, and how many there may be."""
        of, is_plain = self._values[at], [run.plain[at] for run in self.runs]
        if not any(is_plain):
            return np.concatenate([codes.to_numpy() for codes in runs]), of.size
        values = [
            array if plain else _decoded(array.to_numpy(), of)
            for array, plain in zip(runs, is_plain, strict=True)
        ]
        encoded = pa.concat_arrays(values).dictionary_encode()
        return places(encoded).view(np.uint32), len(encoded.dictionary) + 1


def batch_of(classes: CountedClasses, columns: Sequence[pa.Array[Any]]) -> pa.RecordBatch:
    """A row per class: size, first row, quasi-identifiers; then lists of values and counts.

    ``columns``: the codes of the quasi-identifiers, then those of the pairs, in any form.
    """
    quasi = len(classes.codes)
    written = [_least(classes.sizes), _least(classes.first_rows), *columns[:quasi]]
    for pairs, values in zip(classes.pairs, columns[quasi:], strict=True):
        offsets = pa.array(pairs.first.astype(np.int32))
        for column in (values, pa.array(pairs.counts)):
            written.append(pa.ListArray.from_arrays(offsets, column))
    return pa.record_batch(written, list(map(str, range(len(written)))))


def classes_in(
    batches: Sequence[Sequence[pa.Array[Any]]],
    quasi: int,
    codes_of: Callable[[int, Sequence[pa.Array[Any]]], NDArray[Any]],
) -> CountedClasses:
    """The classes of some batches that :func:`batch_of` made, one after another.

    ``codes_of`` gives the unsigned codes of a column, by its number, in all batches.
    """
    columns = list(zip(*batches, strict=True))
    sizes, rows = map(_numbers, columns[:2])
    codes, pairs = [codes_of(at, columns[2 + at]) for at in range(quasi)], []
    for at, lists in enumerate(columns[2 + quasi :: 2], quasi):
        lengths = [each.value_lengths().to_numpy() for each in lists]
        counts = [each.flatten().to_numpy() for each in columns[3 + 2 * at - quasi]]
        pairs.append(
            CountedPairs(
                np.cumsum(np.concatenate([[0], *lengths])),
                codes_of(at, [each.flatten() for each in lists]),
                np.concatenate(counts),
            )
        )
    return CountedClasses(codes, sizes, rows, pairs)


def hashes_of(classes: CountedClasses, values: Sequence[ColumnValues]) -> NDArray[np.uint64]:
    """(classes,) a hash of the quasi-identifiers, the same in every process."""
    mixed = np.zeros(len(classes.sizes), np.uint64)
    for of_class, of in zip(classes.codes, values, strict=False):
        mixed ^= _hashes(of.values)[of_class]
        mixed *= _ODD
        mixed ^= mixed >> np.uint64(32)
    return mixed


def _hashes(values: pa.Array[Any]) -> NDArray[np.uint64]:
    """(values + 1,) by code, a hash that is the same for equal values."""
    numbers = values.to_numpy(zero_copy_only=False)
    if numbers.dtype == object:
        # Python's own hash of a text differs from process to process.
        texts = (repr(value).encode() for value in numbers.tolist())
        numbers = np.fromiter(map(zlib.crc32, texts), np.int64, len(numbers))
    bits = numbers.view(np.int64) if numbers.itemsize == 8 else numbers.astype(np.int64)
    return np.concatenate([np.zeros(1, np.uint64), bits.view(np.uint64)])


def _decoded(codes: NDArray[Any], of: ColumnValues) -> pa.Array[Any]:
    """The values of some codes."""
    return of.values.take(pa.array(codes.astype(np.int64) - 1, mask=codes == 0))


def _numbers(arrays: Sequence[pa.Array[Any]]) -> Ints:
    return np.concatenate([array.to_numpy() for array in arrays]).astype(np.int64)


def _least(numbers: Ints) -> pa.Array[Any]:
    """Numbers from 0 in the smallest type that holds them all."""
    return pa.array(least_type(numbers))
