"""The sizes of batches: small ones are joined, and what their values take is counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from mondrian_ops.errors import InputError
from mondrian_ops.job import limits
from mondrian_ops.stores.locations import shown
from mondrian_ops.tables import parquet_pages

BATCH_ROWS = 131_072
_SMALL_BATCH_BYTES = 1 << 16  # so little that nobody minds its exact size
_SHORT_BYTES = 64  # a value this short may be repeated without being counted
_TEXTS = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def joined(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches of up to ``most``: small batches, as of small files, are joined."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        is_large = 2 * batch.num_rows > most or not batch.num_columns
        held = 0 if is_large else batch.get_total_buffer_size()
        if waiting and (
            is_large
            or rows + batch.num_rows > most
            or size + held > parquet_pages.BATCH_BYTES
            or not batch.schema.equals(waiting[0].schema)
        ):
            yield _one_of(waiting)
            waiting, rows, size = [], 0, 0
        if is_large:
            yield batch
            continue
        waiting.append(batch)
        rows += batch.num_rows
        size += held
    if waiting:
        yield _one_of(waiting)


def _one_of(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _checked_bytes(path: str, batch: pa.RecordBatch, most: int, may_be_encoded: bool) -> int:
    """The bytes of a batch with its dictionaries unpacked, if it has any.

    Raises InputError for a value of more than ``most`` bytes.
    """
    taken: int = batch.get_total_buffer_size()  # where it shares buffers with others, too much
    if taken <= min(most, _SMALL_BATCH_BYTES) and not (
        may_be_encoded and any(isinstance(kind, pa.DictionaryType) for kind in batch.schema.types)
    ):
        return taken
    import pyarrow.compute as pc

    taken = 0
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        taken += column.nbytes
        is_encoded = isinstance(column, pa.DictionaryArray)
        values = column.dictionary if is_encoded else column
        if values.type not in _TEXTS or (values.nbytes <= most and not is_encoded):
            continue
        lengths = pc.binary_length(values)
        longest = pc.max(lengths).as_py() or 0
        limits.check_text(f"{shown(path)}: column {name!r}", longest)
        if is_encoded and longest > _SHORT_BYTES:
            taken += pc.sum(lengths.take(column.indices)).as_py() or 0
    return taken


class Unpacked:
    """The bytes that a source's rows take, with dictionaries unpacked, as they are read."""

    def __init__(self, url: str, packed: int, may_be_encoded: bool = True) -> None:
        """``packed``: the bytes of the source's files; whether rows may come as dictionaries."""
        self._url = url
        self._packed = packed
        self._may_be_encoded = may_be_encoded
        self._longest = limits.limit("text")
        self._most = limits.most_unpacked(packed)
        self._bytes = 0

    def add(self, path: str, batch: pa.RecordBatch) -> int:
        """Count a batch of the file ``path``; returns its bytes.

        Raises InputError where a value, or the whole source, is beyond its limit.
        """
        taken = _checked_bytes(path, batch, self._longest, self._may_be_encoded)
        self._bytes += taken
        if self._bytes > self._most:
            packed, most = map(limits.size_text, (self._packed, self._most))
            raise InputError(
                limits.exceeded(
                    "inflation",
                    f"{shown(self._url)}: its {packed} unpack to more than {most}",
                    "check the file for endlessly repeated values",
                )
            )
        return taken
