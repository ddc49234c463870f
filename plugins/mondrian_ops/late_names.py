"""Names of a package whose modules are imported on first use.

The stub beside the package's ``__init__.py`` lists them, so that type checkers and this module read
one list: ``from mondrian_ops.report.page import files as files``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def late_names(package: str) -> Callable[[str], Any]:
    """The ``__getattr__`` (PEP 562) of a package, for the names of its ``__init__.pyi``.

    A name must differ from the names of the package's modules, whose imports would replace it.
    """
    modules: dict[str, str] = {}

    def __getattr__(name: str) -> Any:  # noqa: N807 - the name that Python calls
        if not modules:
            modules.update(names_of(package))
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__


def names_of(package: str) -> dict[str, str]:
    """The module of each name that the stub of an imported ``package`` lists."""
    spec = sys.modules[package].__spec__
    loader: Any = spec and spec.loader  # reads from a folder as from a zip
    stub = loader.get_data(f"{spec and spec.origin}i")
    imports = (node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom))
    return {each.name: str(node.module) for node in imports for each in node.names}
