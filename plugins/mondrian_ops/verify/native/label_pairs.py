"""Which pairs of a label and a value occur in a part of a release; for its check."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.native.arrays import address, check_writable
from mondrian_ops.native.library import function

_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int64
_CODES = tuple(map(np.dtype, (np.uint8, np.uint16, np.int32)))

_mark_pairs = function(
    "mo_mark_pairs",
    *(_POINTER, _INTEGER, _POINTER, _INTEGER),
    *(_POINTER, _INTEGER, _INTEGER, _INTEGER, _POINTER),
)


def mark_pairs(
    labels: NDArray[np.int32],
    source: NDArray[np.int32],
    codes: NDArray[np.integer[Any]],
    marks: NDArray[np.bool_],
) -> None:
    """Mark ``marks[labels[i], codes[source[i]]]`` for each row i.

    ``labels`` and ``source`` (rows,) int32; ``codes`` (rows of the source,) uint8, uint16 or int32;
    ``marks`` (labels, values). Raises an error, and may have marked some pairs, where a number is
    outside of its table.
    """
    if codes.dtype not in _CODES:
        raise TypeError(f"codes: uint8, uint16 or int32 expected, got {codes.dtype}")
    check_writable(marks, "marks")
    label_count, value_count = marks.shape
    rows = len(labels)
    _mark_pairs(
        *(address(labels, np.int32, rows, what="labels"), label_count),
        *(address(source, np.int32, rows, what="source"), rows),
        *(address(codes, codes.dtype, len(codes), what="codes"), codes.itemsize),
        *(len(codes), value_count),
        address(marks, np.bool_, label_count, value_count, what="marks"),
    )
