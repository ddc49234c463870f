"""The kernels are compiled by whichever compiler works, whole or not at all, for any machine."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mondrian_ops.native import build
from servers.needs import needs

SOURCES = Path(build.__file__).parent
KERNEL, NO_KERNEL = "mo_satisfies", "tally_satisfies"
needs_zig = pytest.mark.usefixtures("zig")


@pytest.fixture
def zig() -> None:
    needs("zig")


@pytest.fixture
def native(tmp_path: Path) -> Path:
    """A folder with nothing but some of the sources and `build.py`."""
    (tmp_path / "native").mkdir()
    (tmp_path / "cut" / "native").mkdir(parents=True)
    for name in (
        "native/build.py",
        "native/kernels.h",
        "cut/native/class_criteria.c",
        "cut/native/near_values.c",
        "cut/native/near_values.h",
        "cut/native/threads.c",
        "cut/native/cutting.h",
    ):
        shutil.copy(SOURCES.parent / name, tmp_path / name)
    return tmp_path / "native"


def script(native: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """`build.py` as a script: without the package, and with nothing but the standard library."""
    return subprocess.run(
        [sys.executable, "-I", native / "build.py", *words],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def bare_python(folder: Path) -> str:
    """The path to a Python that has no ziglang."""
    made = folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    return str(made / "bin" / "python")


@pytest.mark.servers  # as make lint does
def test_all_of_it_compiles_without_a_warning(tmp_path: Path) -> None:
    made = tmp_path / "kernels.so"
    done = script(SOURCES, "--strict", "--output", str(made))
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == [made]
    assert hasattr(ctypes.CDLL(str(made)), "mo_sources")


def test_as_a_script_it_compiles_beside_the_sources(native: Path) -> None:
    before = {*native.iterdir()}
    assert script(native).returncode == 0
    (made,) = {*native.iterdir()} - before
    assert made.name == build.path().name
    library = ctypes.CDLL(str(made))
    assert (hasattr(library, KERNEL), hasattr(library, NO_KERNEL)) == (True, False)


def test_a_failure_leaves_the_old_kernels_and_nothing_else(native: Path) -> None:
    old = native / build.path().name
    old.write_bytes(b"old")
    (native / "wrong.c").write_text("no C")
    before = sorted(native.iterdir())
    done = script(native)
    assert done.returncode == 1
    assert "wrong.c" in done.stderr
    assert "name another compiler in CC, or `pip install ziglang`" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(native.iterdir()) == before
    assert old.read_bytes() == b"old"


@pytest.mark.servers
def test_warnings_are_errors_only_where_they_are_asked_for(native: Path) -> None:
    (native / "odd.c").write_text("static int unused;\nint used(void);\nint used(void){return 1;}")
    assert script(native, "--strict").returncode == 1
    assert script(native).returncode == 0


def test_a_compiler_that_does_not_work_is_passed_over(native: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 0\n")  # it says that it has compiled
    broken.chmod(0o755)
    assert script(native, "--find", CC=str(broken)).stdout == script(native, "--find").stdout


def test_without_any_compiler_the_remedy_is_named(native: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [bare_python(tmp_path), native / "build.py"],
        env={"PATH": "", "CC": "nothing --at-all"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "no C compiler works here (tried: nothing --at-all, cc); install gcc or clang with its "
        "headers, or `pip install ziglang`\n"
    )


def test_another_machine_without_zig_names_the_remedy(native: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [bare_python(tmp_path), native / "build.py", "--target", "aarch64-linux-gnu.2.17"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "only zig compiles for other machines; `pip install ziglang`" in done.stderr


def test_without_sources_it_says_where_they_are(tmp_path: Path) -> None:
    alone = tmp_path / "mondrian_ops" / "native"
    alone.mkdir(parents=True)
    shutil.copy(SOURCES / "build.py", alone)
    done = script(alone)
    assert done.returncode == 1
    assert done.stderr.endswith("no C files; install from a checkout or an sdist\n")


@needs_zig
@pytest.mark.parametrize(
    ("target", "magic"),
    [
        ("aarch64-macos.11.0", b"\xcf\xfa\xed\xfe"),
        pytest.param("x86_64-linux-gnu.2.17", b"\x7fELF", marks=pytest.mark.soak),
        pytest.param("aarch64-linux-gnu.2.17", b"\x7fELF", marks=pytest.mark.soak),
    ],
)
def test_zig_compiles_for_other_machines(native: Path, target: str, magic: bytes) -> None:
    done = script(native, "--target", target)
    assert (done.returncode, done.stderr) == (0, "")
    assert (native / build.path(target).name).read_bytes().startswith(magic)


@needs_zig
def test_zig_compiles_for_this_machine_where_there_is_no_other(native: Path) -> None:
    done = script(native, PATH="")
    assert (done.returncode, done.stderr) == (0, "")
    assert hasattr(ctypes.CDLL(str(native / build.path().name)), KERNEL)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("x86_64-linux-gnu.2.17", "kernels-linux-x86_64.so"),
        ("aarch64-linux-gnu.2.17", "kernels-linux-aarch64.so"),
        ("aarch64-macos.11.0", "kernels-darwin-arm64.so"),
        ("x86_64-macos.11.0", "kernels-darwin-x86_64.so"),
    ],
)
def test_the_file_is_named_after_the_machine(target: str, name: str) -> None:
    assert build.path(target) == SOURCES / name


@pytest.mark.parametrize(
    ("system", "machine"), [("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")]
)
def test_a_machine_finds_what_was_compiled_for_it(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert build.path() in {build.path(target) for target in build.WHEELS}


def test_make_names_the_file_as_it_is_named() -> None:
    makefile = (Path(__file__).parents[3] / "Makefile").read_text()
    named = subprocess.run(
        ["sh", "-c", "uname -sm | tr 'A-Z ' 'a-z-'"], capture_output=True, text=True, check=True
    )
    assert "kernels-$(shell uname -sm | tr 'A-Z ' 'a-z-').so" in makefile
    assert build.path().name == f"kernels-{named.stdout.strip()}.so"


@pytest.mark.parametrize("tag", build.WHEELS.values())
def test_the_tag_of_a_wheel_is_that_of_its_machine(tag: str) -> None:
    (target,) = (target for target, name in build.WHEELS.items() if name == tag)
    assert build.platform_tag(target) == tag


def test_what_the_system_compiles_promises_no_older_system() -> None:
    needs("cc")
    assert build.platform_tag() == f"linux_{platform.machine()}"


def test_other_sources_have_another_digest(native: Path) -> None:
    def digest() -> str:
        code = "import build; print(build.digest())"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=native, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    before = digest()
    (native / "kernels.h").write_bytes((native / "kernels.h").read_bytes() + b"\n")
    assert digest() != before
    for file in native.parent.rglob("*.c"):
        file.unlink()
    assert digest() == ""
