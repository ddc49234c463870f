"""``python -m mondrian_ops``."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

from mondrian_ops import cli


class _NoPandas(MetaPathFinder):
    """Finds no pandas: pyarrow imports it at the first value if it can, a third of a second for
    nothing, since this process has no use for it. Unless PySpark is there, which has."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname == "pandas" and "pyspark" not in sys.modules:
            raise ModuleNotFoundError("pandas is not used on the command line", name="pandas")
        return None


def main() -> int:
    """Run one command in a process of its own."""
    sys.meta_path.insert(0, _NoPandas())
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
