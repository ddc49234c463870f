"""Streaming a generated data set: blocks of a fixed size, cut into batches of any."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from mondrian_ops.core.errors import InputError

__all__ = ["BATCH_ROWS", "Block", "batches", "table"]

Block = Callable[[np.random.Generator, int], pa.RecordBatch]
"""Draws the rows of one block: (generator, rows) -> batch."""

BATCH_ROWS = 1 << 18

# Part of what defines the data: another size gives other rows for the same seed.
_BLOCK_ROWS = 1 << 17


def batches(block: Block, rows: int, seed: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """``rows`` rows in batches of ``batch_rows``, the last one perhaps smaller.

    Memory is that of one batch and one block. Raises InputError on a size below 1 or a negative
    seed, at once and not when the first batch is taken.
    """
    for option, value, least in (
        ("rows", rows, 1),
        ("seed", seed, 0),
        ("batch_rows", batch_rows, 1),
    ):
        if value < least:
            raise InputError(f"{option}: must be at least {least}, not {value}")
    return _rebatched(_blocks(block, rows, seed), batch_rows)


def table(block: Block, rows: int, seed: int) -> pa.Table:
    """``rows`` rows in memory, each column in one piece."""
    return pa.Table.from_batches(list(batches(block, rows, seed, rows)))


def _blocks(block: Block, rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    for number, start in enumerate(range(0, rows, _BLOCK_ROWS)):
        # A whole block is drawn even for its first few rows, so that fewer rows are a beginning.
        whole = block(np.random.default_rng([seed, number]), _BLOCK_ROWS)
        yield whole.slice(0, min(_BLOCK_ROWS, rows - start))


def _rebatched(blocks: Iterator[pa.RecordBatch], batch_rows: int) -> Iterator[pa.RecordBatch]:
    pending: list[pa.RecordBatch] = []
    wanted = batch_rows
    for block in blocks:
        start = 0
        while start < block.num_rows:
            piece = block.slice(start, wanted)
            pending.append(piece)
            start += piece.num_rows
            wanted -= piece.num_rows
            if not wanted:
                yield _joined(pending)
                pending, wanted = [], batch_rows
    if pending:
        yield _joined(pending)


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(pieces) == 1:
        return pieces[0]
    return pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]
