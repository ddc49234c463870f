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

SANITIZED = "MONDRIAN_OPS_SANITIZED"
"""Set where the kernels are watched: so are then those that a test compiles (native_probes)."""

_PACKAGE = Path(build.__file__).parents[1]
# zig drops -fsanitize=address, for want of the library, unless the compiler inside is told itself.
_FUZZED = (
    "-O1",
    "-g",
    "-Xclang",
    "-fsanitize=address",
    "-fsanitize=undefined",
    "-fno-sanitize-recover=undefined",
    "-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp",
)


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
    native = _copied(folder)
    for name, text in sources.items():
        (native / f"{name}.c").write_text(text)
    subprocess.run([sys.executable, native / "build.py", "--sanitize"], check=True)
    return folder


def fuzzed(folder: Path) -> Path:
    """Copy the package, with kernels that say to libFuzzer, too, which way they went; by zig."""
    native = _copied(folder)
    os.environ["CC"] = f"{sys.executable} -m ziglang cc"
    build.build(native / build.path().name, more=_FUZZED)
    return folder


def _copied(folder: Path) -> Path:
    """The folder of the kernels in a new copy of the package that has none."""
    copy = folder / _PACKAGE.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(_PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    return copy / "native"


def environment(plugins: Path, library: str | Path | None = None) -> dict[str, str]:
    """What a Python is started with that imports the copy of the package.

    ``library``: that of AddressSanitizer, where it is another one than the compiler's.
    """
    settings = {
        SANITIZED: "1",
        "LD_PRELOAD": str(library or runtime() or ""),
        "PYTHONPATH": str(plugins),
        # Python ends without freeing all that it has; and much memory is refused, not filled.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1024",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    return {**os.environ, **settings}
