"""Import numpy and pyarrow without the parts that this package's own processes do not use.

For the command line and Airflow's tasks; not for programs that import this package, which may use
numpy in other ways.

numpy's OpenBLAS starts a thread for every core but one, and each spins until numpy is imported.
This package multiplies no large matrices.

pyarrow imports pandas when it converts its first value, to see whether that is one of pandas'.
The import takes a fifth of a second, and this package has no such value. pyarrow also has a thread
for each core of the host, even in a container that may use two, and keeps memory for each.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from mondrian_ops.cores import available_cores

__all__ = ["import_lean", "limit_pyarrow"]

_THREADS = "OPENBLAS_NUM_THREADS"
_PYARROW_THREADS = 2  # with each more it keeps more memory, and reads further ahead


def import_lean() -> None:
    """Import numpy and pyarrow, unless they are imported already.

    OpenBLAS then has one thread, unless the environment sets another number, and pyarrow one for
    each core that this process may use, but few. When a program imports pandas later, pyarrow looks
    for it again, and converts its values as usual.
    """
    _import_numpy()
    limit_pyarrow()
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


def _import_numpy() -> None:
    if "numpy" in sys.modules or _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_THREADS]  # child processes keep OpenBLAS's default


def limit_pyarrow() -> None:
    """Let pyarrow have no more threads than this process may use cores, and few."""
    import pyarrow as pa

    pa.set_cpu_count(min(pa.cpu_count(), available_cores(), _PYARROW_THREADS))


class _Hidden(MetaPathFinder):
    """Hides pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out", name=fullname)


class _Later(MetaPathFinder):
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
