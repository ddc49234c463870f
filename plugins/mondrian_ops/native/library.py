"""Loads the compiled kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from mondrian_ops.core.errors import KernelsError
from mondrian_ops.native.build import digest, path

__all__ = ["function"]

_NO_MEMORY, _OUT_OF_BOUNDS = -1, -2


@cache
def _library() -> ctypes.CDLL:
    """The kernels. Raises KernelsError where they are missing, or of another machine or source."""
    file = path()
    if not file.exists():
        others = ", ".join(sorted(other.name for other in file.parent.glob("kernels-*.so")))
        raise _unusable(f"missing; its folder has {others or 'none'}")
    try:
        library = ctypes.CDLL(str(file))
    except OSError as error:
        raise _unusable(f"cannot be loaded ({error})") from None
    expected = digest()
    if expected and _text(library, "mo_sources") != expected:
        raise _unusable("compiled from sources other than those beside them")
    return library


def _unusable(reason: str) -> KernelsError:
    return KernelsError(
        f"compiled kernels {path()}: {reason}; `make install` compiles them in a checkout, `python "
        "-m mondrian_ops.native.build` anywhere else; for Spark executors on another kind of "
        "machine run `python -m mondrian_ops.native.build --target aarch64-linux-gnu.2.17` (or "
        "x86_64-linux-gnu.2.17) where the job starts"
    )


def _text(library: ctypes.CDLL, name: str) -> str | None:
    """A string constant of the library; None where it has none of this name."""
    try:
        place = ctypes.c_char.in_dll(library, name)
    except ValueError:
        return None
    return ctypes.string_at(ctypes.addressof(place)).decode()


def function(name: str, *parameters: Any, result: Any = ctypes.c_int) -> Callable[..., Any]:
    """A kernel by its name in C, loaded at its first call; it runs without the interpreter's lock.

    ``parameters`` and ``result`` are ctypes types. If the result is a status (c_int), a call raises
    MemoryError, and ValueError where a code or a node is outside of its table.
    """

    @cache
    def kernel() -> Any:
        loaded = getattr(_library(), name)
        loaded.argtypes, loaded.restype = parameters, result
        return loaded

    def call(*arguments: Any) -> Any:
        outcome = kernel()(*arguments)
        if result is ctypes.c_int and outcome == _NO_MEMORY:
            raise MemoryError("not enough memory for the kernels")
        if result is ctypes.c_int and outcome == _OUT_OF_BOUNDS:
            raise ValueError(f"{name}: a code or a node is outside of its table")
        return outcome

    return call
