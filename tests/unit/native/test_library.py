"""How the library is found, and how failures of C are raised."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from mondrian_ops.native import library


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
