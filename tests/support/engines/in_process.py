"""The Spark engine with this process in Spark's place, for what random examples show."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from unittest import mock

import pyarrow as pa

from mondrian_ops.engines import executor
from mondrian_ops.engines.executor import Step, Work
from mondrian_ops.engines.run import Run
from mondrian_ops.engines.spark import SparkEngine


class InProcessEngine(SparkEngine):
    """``lose``: which of the messages between two steps are lost; ``double``: which come twice."""

    def __init__(
        self,
        lose: Callable[[executor.Message], bool] = lambda _: False,
        double: Callable[[executor.Message], bool] = lambda _: False,
    ) -> None:
        self._disturbed = lose, double
        self._session = _Session()  # type: ignore[assignment]

    def _step(self, run: Run, work: Work, messages: Any) -> Any:
        step = Step(work, "")

        def done(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
            with (
                mock.patch.object(executor, "_run", lambda _: run),
                mock.patch.object(executor, "limit_pyarrow"),
            ):
                return list(step(batches))

        return messages.mapped(done, *self._disturbed)


class _Session:
    def createDataFrame(self, table: pa.Table, _: str) -> _Frame:  # noqa: N802 - Spark's name
        return _Frame([_rows(table)])


class _Frame:
    """Rows in Spark partitions, each a batch; their order within one means nothing."""

    def __init__(self, partitions: Sequence[Sequence[pa.RecordBatch]]) -> None:
        self._partitions = partitions

    def mapped(self, step: Any, lose: Any, double: Any) -> _Frame:
        partitions = []
        for partition in self._partitions:
            messages = list(executor.messages_of(step(partition)))
            kept = [each for each in messages if not lose(each)]
            kept += [each for each in messages if double(each)]
            partitions.append([piece for each in kept for piece in executor.pieces_of(each)])
        return _Frame(partitions)

    def repartition(self, number: int) -> _Frame:
        return self._divided(number, lambda _: 0)

    def repartitionById(self, number: int, column: str) -> _Frame:  # noqa: N802 - Spark's name
        return self._divided(number, lambda row: row.column(column)[0].as_py() % number)

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        rows = [row for partition in self._partitions for row in partition]
        schema = rows[0].schema if rows else pa.schema([])
        return pa.Table.from_batches(rows, schema)

    def _divided(self, number: int, place: Callable[[pa.RecordBatch], int]) -> _Frame:
        partitions = defaultdict[int, list[pa.RecordBatch]](list)
        for partition in self._partitions:
            for row in partition:
                partitions[place(row)].append(row)
        shuffled = random.Random(len(partitions))
        for rows in partitions.values():
            shuffled.shuffle(rows)
        return _Frame([partitions[at] for at in range(number)])


def _rows(table: pa.Table) -> list[pa.RecordBatch]:
    return [batch.slice(at, 1) for batch in table.to_batches() for at in range(batch.num_rows)]
