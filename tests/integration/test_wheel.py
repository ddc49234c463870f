"""The wheel is built by the build backend, holds what the package needs, and runs by itself."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from mondrian_ops.native import build

CHECKOUT = Path(__file__).resolve().parents[2]
JOB = """\
input: people.csv
output: out
k: 5
quasi_identifiers: [age, "country=hierarchy:countries.csv"]
unlisted: drop
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `pip wheel .` has it built, but for the environment of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    called(CHECKOUT, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    (made,) = folder.glob("*.whl")
    return made


def called(folder: Path, *words: str, **settings: str) -> str:
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


def test_it_is_for_any_python_on_one_kind_of_machine(wheel: Path) -> None:
    version, tag, abi, machine = wheel.stem.split("-")[1:]
    assert (tag, abi) == ("py3", "none")
    assert version
    assert machine.endswith(platform.machine())
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert [name for name in names if name.endswith(".so")] == [
        f"mondrian_ops/native/{build.path().name}"
    ]


def test_it_holds_all_that_is_not_python(wheel: Path) -> None:
    package = CHECKOUT / "plugins" / "mondrian_ops"
    expected = {
        f"mondrian_ops/{path.relative_to(package)}"
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".so" and "__pycache__" not in path.parts
    } | {
        f"mondrian_ops/include/hierarchies/{path.name}"
        for path in (CHECKOUT / "include" / "hierarchies").iterdir()
    }
    with zipfile.ZipFile(wheel) as archive:
        assert expected <= {*archive.namelist()}
    assert {"mondrian_ops/py.typed", "mondrian_ops/web/static/pages.css"} <= expected


def test_installed_it_runs_a_job_with_a_hierarchy_of_the_package(
    wheel: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    words = ("--quiet", "--no-deps", "--no-index", "--target", str(site), str(wheel))
    called(tmp_path, "-m", "pip", "install", "--disable-pip-version-check", *words)
    people = (CHECKOUT / "include" / "examples" / "people.csv").read_bytes()
    (tmp_path / "people.csv").write_bytes(people)
    (tmp_path / "job.yaml").write_text(JOB)
    # -S: this Python's .pth file would lead to the checkout.
    path = os.pathsep.join([str(site), sysconfig.get_path("purelib")])
    words = ("-m", "mondrian_ops", "run", "job.yaml", "--quiet")
    called(tmp_path, "-S", *words, PYTHONPATH=path, MONDRIAN_OPS_HIERARCHIES="")
    assert (tmp_path / "out" / "_SUCCESS").exists()


def test_another_machine_s_wheel_needs_zig() -> None:
    code = "import hatchling.build; print(hatchling.build.get_requires_for_build_wheel())"
    requirement = (CHECKOUT / "requirements-build.txt").read_text().split()[-1]
    target = "aarch64-linux-gnu.2.17"
    assert called(CHECKOUT, "-c", code, MONDRIAN_OPS_TARGET=target) == f"['{requirement}']\n"


def test_where_there_is_a_compiler_nothing_more_is_needed() -> None:
    code = "import hatchling.build; print(hatchling.build.get_requires_for_build_wheel())"
    compiler = shlex.join(build.compiler())  # even zig's, if it is named
    assert called(CHECKOUT, "-c", code, MONDRIAN_OPS_TARGET="", CC=compiler) == "[]\n"
