"""A kernel that is stopped ends soon: counted in looks at the flag, not in time.

The kernels are compiled so that they count how often they look, and are stopped after so many
looks. A whole call looks at least once per node, class or block of rows; and once it is stopped,
only the loops that it is in look again, however much work is left.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from mondrian_ops.cut.native import class_criteria, mondrian, top_down
from mondrian_ops.data.native import counting
from mondrian_ops.native import build, library
from mondrian_ops.series.intersection.native import invariance
from native_probes import no_criteria

MODULES = (class_criteria, counting, invariance, mondrian, top_down)
ALL = 1 << 62
NESTED = 16
"""Loops within loops of a kernel, at most: each looks once on the way out."""

ROWS = 3000
RANDOM = np.random.default_rng(0)


class Looks(NamedTuple):
    """How often the kernels looked, and after how many looks they are stopped."""

    made: ctypes.c_int64
    left: ctypes.c_int64

    def of(self, call: Callable[[], object], left: int) -> int:
        """How often a call looks; what a kernel that is stopped returns is void."""
        self.made.value, self.left.value = 0, left
        with suppress(MemoryError):
            call()
        return self.made.value


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looks]:
    """Kernels that count, in the place of the others."""
    file = Path(tmp_path_factory.mktemp("kernels"), "counting.so")
    counted = ctypes.CDLL(str(build.build(file, more=["-O0", "-DCOUNT_LOOKS"])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "_library", lambda: counted)
        forget_loaded()
        yield Looks(*(ctypes.c_int64.in_dll(counted, f"mo_looks{part}") for part in ("", "_left")))
    forget_loaded()


def stoppable() -> dict[str, Any]:
    """The kernels that may take long, by their names."""
    found = {}
    for module in MODULES:
        for each in vars(module).values():
            if inspect.isfunction(each) and each.__qualname__ == "function.<locals>.call":
                of = inspect.getclosurevars(each).nonlocals
                if of["stoppable"]:
                    found[of["name"]] = of
    return found


def forget_loaded() -> None:
    library._watch.cache_clear()
    for each in stoppable().values():
        each["kernel"].cache_clear()


@cache
def rows() -> mondrian.Rows:
    sizes, values = [20] * 3, np.tile(np.linspace(0, 1, 20), 3)
    return mondrian.Rows(
        codes=RANDOM.integers(1, 20, (3, ROWS), np.uint16),
        sensitive=np.zeros((0, ROWS), np.int32),
        kind=np.full(3, mondrian.INTERVAL),
        first=np.cumsum([0, *sizes]),
        low=values,
        high=values,
        step=np.zeros(60),
        span=np.ones(3),
        most=np.ones(3),
        present=np.full(3, 19.0),
    )


def policy(**given: int) -> mondrian.KernelPolicy:
    settings = {"greedy": mondrian.GAIN, "candidates": 1, "rollout_rows": 0} | given
    return mondrian.KernelPolicy(**settings)


CUT, AHEAD = policy(), policy(candidates=4, rollout_rows=200)
GROUPED = policy(candidates=4, rollout_rows=200, group_rows=30, joined=3)


def cut(how: mondrian.KernelPolicy) -> tuple[Any, Any]:
    return mondrian.classes(rows(), no_criteria(5), how)


def measured() -> object:
    return mondrian.loss(rows(), no_criteria(5), CUT, np.arange(ROWS, dtype=np.int32), EACH)


def invariant() -> object:
    values = RANDOM.integers(0, 10, ROWS).astype(np.int32)
    return invariance.kept_classes(
        rows(),
        values,
        np.full((ROWS, 1), 1023, np.uint64),
        np.full(ROWS, -1, np.int32),
        np.arange(ROWS, dtype=np.int32)[np.newaxis],
        k=5,
        l=2,
        most=50,
        weight=0.0,
        price=None,
    )


EACH = np.arange(0, ROWS, 5)
MANY = 10 << 16
WORDS = np.arange(MANY, dtype=np.uint64)[np.newaxis]
KEYS = np.array([(1 << 40) - 1], np.uint64)


def grouped() -> object:
    return counting.group_by_bits(WORDS, KEYS)


def recoded() -> object:
    places, tables = np.array([[0, 0, 255]], np.uint64), np.arange(256, dtype=np.uint64)
    return counting.recode(WORDS, np.ones(MANY, np.int64), places, tables, np.zeros(1, np.int64))


def satisfied() -> object:
    sensitive, ones = np.zeros((0, ROWS), np.int32), np.ones(ROWS, np.int64)
    index = np.arange(ROWS, dtype=np.int32)
    return class_criteria.groups_satisfy(index, EACH, sensitive, ones, no_criteria(5))


def specialized() -> object:
    """One attribute, whose tree is binary: 1,024 codes below 1,023 nodes."""
    leaves = 1024
    nodes = 2 * leaves - 1
    inner = np.arange(nodes) < leaves - 1
    depth = np.log2(np.arange(nodes) + 1).astype(int)
    under = leaves >> depth
    member = (np.arange(nodes) + 1 - (1 << depth)) * under
    forest = top_down.Forest(
        first=np.array([0, leaves]),
        attribute=np.zeros(nodes, np.int32),
        child_first=np.concatenate([[0], np.where(inner, 2, 0).cumsum()]),
        children=np.arange(1, nodes, dtype=np.int32),
        member_first=member,
        member_stop=member + under,
        members=np.arange(leaves, dtype=np.int32),
        gain=np.where(inner, 1.0, 0.0),
    )
    combinations = top_down.PackedCombinations(
        words=np.arange(leaves, dtype=np.uint64)[np.newaxis].copy(),
        rows=np.full(leaves, 5, np.int64),
        word=np.zeros(1, np.int64),
        shift=np.zeros(1, np.uint64),
        mask=np.full(1, leaves - 1, np.uint64),
    )
    return top_down.specialize(combinations, forest, np.zeros(leaves, np.int32), no_criteria(5))


class Kernel(NamedTuple):
    """A call of a kernel, and how often it has to look at least: per node, class or block."""

    name: str
    call: Callable[[], object]
    least: int


KERNELS = [
    Kernel("mo_classes", lambda: cut(CUT), ROWS // 10),
    Kernel("mo_classes", lambda: cut(AHEAD), ROWS // 2),
    Kernel("mo_classes", lambda: cut(GROUPED), ROWS // 2),
    Kernel("mo_loss", measured, len(EACH)),
    Kernel(
        "mo_multiway_classes",
        lambda: mondrian.multiway_classes(rows(), no_criteria(5), mondrian.Multiway(4, 50)),
        ROWS // 50,
    ),
    Kernel("mo_invariant_classes", invariant, ROWS),
    Kernel("mo_groups_satisfy", satisfied, len(EACH)),
    Kernel("mo_recode", recoded, MANY >> 16),
    Kernel("mo_group_by_bits", grouped, MANY >> 16),
    Kernel("mo_specialize", specialized, 1023),
]


def test_every_kernel_that_may_take_long_is_here() -> None:
    assert stoppable().keys() == {kernel.name for kernel in KERNELS}


@pytest.mark.servers  # which it needs not, but a compilation
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_kernel_looks_at_every_node_and_ends_at_the_first_look(
    looks: Looks, kernel: Kernel
) -> None:
    whole = looks.of(kernel.call, ALL)
    assert whole >= kernel.least
    for left in {0, 1, 5, whole // 2, whole - NESTED}:
        if 0 <= left < whole:
            assert looks.of(kernel.call, left) <= left + NESTED, left
