"""Kernels that AddressSanitizer and UBSan watch, in a copy of the package.

Python is not watched itself: it preloads the sanitizer's library, as every program does that loads
what is watched. Where zig is the only compiler, which has no AddressSanitizer, UBSan alone watches,
and ends the process without a word.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from mondrian_ops.native import build

__all__ = ["SANITIZED", "environment", "runtime", "sanitized"]

SANITIZED = "MONDRIAN_OPS_SANITIZED"
"""Set where the kernels are watched: so are then those that a test compiles (native_probes)."""

_PACKAGE = Path(build.__file__).parents[1]


def runtime() -> str | None:
    """The library of AddressSanitizer; empty where zig compiles, None where there is none."""
    compiler = build.compiler()
    if "ziglang" in compiler:
        return ""
    asked = [*compiler, "-print-file-name=libasan.so"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return found if Path(found).is_absolute() else None


def sanitized(folder: Path, **sources: str) -> Path:
    """Copy the package into a folder and compile its kernels, with more C ``sources`` by name."""
    copy = folder / _PACKAGE.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(_PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name, text in sources.items():
        (copy / "native" / f"{name}.c").write_text(text)
    subprocess.run([sys.executable, copy / "native" / "build.py", "--sanitize"], check=True)
    return folder


def environment(plugins: Path) -> dict[str, str]:
    """What a Python is started with that imports the copy of the package."""
    settings = {
        SANITIZED: "1",
        "LD_PRELOAD": runtime() or "",
        "PYTHONPATH": str(plugins),
        # Python ends without freeing all that it has; and more memory than there is is refused.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    return {**os.environ, **settings}
