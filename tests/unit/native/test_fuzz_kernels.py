"""The fuzzer of the kernels calls them as they are meant, apart from what it changes."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import fuzz_kernels


class Unchanged(fuzz_kernels.Bytes):
    """Numbers from bytes, of which no argument is made hostile."""

    def hostile(self, given):
        return given


@pytest.mark.parametrize("call", fuzz_kernels._CALLS)
def test_arguments_that_are_not_changed_are_of_the_right_types(call):
    """A ValueError may be right: drawn numbers need not fit together."""
    finished = 0
    for seed in range(20):
        with contextlib.suppress(ValueError):
            call(Unchanged(np.random.default_rng(seed).bytes(900)))
            finished += 1
    assert finished
