"""A data set as a stream of blocks, each generated on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from mondrian_ops.errors import InputError

Block = Callable[[np.random.Generator, int], pa.RecordBatch]
"""Generates the rows of one block: (generator, rows) -> batch."""

# Part of what defines the data: another size gives other rows for the same seed.
_BLOCK_ROWS = 1 << 17


def batches(block: Block, rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    """``rows`` rows, one block at a time.

    Raises InputError for a number of rows below 1 or a negative seed, at once and not with the
    first batch.
    """
    for option, value, least in (("rows", rows, 1), ("seed", seed, 0)):
        if value < least:
            raise InputError(f"{option}: must be at least {least}, not {value}")
    return _blocks(block, rows, seed)


def table(block: Block, rows: int, seed: int) -> pa.Table:
    """``rows`` rows in memory, each column in one piece."""
    return pa.Table.from_batches(list(batches(block, rows, seed))).combine_chunks()


def _blocks(block: Block, rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    for number, start in enumerate(range(0, rows, _BLOCK_ROWS)):
        # Generate a whole block even for a few rows, so that fewer rows are the beginning of more.
        yield _whole(block, seed, number).slice(0, min(_BLOCK_ROWS, rows - start))


def _whole(block: Block, seed: int, number: int) -> pa.RecordBatch:
    return block(np.random.default_rng([seed, number]), _BLOCK_ROWS)
