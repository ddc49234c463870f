"""The border between Python and C: what is refused there, and how failures of C are raised."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from mondrian_ops.native import library


def test_address_of_an_array():
    array = np.zeros((2, 3), np.int32)
    assert library.address(array, np.int32, 2, None) == array.ctypes.data
    assert library.address(array[1], np.int32, 3) == array.ctypes.data + 12


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        (np.zeros((2, 3)), TypeError, "codes: int32 expected, got float64"),
        (np.zeros((2, 3), np.int64), TypeError, "codes: int32 expected, got int64"),
        (np.zeros((2, 3), ">i4"), TypeError, "codes: int32 expected, got >i4"),
        (np.zeros((3, 2), np.int32).T, ValueError, "codes: must be C-contiguous"),
        (np.zeros((2, 6), np.int32)[:, ::2], ValueError, "codes: must be C-contiguous"),
        (np.zeros(25, np.uint8)[1:].view(np.int32).reshape(2, 3), ValueError, "aligned"),
        (
            np.zeros((2, 4), np.int32),
            ValueError,
            r"codes: shape \(None, 3\) expected, got \(2, 4\)",
        ),
        (np.zeros(3, np.int32), ValueError, "codes: shape"),
        (np.zeros((2, 3, 1), np.int32), ValueError, "codes: shape"),
    ],
)
def test_other_arrays_are_refused(array, error, text):
    with pytest.raises(error, match=text):
        library.address(array, np.int32, None, 3, what="codes")


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (-1, MemoryError, "not enough memory"),
        (-2, ValueError, "kernel: a code or a node is outside of its table"),
    ],
)
def test_a_status_becomes_an_error(monkeypatch, status, error, text):
    monkeypatch.setattr(library, "_library", lambda: SimpleNamespace(kernel=lambda: status))
    with pytest.raises(error, match=text):
        library.function("kernel")()
    assert library.function("kernel", result=ctypes.c_int64)() == status  # not one of its kind


@pytest.mark.parametrize("content", [None, b"no library"])
def test_missing_kernels_are_an_import_error_with_the_remedy(monkeypatch, tmp_path, content):
    path = tmp_path / "kernels.so"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(library, "path", lambda: path)
    with pytest.raises(ImportError, match=r"kernels\.so.*make install"):
        library._library.__wrapped__()
