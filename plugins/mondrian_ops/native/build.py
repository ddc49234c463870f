"""Compiles the kernels: ``python -m mondrian_ops.native.build``, or this file as a script.

The compiler is ``$CC``, else ``cc``, else zig's, which the ziglang wheel brings from the package
registry. Imports nothing but the standard library: the build backend runs it before the package
can be imported (``hatch_build.py``).
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_PACKAGE = _HERE.parent

# No -march=native and no contraction of a * b + c: results are the same on every machine.
_FLAGS = ("-std=c11", "-ffp-contract=off", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden")
_FAST = ("-O3", "-g0", "-DNDEBUG")  # assertions are for the sanitized kernels of tests
_SANITIZED = ("-O0", "-g", "-fno-sanitize-recover=undefined")  # -O1 compiles three times as long
_WARNINGS = (
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Wsign-conversion",
    "-Wstrict-prototypes",
    "-Werror",
)
# x86-64-v2, which all processors since 2009 have: looking ahead, which counts bits, takes a tenth
# less time. Spelled out, as GCC before 11 does not know the level by name.
_X86_64 = ("-mpopcnt", "-msse4.2")

WHEELS = {
    "x86_64-linux-gnu.2.17": "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "aarch64-linux-gnu.2.17": "manylinux_2_17_aarch64.manylinux2014_aarch64",
    "aarch64-macos.11.0": "macosx_11_0_arm64",
}
"""The platform tag of each wheel that `make wheels` builds, by zig's name for the machine."""


class CompilerError(Exception):
    """No compiler works, or compiling fails; the text ends with the remedy."""


def path(target: str | None = None) -> Path:
    """The file of the kernels compiled for ``target``, as zig names it, or for this machine.

    Its name contains the machine, so that one folder can hold the kernels for several.
    """
    if target is None:
        system, machine = platform.system().lower(), platform.machine().lower()
    else:
        machine, _, system = target.partition("-")
        system = "darwin" if system.startswith("macos") else system.partition("-")[0]
        machine = "arm64" if (system, machine) == ("darwin", "aarch64") else machine
    return _HERE / f"kernels-{system}-{machine}.so"


def digest() -> str:
    """A digest of the C sources; empty where none are beside this file."""
    files = _files((".c", ".h"))
    if not any(file.endswith(".c") for file in files):
        return ""
    sha256 = hashlib.sha256()
    for file in files:
        with open(file, "rb") as source:
            sha256.update(f"{file.removeprefix(f'{_PACKAGE}{os.sep}')}\0".encode() + source.read())
    return sha256.hexdigest()[:16]


def compiler() -> tuple[str, ...]:
    """The command of the first compiler that works here.

    Raises CompilerError where none does.
    """
    named = shlex.split(os.environ.get("CC", ""))
    commands = []
    for command in filter(None, (named, ["cc"], _zig())):
        commands.append(shlex.join(command))
        if shutil.which(command[0]) and _works(command):
            return tuple(command)
    raise CompilerError(
        f"no C compiler works here (tried: {', '.join(commands)}); install gcc or clang with its "
        "headers, or `pip install ziglang`"
    )


def platform_tag(target: str | None = None) -> str:
    """The platform tag of a wheel with the kernels for ``target``, or for this machine.

    Kernels from the system's own compiler may not run on older systems, so their wheel has this
    system's tag. Raises CompilerError where no compiler works.
    """
    if target is None and (platform.system() == "Darwin" or _is_zig(compiler())):
        target = _own_target()
    if target is None:
        return sysconfig.get_platform().replace("-", "_").replace(".", "_")
    machine, _, system = target.partition("-")
    if system == "linux-musl":
        return f"musllinux_1_2_{machine}"
    return WHEELS.get(target) or f"macosx_11_0_{machine}"


def build(
    output: Path | None = None,
    *,
    target: str | None = None,
    strict: bool = False,
    sanitize: bool = False,
    more: Sequence[str] = (),
    also: Sequence[Path] = (),
) -> Path:
    """Compile the kernels; the file appears when it is complete.

    Args:
        output: the file; by default `path`.
        target: another machine as zig names it, such as ``aarch64-linux-gnu.2.17``; by default this
            one.
        strict: treat warnings as errors.
        sanitize: with UndefinedBehaviorSanitizer and, except by zig, AddressSanitizer.
        more, also: further flags, and other C files, such as those of tests.

    Raises CompilerError.
    """
    output = output or path(target)
    if not _sources():
        raise CompilerError(f"{_PACKAGE}: no C files; install from a checkout or an sdist")
    command = _compiler_for(target)
    flags = [*_FLAGS, *_of_machine(command, target), f'-DMO_SOURCES="{digest()}"']
    flags += _WARNINGS if strict else ()
    flags += [*(_sanitizers(command) if sanitize else _FAST), *_includes(), *more]
    # In the output's folder, so that a rename can put the file in place.
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".building-") as folder:
        made = Path(folder, output.name)
        _run([*command, *flags, "-o", str(made), *_sources(), *map(str, also), "-lm"])
        made.replace(output)
    return output


