"""Kernels that are missing, foreign or stale end in an error of ours that names the remedy."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mondrian_ops
from mondrian_ops.native import build

CALL = """
import numpy as np
from mondrian_ops.errors import MondrianOpsError
from mondrian_ops.native.library import function
try:
    function("extents")()
except MondrianOpsError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def native(tmp_path: Path) -> Path:
    """The folder of the kernels in a copy of the package."""
    package = Path(mondrian_ops.__file__).parent
    copy = tmp_path / "mondrian_ops"
    for room in ("native", "generalize/native"):
        shutil.copytree(package / room, copy / room)
    for name in ("__init__.py", "version.py", "generalize/__init__.py", "errors.py"):
        shutil.copy(package / name, copy / name)
    return copy / "native"


def error_of(native: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CALL],
        cwd=native.parents[1],
        env={"PYTHONPATH": str(native.parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "`make install` compiles them in a checkout, `python -m mondrian_ops.native.build`" in (
        done.stdout
    )
    assert "--target aarch64-linux-gnu.2.17` (or x86_64-linux-gnu.2.17) where the job starts" in (
        done.stdout
    )
    return done.stdout


def test_missing(native: Path) -> None:
    for file in native.glob("kernels-*.so"):
        file.unlink()
    missing = native / build.path().name
    assert error_of(native).startswith(
        f"KernelsError compiled kernels {missing}: missing; its folder has none; "
    )


def test_only_those_of_another_machine(native: Path) -> None:
    for file in native.glob("kernels-*.so"):
        file.rename(native / "kernels-plan9-mips.so")
    assert "missing; its folder has kernels-plan9-mips.so; " in error_of(native)


def test_of_another_machine_under_the_name_of_this_one(native: Path) -> None:
    (native / build.path().name).write_bytes(b"\x7fELF of something else")
    assert ": cannot be loaded (" in error_of(native)


def test_of_other_sources(native: Path) -> None:
    header = native / "kernels.h"
    header.write_bytes(header.read_bytes() + b"/* changed */\n")
    assert ": compiled from sources other than those beside them; " in error_of(native)
