"""Every name in the stub of a package is there, and no other."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

import pytest

from mondrian_ops.late_names import names_of

LATE = [
    f"mondrian_ops.{name}"
    for name in ("catalogue", "pipeline", "publish", "report", "series", "stores", "tables")
]


@pytest.mark.parametrize("package", LATE)
def test_every_name_is_there(package: str) -> None:
    import_module(package)
    names = [*names_of(package)]
    assert names
    program = f"import {package} as p\nfor name in {names}:\n    getattr(p, name)"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("package", LATE)
def test_no_late_name_is_that_of_a_module(package: str) -> None:
    """Importing the module would put it in the name's place."""
    imported = import_module(package)
    modules = {each.name for each in iter_modules(imported.__path__)}
    for name in modules & {*names_of(package)}:
        import_module(f"{package}.{name}")
        assert callable(getattr(imported, name)), name


@pytest.mark.parametrize("package", LATE)
def test_what_is_not_there_is_an_attribute_error(package: str) -> None:
    imported = import_module(package)
    with pytest.raises(AttributeError, match=f"'{package}' has no attribute 'nothing'"):
        imported.nothing  # noqa: B018
    assert not hasattr(imported, "nothing")
