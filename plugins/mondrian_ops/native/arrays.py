"""The arrays that kernels take: their types, and the checks that C does not make."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Words: TypeAlias = NDArray[np.uint64]
"""Packed combinations of codes."""


def check_below(array: NDArray[np.integer[Any]], limit: int, what: str) -> None:
    """Raises ValueError unless all entries are from 0 to ``limit`` less one."""
    if array.size and not (array.min() >= 0 and array.max() < limit):
        raise ValueError(f"{what}: all must be from 0 to less than {limit}")


def check_starts(starts: NDArray[np.integer[Any]], stop: int, what: str, *, least: int = 0) -> None:
    """Raises ValueError unless ``starts`` ascend, with runs of ``least`` entries or more.

    The last run ends at ``stop``.
    """
    check_below(starts, stop - least + 1, what)
    if (starts[1:] - starts[:-1] < least).any():
        raise ValueError(f"{what}: must ascend, by {least} at least")


def check_count(count: int, what: str) -> None:
    """Raises ValueError where ``count`` exceeds 32 bits."""
    if count > np.iinfo(np.int32).max:
        raise ValueError(f"{what}: at most {np.iinfo(np.int32).max} are supported, got {count}")


def check_rows(rows: NDArray[np.int64], least: int = 0) -> None:
    """Raises ValueError where a combination has too few rows, or their sum may overflow."""
    if rows.min(initial=least) < least or rows.sum(dtype=np.float64) >= 1 << 62:
        raise ValueError(f"rows: each combination must have {least} at least, all less than 2^62")


def check_writable(array: NDArray[Any], what: str) -> None:
    """Raises ValueError where an array that a kernel changes is read-only."""
    if not array.flags.writeable:
        raise ValueError(f"{what}: must be writable")


def address(array: NDArray[Any], dtype: Any, *shape: int | None, what: str = "array") -> int:
    """The address of a C-contiguous array for C.

    ``shape``: the required lengths; None allows any. The caller must keep the array while C uses
    it. Raises TypeError on another dtype, ValueError on another shape or memory layout.
    """
    if array.dtype != dtype:
        raise TypeError(f"{what}: {np.dtype(dtype)} expected, got {array.dtype}")
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned):
        raise ValueError(f"{what}: must be C-contiguous, and aligned")
    if array.shape != shape and not _fits(array.shape, shape):
        raise ValueError(f"{what}: shape {shape} expected, got {array.shape}")
    return array.ctypes.data


def _fits(lengths: tuple[int, ...], shape: tuple[int | None, ...]) -> bool:
    return len(lengths) == len(shape) and all(
        expected is None or expected == length
        for expected, length in zip(shape, lengths, strict=True)
    )
