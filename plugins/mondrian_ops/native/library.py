"""Loads the compiled kernels."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache, partial
from typing import Any

from mondrian_ops.errors import KernelsError
from mondrian_ops.native.build import digest, path

_NO_MEMORY, _OUT_OF_BOUNDS = -1, -2


class Stopped(BaseException):
    """A kernel ended before its result was there, because somebody stopped it."""


class Asking(ctypes.Structure):
    """A parameter with functions of Python that kernels call.

    An error of such a function cannot pass through C. So it is kept in ``failures``, and the first
    one is raised when the kernel has returned.
    """

    failures: list[BaseException]

    def __init__(self, *fields: Any) -> None:
        super().__init__(*fields)
        self.failures = []


_own = threading.local()


def stop_flag() -> ctypes.c_int:
    """A flag that stops kernels once it is not 0: the one this thread has adopted, or a new one."""
    adopted = getattr(_own, "flag", None)
    return ctypes.c_int() if adopted is None else adopted


def adopt(flag: ctypes.c_int | None) -> None:
    """Have a flag stop the kernels that this thread calls from here on, also those to come."""
    _own.flag = flag


_loading = threading.Lock()  # a cache alone lets threads that come at the same time load twice


def _library() -> ctypes.CDLL:
    """The kernels. Raises KernelsError where they are missing, or of another machine or source."""
    with _loading:
        return _loaded()


@cache
def _loaded() -> ctypes.CDLL:
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


def function(
    name: str, *parameters: Any, result: Any = ctypes.c_int, stoppable: bool = False
) -> Callable[..., Any]:
    """A kernel by its name in C, loaded at its first call; it runs without the interpreter's lock.

    ``parameters`` and ``result`` are ctypes types. If the result is a status (c_int), a call raises
    MemoryError, and ValueError where a code or a node is outside of its table.

    ``stoppable``: it may take long. A signal whose handler raises an exception ends it within 0.2
    s, and so does a flag that the thread has adopted: then the call raises Stopped.
    """

    @cache
    def kernel() -> Any:
        loaded = getattr(_library(), name)
        loaded.argtypes, loaded.restype = parameters, result
        return loaded

    def call(*arguments: Any) -> Any:
        outcome = _stoppably(kernel(), arguments) if stoppable else kernel()(*arguments)
        for argument in arguments:
            if isinstance(argument, Asking) and argument.failures:
                raise argument.failures[0]
        if result is ctypes.c_int and outcome == _NO_MEMORY:
            raise MemoryError("not enough memory for the kernels")
        if result is ctypes.c_int and outcome == _OUT_OF_BOUNDS:
            raise ValueError(f"{name}: a code or a node is outside of its table")
        return outcome

    return call


def _stoppably(kernel: Any, arguments: tuple[Any, ...]) -> Any:
    """Call a kernel that looks at a flag. Raises Stopped where it was set meanwhile."""
    flag = stop_flag()
    call = partial(_watching, kernel, arguments, flag)
    # Signals are handled by the main thread, which must not be inside of C for long.
    is_main = threading.current_thread() is threading.main_thread()
    outcome = _waited_for(call, flag) if is_main else call()
    if flag.value:
        raise Stopped
    return outcome


def _watching(kernel: Any, arguments: tuple[Any, ...], flag: ctypes.c_int) -> Any:
    watch = _watch()
    watch(ctypes.byref(flag))
    try:
        return kernel(*arguments)
    finally:
        watch(None)


@cache
def _watch() -> Any:
    loaded = _library().mo_watch
    loaded.argtypes, loaded.restype = (ctypes.POINTER(ctypes.c_int),), None
    return loaded


def _waited_for(call: Callable[[], Any], flag: ctypes.c_int) -> Any:
    """What a call returns that another thread makes; an exception that comes here stops it first.

    The kernel works on arrays of the caller's, so it has to end before they are gone.
    """
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(call)
        try:
            return running.result()
        except BaseException:
            flag.value = 1
            while not running.done():
                with suppress(BaseException):  # a second signal
                    wait([running])
            raise
