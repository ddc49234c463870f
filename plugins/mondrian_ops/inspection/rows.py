"""The rows that are inspected: all of a small table, else random ones of random splits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from mondrian_ops.tables.table import Split, Table

SPLIT_ROWS = 20_000
MOST_ROWS, MOST_VALUES = 1_000_000, 20_000_000


def drawn(table: Table, rows: int = MOST_ROWS) -> pa.Table:
    """About ``rows`` rows of a table in its order; fewer if it has many columns."""
    rows = max(1, min(rows, MOST_VALUES // len(table.schema)))
    random = np.random.default_rng(0)
    splits = table.splits(min(SPLIT_ROWS, rows))
    if table.rows > rows:
        splits = _chosen(splits, rows, random)
    rate = rows / sum(split.rows for split in splits)
    batches = [
        batch if rate >= 1 else _thinned(batch, rate, random)
        for split in splits
        for batch in table.batches(split=split, dictionaries=True)
    ]
    return _joined(batches, table.schema)


def _chosen(splits: Sequence[Split], rows: int, random: np.random.Generator) -> list[Split]:
    """Random splits of so many rows, and of less than another split more, in their order."""
    order = random.permutation(len(splits))
    before = np.cumsum([0, *(splits[place].rows for place in order[:-1])])
    return [splits[place] for place in sorted(order[before < rows])]


def _thinned(batch: pa.RecordBatch, rate: float, random: np.random.Generator) -> pa.RecordBatch:
    return batch.filter(pa.array(random.random(batch.num_rows) < rate))


def _joined(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Batches as one table; a text may be a dictionary in some of them only."""
    columns = [_column([batch.column(each.name) for batch in batches], each) for each in schema]
    return pa.Table.from_arrays(columns, names=schema.names)


def _column(chunks: Sequence[pa.Array], field: pa.Field) -> pa.ChunkedArray:
    if len({chunk.type for chunk in chunks}) > 1:
        chunks = [chunk.cast(field.type) for chunk in chunks]
    return pa.chunked_array(chunks, chunks[0].type)
