"""The rows of one pass over a source, kept for the next one."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa

from mondrian_ops.tables.parquet_files import conform

MOST_BYTES = 192 << 20
"""In memory: about ten million rows of twenty narrow columns."""


class KeptRows:
    """The batches of a pass, if all of them together are small.

    To decode the rows of a file again takes as long as everything else that the second pass does.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._left = most_bytes
        self._batches: deque[pa.RecordBatch] = deque()
        self._is_whole = False

    def passing(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches, which are kept as they pass."""
        for batch in batches:
            if self._left >= 0:
                self._left -= batch.nbytes
                self._batches.append(batch)
            if self._left < 0:
                self._batches.clear()
            yield batch
        self._is_whole = self._left >= 0

    def has(self, columns: Collection[str]) -> bool:
        """Whether all rows are here, with these columns."""
        return self._is_whole and all(
            {*columns} <= {*batch.schema.names} for batch in list(self._batches)[:1]
        )

    def batches(self, schema: pa.Schema, dictionaries: bool) -> Iterator[pa.RecordBatch]:
        """The batches with the columns of a schema, once: each is forgotten when it is given.

        Columns are in the types of the schema; with ``dictionaries`` as they came.
        """
        self._is_whole = False
        while self._batches:
            batch = self._batches.popleft().select(schema.names)
            yield batch if dictionaries else conform(batch, schema)
