"""Adult enlarged as for the source's experiments: variations of every record, streamed to Parquet.

After the records themselves come variations of each in turn. In a variation any attribute, with an
even chance, takes a random value of its domain; other columns are the record's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BLOCK_ROWS = 1 << 18


def write(table: pa.Table, attributes: Sequence[str], rows: int, seed: int, path: Path) -> None:
    """``rows`` rows made of those of ``table``; memory is that of one block."""
    blocks = enlarged(table, attributes, rows, seed)
    first = next(blocks)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        writer.write_batch(first)
        for block in blocks:
            writer.write_batch(block)


def enlarged(
    table: pa.Table, attributes: Sequence[str], rows: int, seed: int
) -> Iterator[pa.RecordBatch]:
    """The rows in blocks, text as dictionaries; fewer rows are the beginning of more."""
    columns = {
        name: table[name].combine_chunks().dictionary_encode() for name in table.schema.names
    }
    for number, start in enumerate(range(0, rows, BLOCK_ROWS)):
        generator = np.random.default_rng([seed, number])
        place = np.arange(start, start + BLOCK_ROWS)
        varied = {
            name: _varied(column, place, generator if name in attributes else None)
            for name, column in columns.items()
        }
        yield pa.RecordBatch.from_pydict(varied).slice(0, min(BLOCK_ROWS, rows - start))


def _varied(
    column: pa.DictionaryArray, place: np.ndarray, generator: np.random.Generator | None
) -> pa.Array:
    """The values of the records at ``place`` (mod their number), varied where there are several."""
    codes = column.indices.to_numpy()[place % len(column)]
    if generator is not None:
        replaced = generator.random(len(place)) < 0.5
        replaced &= place >= len(column)
        values = generator.integers(0, len(column.dictionary), len(place), codes.dtype)
        codes = np.where(replaced, values, codes)
    varied = pa.DictionaryArray.from_arrays(pa.array(codes), column.dictionary)
    return varied if pa.types.is_string(column.type.value_type) else varied.dictionary_decode()
