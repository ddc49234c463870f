"""numpy and pyarrow without what a process of this package's own has no use for.

For the command line and the tasks of Airflow; not for programs that import this package, which may
have other work for numpy.

numpy's OpenBLAS starts a thread for every core but one, and each looks out for work as long as it
takes to import numpy. Nothing here multiplies large matrices.

At the first value that pyarrow is given it imports pandas, to see whether the value is one of
pandas' own. That takes a fifth of a second, and no value here is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["import_lean"]

_THREADS = "OPENBLAS_NUM_THREADS"


def import_lean() -> None:
    """Import numpy and pyarrow, unless they are imported already.

    OpenBLAS has one thread then, if the environment does not say how many. Whoever imports pandas
    later can give its values to pyarrow as ever: pyarrow looks for it once more then.
    """
    _import_numpy()
    if "pandas" in sys.modules or any(isinstance(each, _Later) for each in sys.meta_path):
        return
    import pyarrow as pa

    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([])  # it looks once
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
        del os.environ[_THREADS]  # programs that this process starts have their own work


class _Hidden(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out", name=fullname)


class _Later(MetaPathFinder):
    """Lets pyarrow look again as soon as pandas is imported."""

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
            pa.nulls(0).to_pandas()  # it cannot do this without pandas, so it looks

        setattr(spec.loader, "exec_module", exec_module)  # noqa: B010 - of this one loader
        return spec
