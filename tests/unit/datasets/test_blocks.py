"""Rows made in blocks: the same for the same seed, and never many at once."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from mondrian_ops.datasets import blocks, people, poker
from mondrian_ops.datasets.people import block as people_block
from mondrian_ops.datasets.poker import block as poker_block
from mondrian_ops.errors import InputError
from tiers import one_in

Make = Callable[[int, int], pa.Table]


@pytest.mark.parametrize("make", [poker, people])
class TestTable:
    def test_fewer_rows_are_the_beginning(self, make: Make) -> None:
        assert make(10, 7) == make(140_000, 7).slice(0, 10)

    def test_seeds_and_blocks_differ(self, make: Make) -> None:
        assert make(100, 7) == make(100, 7)
        assert make(100, 7) != make(100, 8)
        two_blocks = make(2 * 131_072, 7)
        assert two_blocks.slice(0, 131_072) != two_blocks.slice(131_072)


@pytest.mark.parametrize(("arguments", "option"), [((0, 1), "rows"), ((1, -1), "seed")])
def test_impossible_sizes_are_refused_at_once(arguments: tuple[int, int], option: str) -> None:
    with pytest.raises(InputError, match=f"^{option}: must be at least"):
        blocks.batches(poker_block, *arguments)


@pytest.mark.parametrize("block", one_in(2, [poker_block, people_block]))
def test_memory_does_not_grow_with_the_rows(block: blocks.Block) -> None:
    before = pa.total_allocated_bytes()
    for batch in blocks.batches(block, 2_000_000, 0):
        assert batch.nbytes < 64 << 20
        assert pa.total_allocated_bytes() - before < 256 << 20
