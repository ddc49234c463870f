"""Every name in the stub of a package is there, and no other."""

from __future__ import annotations

import json
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


# In a process for each package, forked from one that has imported none.
PROGRAM = """
import json, os, sys
from importlib import import_module
for package, names in json.loads(sys.argv[1]).items():
    if os.fork():
        if os.wait()[1]:
            sys.exit(f"{package} lacks a name")
        continue
    for name in names:
        getattr(import_module(package), name)
    sys.exit()
"""


@pytest.mark.servers  # for the seconds that all imports take
def test_every_name_is_there() -> None:
    names: dict[str, list[str]] = {}
    for package in LATE:
        import_module(package)
        names[package] = [*names_of(package)]
        assert names[package]
    subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(names)], check=True)


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
