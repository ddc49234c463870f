"""Rows made in blocks: in any batches the same, and never many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from mondrian_ops.core.errors import InputError
from mondrian_ops.datasets import people, people_batches, poker, poker_batches

Make = Callable[[int, int], pa.Table]
Batches = Callable[..., Iterator[pa.RecordBatch]]


@pytest.mark.parametrize(("make", "batches"), [(poker, poker_batches), (people, people_batches)])
class TestStreaming:
    def test_any_batches_are_the_same_rows(self, make: Make, batches: Batches) -> None:
        rows = 150_000
        whole = make(rows, 7)
        assert whole.num_rows == rows
        for size in (20_011, 131_072, 140_000, 10**6):
            parts = list(batches(rows, 7, size))
            assert all(part.num_rows == size for part in parts[:-1])
            assert 0 < parts[-1].num_rows <= size
            assert pa.Table.from_batches(parts).combine_chunks() == whole.combine_chunks()

    def test_fewer_rows_are_the_beginning(self, make: Make, batches: Batches) -> None:
        assert make(10, 7) == make(140_000, 7).slice(0, 10)

    def test_seeds_and_blocks_differ(self, make: Make, batches: Batches) -> None:
        assert make(100, 7) == make(100, 7)
        assert make(100, 7) != make(100, 8)
        two_blocks = make(2 * 131_072, 7)
        assert two_blocks.slice(0, 131_072) != two_blocks.slice(131_072)

    @pytest.mark.parametrize(
        ("arguments", "option"),
        [((0, 1, 10), "rows"), ((1, -1, 10), "seed"), ((1, 1, 0), "batch_rows")],
    )
    def test_impossible_sizes_are_refused_at_once(
        self, make: Make, batches: Batches, arguments: tuple[int, int, int], option: str
    ) -> None:
        with pytest.raises(InputError, match=f"^{option}: must be at least"):
            batches(*arguments)


@pytest.mark.parametrize("batches", [poker_batches, people_batches])
def test_memory_does_not_grow_with_the_rows(batches: Batches) -> None:
    before = pa.total_allocated_bytes()
    for batch in batches(2_000_000, 0):
        assert batch.nbytes < 64 << 20
        assert pa.total_allocated_bytes() - before < 256 << 20
