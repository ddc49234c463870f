"""Import numpy and pyarrow without the parts that this package's own processes do not use.

For the command line and Airflow's tasks; not for programs that import this package, which may use
numpy in other ways.

numpy's OpenBLAS starts a thread for every core but one, and each spins until numpy is imported.
This package multiplies no large matrices.

pyarrow imports pandas when it converts its first value, to see whether that is one of pandas'.
The import takes a fifth of a second, and this package has no such value. pyarrow also has a thread
for each core of the host, even in a container that may use two, and keeps memory for each.

Both glibc and pyarrow keep what a thread has freed for that thread. One heap for all threads takes
a third less memory where two threads count a release, and no more time: large arrays are few.
glibc also gives the memory of an array back to the system as soon as the array is gone, and the
next array gets it page by page again: to keep some takes a tenth less time, and no more memory.

pyarrow also reads the documentation of the options of its computations, to write that of 300
functions, which no process reads: a twentieth of the start.

Python looks for garbage after each 700 new objects, imports make a hundred thousand, and none of
them is garbage.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from mondrian_ops.cores import available_cores

_THREADS = "OPENBLAS_NUM_THREADS"
_POOL = "ARROW_DEFAULT_MEMORY_POOL"
_PYARROW_THREADS = 2  # with each more it keeps more memory, and reads further ahead
_NEW_OBJECTS = 50_000  # between two looks for garbage
_HEAP = (  # options of glibc's malloc.h, and the settings that go before ours
    (-8, 1, "MALLOC_ARENA_MAX", "glibc.malloc.arena_max="),
    (-3, 32 << 20, "MALLOC_MMAP_THRESHOLD_", "glibc.malloc.mmap_threshold="),
    (-1, 128 << 20, "MALLOC_TRIM_THRESHOLD_", "glibc.malloc.trim_threshold="),
)


def import_lean() -> None:
    """Import numpy and pyarrow, unless they are imported already.

    OpenBLAS then has one thread, and all threads have one heap, which keeps some of the memory that
    is free, unless the environment says otherwise; pyarrow has a thread for each core that this
    process may use, but few. When a program imports pandas later, pyarrow looks for it again, and
    converts its values as usual. Garbage is looked for seldom from here on.
    """
    _collect_seldom()
    _set_heap()
    _import_with("numpy", _THREADS, "1")
    _import_with("pyarrow", _POOL, "system")
    limit_pyarrow()
    _import_undocumented()
    if "pandas" in sys.modules or any(isinstance(finder, _Later) for finder in sys.meta_path):
        return
    import pyarrow as pa

    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([])  # pyarrow looks for pandas once
    finally:
        sys.meta_path.remove(hidden)
    sys.meta_path.insert(0, _Later())


def _collect_seldom() -> None:
    new_objects, *others = gc.get_threshold()
    if 0 < new_objects < _NEW_OBJECTS:  # 0: never
        gc.set_threshold(_NEW_OBJECTS, *others)


def _set_heap() -> None:
    libc, tunables = ctypes.CDLL(None), os.environ.get("GLIBC_TUNABLES", "")
    if hasattr(libc, "mallopt"):
        for option, value, variable, tunable in _HEAP:
            if variable not in os.environ and tunable not in tunables:
                libc.mallopt(option, value)


def _import_with(module: str, name: str, value: str) -> None:
    """Import a module that looks once at a variable of the environment, if nobody has set it."""
    if module in sys.modules or name in os.environ:
        return
    os.environ[name] = value
    try:
        import_module(module)
    finally:
        del os.environ[name]  # child processes keep the default


def _import_undocumented() -> None:
    """Import pyarrow's computations, whose functions then do not tell about their options."""
    if "pyarrow.compute" in sys.modules:
        return
    try:
        from pyarrow.vendored import docscrape
    except ImportError:  # another version reads it elsewhere, or not at all
        return
    reader = docscrape.NumpyDocString
    docscrape.NumpyDocString = lambda _text: {"Parameters": ()}
    try:
        import_module("pyarrow.compute")
    finally:
        docscrape.NumpyDocString = reader


def limit_pyarrow() -> None:
    """Let pyarrow have no more threads than this process may use cores, and few."""
    import pyarrow as pa

    pa.set_cpu_count(min(pa.cpu_count(), available_cores(), _PYARROW_THREADS))


class _Hidden:
    """Hides pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out", name=fullname)


class _Later:
    """Makes pyarrow look for pandas again when a program imports it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == "pandas" else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            import pyarrow as pa

            execute(module)
            pa.nulls(0).to_pandas()  # needs pandas, so pyarrow looks for it

        setattr(spec.loader, "exec_module", exec_module)  # noqa: B010 - mypy refuses the assignment
        return spec
