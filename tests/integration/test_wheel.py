"""The wheel is built by the build backend, holds what the package needs, and runs by itself."""

from __future__ import annotations

import platform
import re
import shlex
import zipfile
from pathlib import Path

import pytest

from mondrian_ops.native import build
from own_wheel import CHECKOUT, built, called, installed


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory)


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
        f"mondrian_ops/{path.relative_to(CHECKOUT)}"
        for pattern in ("dags/*.py", "include/*/*")
        for path in CHECKOUT.glob(pattern)
    }
    with zipfile.ZipFile(wheel) as archive:
        assert expected <= {*archive.namelist()}
    assert {"mondrian_ops/py.typed", "mondrian_ops/web/static/pages.css"} <= expected


@pytest.mark.servers
def test_installed_it_does_from_the_root_what_the_readme_says(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    settings = installed(wheel, tmp_path / "site") | {"AIRFLOW__MONDRIAN_OPS__HOME": str(home)}
    readme = (CHECKOUT / "README.md").read_text("utf-8")
    home.mkdir()
    (home / "people.yaml").write_text(re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)[0])
    for command in (
        "generate people --rows 1500 --output data/people.parquet",
        "run people.yaml --quiet",
        "verify out/people --job people.yaml",
    ):
        # -S: this Python's .pth file would lead to the checkout.
        called(Path("/"), "-S", "-m", "mondrian_ops", *command.split(), **settings)
    assert (home / "out" / "people" / "_SUCCESS").exists()


def test_it_brings_the_dags_and_what_their_forms_name(wheel: Path, tmp_path: Path) -> None:
    settings = installed(wheel, tmp_path / "site")
    init = ("-S", "-m", "mondrian_ops", "init", str(tmp_path / "home"))
    printed = called(Path("/"), *init, **settings)
    first = printed.partition("\n\n")[0].splitlines()
    assert "mondrian_sweep is not paused" in printed
    assert "Next: trigger mondrian_anonymize" in printed
    names = [
        *sorted(f"dags/{path.name}" for path in (CHECKOUT / "dags").glob("*.py")),
        *sorted(str(path.relative_to(CHECKOUT)) for path in CHECKOUT.glob("include/*/*")),
    ]
    assert first == [str(tmp_path / "home" / name) for name in names]
    changed = Path(first[0])
    changed.write_text("mine")
    again = called(Path("/"), *init, **settings).partition("\n\n")[0].splitlines()
    assert again == [f"{line}: is there already, not changed" for line in first]
    assert changed.read_text() == "mine"


def test_another_machine_s_wheel_needs_zig() -> None:
    code = "import hatchling.build; print(hatchling.build.get_requires_for_build_wheel())"
    requirement = (CHECKOUT / "requirements-build.txt").read_text().split()[-1]
    target = "aarch64-linux-gnu.2.17"
    assert called(CHECKOUT, "-c", code, MONDRIAN_OPS_TARGET=target) == f"['{requirement}']\n"


def test_where_there_is_a_compiler_nothing_more_is_needed() -> None:
    code = "import hatchling.build; print(hatchling.build.get_requires_for_build_wheel())"
    compiler = shlex.join(build.compiler())  # even zig's, if it is named
    assert called(CHECKOUT, "-c", code, MONDRIAN_OPS_TARGET="", CC=compiler) == "[]\n"
