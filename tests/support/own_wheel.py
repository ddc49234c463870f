"""The project's wheel, built by the build backend and installed into a folder of its own."""

from __future__ import annotations

import fcntl
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from mondrian_ops.native import build

CHECKOUT = Path(__file__).resolve().parents[2]


def built(folders: pytest.TempPathFactory) -> Path:
    """As `pip wheel .` has it built, but for the environment of its own.

    The first process of a test run to ask for it builds it, for all of them.
    """
    folder = folders.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder /= "wheel"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob("*.whl")):
            words = ("-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
            called(CHECKOUT, *words, **_quick_compiler())
    (made,) = folder.glob("*.whl")
    return made


def _quick_compiler() -> dict[str, str]:
    """The compiler of the checkout's kernels, which all other tests run, told not to optimize.

    Not zig, which `build` has to know by its name.
    """
    command = shlex.join(build.compiler())
    return {} if "zig" in command else {"CC": f"sh -c 'exec {command} \"$@\" -O0' cc"}


def installed(wheel: Path, site: Path) -> dict[str, str]:
    """Install it; the settings by which a Python with ``-S`` finds it, and no checkout."""
    words = ("--quiet", "--no-deps", "--no-index", "--target", str(site), str(wheel))
    called(site.parent, "-m", "uv", "pip", "install", *words)
    path = os.pathsep.join([str(site), sysconfig.get_path("purelib")])
    return {"PYTHONPATH": path, "MONDRIAN_OPS_HIERARCHIES": ""}


def environment(wheel: Path, extras: str, folder: Path) -> Path:
    """The Python of a new environment with the wheel and its extras, at the newest versions."""
    called(folder, "-m", "uv", "venv", "--quiet", "--python", sys.executable, "environment")
    python = folder / "environment" / "bin" / "python"
    words = ("--quiet", "--python", str(python), f"mondrian-ops[{extras}] @ {wheel.as_uri()}")
    called(folder, "-m", "uv", "pip", "install", *words)
    return python


def called(folder: Path, *words: str, **settings: str) -> str:
    """What this Python prints, run in a folder."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
