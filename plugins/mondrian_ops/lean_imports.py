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

pyarrow also writes 300 functions for its computations, with documentation that no process reads: a
twentieth of the start. A run calls thirty of them, each of which is written when it is asked for.

Python looks for garbage after each 700 new objects, imports make a hundred thousand, and none of
them is garbage.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import FunctionType, ModuleType
from typing import Any

from mondrian_ops.cores import available_cores

_THREADS = "OPENBLAS_NUM_THREADS"
_POOL = "ARROW_DEFAULT_MEMORY_POOL"
_PYARROW_THREADS = 2  # with each more it keeps more memory, and reads further ahead
_COMPUTE = "pyarrow.compute"
_DOCUMENTATION = "pyarrow.vendored.docscrape"
_KEYWORDS = {"and_": "and", "or_": "or"}  # names of functions in Python, and their own
_COUNT_ALL = ("scalar_aggregate", 0)  # counts rows, of no column
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
    collected_often = _collect_seldom()
    _set_heap()
    _import_with("numpy", _THREADS, "1")
    _import_with("pyarrow", _POOL, "system")
    limit_pyarrow()
    _import_compute()
    _leave_out_pandas()
    if collected_often:
        gc.freeze()  # never look at what was imported


def _leave_out_pandas() -> None:
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


def _collect_seldom() -> bool:
    """Whether garbage was looked for often until now."""
    new_objects, *others = gc.get_threshold()
    often = 0 < new_objects < _NEW_OBJECTS  # 0: never
    if often:
        gc.set_threshold(_NEW_OBJECTS, *others)
    return often


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


def _import_compute() -> None:
    """Import pyarrow's computations, whose functions are written when they are asked for."""
    if _COMPUTE in sys.modules:
        return
    try:
        _write_functions_late()
    except (ImportError, AttributeError, KeyError):  # another version does it in another way
        sys.modules.pop(_COMPUTE, None)
        import_module(_COMPUTE)


def _write_functions_late() -> None:
    import pyarrow._compute as kernels

    reader = ModuleType(_DOCUMENTATION)
    setattr(reader, "NumpyDocString", lambda _text: {"Parameters": ()})  # noqa: B010
    known, registry = sys.modules.get(_DOCUMENTATION), kernels.function_registry
    sys.modules[_DOCUMENTATION] = reader
    kernels.function_registry = _Registry
    try:
        compute: Any = import_module(_COMPUTE)
    finally:
        kernels.function_registry = registry
        del sys.modules[_DOCUMENTATION]
        if known is not None:
            sys.modules[_DOCUMENTATION] = known
    compute.function_registry, compute.docscrape = registry, reader
    written: Callable[[str, Any], Any] = compute._wrap_function
    names = {*registry().list_functions()}

    def __getattr__(name: str) -> Any:  # noqa: N807 - the name that Python calls
        kernel = _KEYWORDS.get(name, name)
        if kernel not in names or not _is_called(function := registry().get_function(kernel)):
            raise AttributeError(f"module {_COMPUTE!r} has no attribute {name!r}")
        of_kernel = written(f"{name}_" if name in _KEYWORDS.values() else name, function)
        return vars(compute).setdefault(name, of_kernel)

    compute.__getattr__ = __getattr__
    compute.__dir__ = lambda: sorted(
        {*vars(compute), *_KEYWORDS, *filter(lambda name: hasattr(compute, name), names)}
    )
    for each in [*vars(compute).values()]:
        if isinstance(each, FunctionType) and each.__module__ == _COMPUTE:
            for name in names.intersection(each.__code__.co_names):  # they ask the module's names
                if _is_called(registry().get_function(name)):
                    getattr(compute, name)


def _is_called(function: Any) -> bool:
    """Whether pyarrow writes a function in Python for this one of its own."""
    return function.kind != "hash_aggregate" and (function.kind, function.arity) != _COUNT_ALL


class _Registry:
    """Has the only function that the module calls by name while it is imported."""

    def list_functions(self) -> list[str]:
        return ["utf8_zero_fill"]

    def get_function(self, name: str) -> Any:
        import pyarrow._compute as kernels

        return kernels.get_function(name)


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
