"""Writing a synthetic data set to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from mondrian_ops.datasets import blocks
from mondrian_ops.datasets.people import block as people_block
from mondrian_ops.datasets.poker import block as poker_block
from mondrian_ops.errors import InputError, StorageError, did_you_mean

_WRITERS: dict[str, Callable[[Path, pa.Schema], pq.ParquetWriter | csv.CSVWriter]] = {
    ".parquet": partial(pq.ParquetWriter, compression="zstd"),
    ".csv": csv.CSVWriter,
}
_KINDS: dict[str, blocks.Block] = {"people": people_block, "poker": poker_block}


def generate(kind: str, *, rows: int, seed: int, output: str) -> None:
    """Write ``rows`` rows of the data set ``kind`` to ``output``, a ``.parquet`` or ``.csv`` file.

    The file appears whole or not at all and replaces an earlier one. Memory does not grow with
    the rows. Raises InputError for an unknown kind or no rows, StorageError for an output that
    cannot be written.
    """
    if kind not in _KINDS:
        hint = did_you_mean(kind, _KINDS)
        raise InputError(f"kind: {kind!r} is not one of {', '.join(_KINDS)}{hint}")
    path = Path(output)
    if path.suffix not in _WRITERS:
        raise StorageError(f"output: {output!r} must end in {' or '.join(_WRITERS)}")
    if path.is_dir():
        raise StorageError(f"output: {output!r} is a directory; name a file")
    batches = blocks.batches(_KINDS[kind], rows, seed)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(path, batches)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(f"output: {str(path)!r} cannot be written: {reason}") from error


def _write_whole(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    partial = path.with_name(f".{path.name}.partial")
    first = next(batches)
    try:
        with _WRITERS[path.suffix](partial, first.schema) as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
