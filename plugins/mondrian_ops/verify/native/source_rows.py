"""Which rows of the source a part of a release has, and whether it has their values."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.native.arrays import address
from mondrian_ops.native.library import function

Source = NDArray[np.int32]

_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int64

_mark_rows = function("mo_mark_rows", _POINTER, _INTEGER, _INTEGER, _POINTER, result=_INTEGER)
_rows_differ = function(
    "mo_rows_differ", _POINTER, _POINTER, _INTEGER, _POINTER, _INTEGER, _INTEGER
)


def distinct_rows(source: Source, source_rows: int) -> int:
    """How many different rows of the source there are among ``source`` (rows,) int32.

    Raises ValueError where one is none of the ``source_rows``.
    """
    rows, met = len(source), np.zeros(source_rows, np.uint8)
    distinct: int = _mark_rows(
        address(source, np.int32, rows, what="source"), rows, source_rows, met.ctypes.data
    )
    if distinct < 0:
        raise ValueError(f"source: has a row that is none of {source_rows}")
    return distinct


def rows_differ(published: NDArray[Any], values: NDArray[Any], source: Source) -> bool:
    """Whether ``published[i]`` is another value than ``values[source[i]]`` for any row i.

    ``published`` (rows,) and ``values`` (rows of the source,) unsigned numbers of one type;
    ``source`` (rows,) int32. Raises ValueError where that is none of the source's rows.
    """
    if published.dtype.kind != "u":
        raise TypeError(f"published: unsigned numbers expected, got {published.dtype}")
    rows, kind = len(published), published.dtype
    return bool(
        _rows_differ(
            address(published, kind, rows, what="published"),
            *(address(values, kind, len(values), what="values"), kind.itemsize),
            *(address(source, np.int32, rows, what="source"), rows, len(values)),
        )
    )
