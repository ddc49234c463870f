"""Names of a package whose modules are imported when they are needed, and not before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["late_names"]


def late_names(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package; ``names`` by the module of the package that has them.

    None may be called as a module of the package is: importing that would take its place.
    """
    modules = {name: module for module, each in names.items() for name in each}

    def __getattr__(name: str) -> Any:  # noqa: N807 - as a module calls it
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
