"""pyarrow without pandas, for as long as nobody else in the process imports it.

At the first value that pyarrow is given it imports pandas, to see whether the value is one of
pandas' own. That takes a fifth of a second, and a task of a few seconds has no such value.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["leave_pandas_out"]


def leave_pandas_out() -> None:
    """Let pyarrow look for pandas now and find none, unless this process has imported it.

    Whoever imports pandas later can give its values to pyarrow as ever: pyarrow looks again then.
    """
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