def _sources() -> list[str]:
    return _files((".c",))


def _files(endings: tuple[str, ...]) -> list[str]:
    """The C files of all folders ``native``, sorted; each run reads them, so without pathlib."""
    return sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(_PACKAGE)
        if os.path.basename(folder) == _HERE.name
        for name in names
        if name.endswith(endings)
    )


def _includes() -> list[str]:
    return [f"-I{folder}" for folder in sorted({Path(file).parent for file in _files((".h",))})]


def _zig() -> list[str]:
    return [sys.executable, "-m", "ziglang", "cc"] if find_spec("ziglang") else []


def _is_zig(command: Sequence[str]) -> bool:
    """Whether the command is zig, which compiles for any machine and any version of its libc."""
    return "ziglang" in command or Path(command[0]).stem == "zig"


def _compiler_for(target: str | None) -> tuple[str, ...]:
    if target is None:
        return compiler()
    if zig := _zig():
        return tuple(zig)
    raise CompilerError(
        f"--target {target}: only zig compiles for other machines; `pip install ziglang`"
    )


def _of_machine(command: Sequence[str], target: str | None) -> list[str]:
    """The flags for the machine, with the instructions that all its processors have."""
    zig = _is_zig(command)
    if target is None and zig:  # without a target zig uses all instructions of this processor
        target = _own_target()
    machine = (target or platform.machine().lower()).partition("-")[0]
    flags = ["-target", target] if target else []
    if machine in ("x86_64", "amd64"):
        flags += ["-mcpu=x86_64_v2"] if zig else _X86_64
    if target is None and platform.system() == "Darwin":
        flags += ["-mmacosx-version-min=11.0"]
    return flags


def _sanitizers(command: Sequence[str]) -> list[str]:
    """zig has no AddressSanitizer, and its UndefinedBehaviorSanitizer only ends the process."""
    if _is_zig(command):
        return [*_SANITIZED, "-fsanitize=undefined", "-fsanitize-trap=undefined"]
    return [*_SANITIZED, "-fsanitize=address,undefined"]


def _own_target() -> str:
    """This machine as zig names it, with the oldest system that wheels support."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    if platform.system() == "Darwin":
        return f"{machine}-macos.11.0"
    libc = "gnu.2.17" if platform.libc_ver()[0] == "glibc" else "musl"
    return f"{machine}-linux-{libc}"


def _works(command: Sequence[str]) -> bool:
    """Whether the compiler knows the flags, has headers, and makes files that load here."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "probe.c"), Path(folder, "probe.so")
        source.write_text(
            "#include <math.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n"
            "double probe(double x);\ndouble probe(double x) { return log(x); }\n"
        )
        # Optimized like the kernels: zig compiles its own libraries once for each level.
        flags = [*_FLAGS, *_FAST, *_of_machine(command, None)]
        try:
            _run([*command, *flags, "-o", str(made), str(source), "-lm"])
            ctypes.CDLL(str(made))
        except (CompilerError, OSError):
            return False
    return True


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise CompilerError(
            f"{shlex.join(command)}\n{done.stdout}{done.stderr}the kernels were not compiled; name "
            "another compiler in CC, or `pip install ziglang` and set CC='python -m ziglang cc'"
        )


def _main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m mondrian_ops.native.build",
        description="Compile the kernels, for this machine or another one.",
    )
    parser.add_argument(
        "--target",
        metavar="MACHINE",
        help=f"compile for another machine, named as zig does, such as {', '.join(WHEELS)}; needs "
        "ziglang",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the file, instead of one beside the sources"
    )
    parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
    parser.add_argument("--sanitize", action="store_true", help="with sanitizers, for tests")
    parser.add_argument(
        "--find", action="store_true", help="print the first compiler that works; compile nothing"
    )
    options = vars(parser.parse_args(arguments))
    try:
        if options.pop("find"):
            sys.stdout.write(f"{shlex.join(compiler())}\n")
        else:
            build(**options)
    except CompilerError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
