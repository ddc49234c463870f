"""The package reaches executors by itself: as a zip, unpacked once, with its kernels compiled."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest

import mondrian_ops
from mondrian_ops.engines.spark import SparkEngine
from mondrian_ops.native import build

SOURCE = Path(mondrian_ops.__file__).parent
PACK = "from mondrian_ops.engines import shipping; print(shipping.packed())"
# What an executor does: cut some rows; then, where it took the package and the kernels from.
CUT = """
from mondrian_ops.engines import executor
import pyarrow as pa
from mondrian_ops import anonymize
table = pa.table({"x": range(400), "s": [at % 3 for at in range(400)]})
job = {"k": 5, "l": 2, "quasi_identifiers": ["x"], "sensitive": ["s"], "cut": "gain"}
anonymize(table, job)
print(executor.fragment.__file__)
print(*{line.split()[-1] for line in open("/proc/self/maps") if "kernels-" in line})
"""


def python(code: str, path: Path, place: Path, *flags: str) -> subprocess.Popen[str]:
    settings = {"PYTHONPATH": str(path), "MONDRIAN_OPS_CACHE": str(place)}
    return subprocess.Popen(
        [sys.executable, *flags, "-c", code],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def on_executor(code: str, archive: Path, place: Path) -> subprocess.Popen[str]:
    """A Python that has the libraries and the zip, and no checkout of this project."""
    libraries = sysconfig.get_path("purelib")
    return python(f"import sys; sys.path.append({libraries!r})\n{code}", archive, place, "-S")


def said(process: subprocess.Popen[str]) -> list[str]:
    output, complaints = process.communicate()
    assert process.returncode == 0, complaints
    return output.split()


def packed(place: Path) -> Path:
    (path,) = said(python(PACK, SOURCE.parent, place))
    return Path(path)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("packed")
    place.chmod(0o700)
    return packed(place)


def test_the_same_package_is_the_same_zip(archive: Path, tmp_path: Path) -> None:
    other = packed(tmp_path / "new" / "place")
    assert other.name == archive.name
    assert other.read_bytes() == archive.read_bytes()
    assert stat.S_IMODE(other.parent.stat().st_mode) == 0o700
    assert list(other.parent.iterdir()) == [other]


def test_packages_that_nobody_uses_any_more_are_removed(archive: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir(mode=0o700)
    for name in ("mondrian_ops-used.zip", "mondrian_ops-old.zip", "others-old.zip"):
        (place / name).write_bytes(b"")
    (place / "mondrian_ops-old").mkdir()
    (place / "mondrian_ops-old" / "file.py").write_text("")
    for path in place.glob("*-old*"):
        os.utime(path, (0, 0))
    packed(place)
    left = {path.name for path in place.iterdir()}
    assert left == {"mondrian_ops-used.zip", "others-old.zip", archive.name}


def test_it_holds_the_package_and_its_compiled_kernels(archive: Path) -> None:
    names = zipfile.ZipFile(archive).namelist()
    for path in SOURCE.rglob("*.py"):
        assert f"mondrian_ops/{path.relative_to(SOURCE)}" in names
    assert f"mondrian_ops/native/{build.path().name}" in names
    assert not [name for name in names if name.endswith((".pyc", ".c", ".h"))]


def installed(place: Path) -> Path:
    """A copy of the package, whose folder may be changed."""
    shutil.copytree(SOURCE, place / "mondrian_ops", ignore=shutil.ignore_patterns("__pycache__"))
    return place / "mondrian_ops" / "native"


def test_it_holds_the_kernels_of_every_machine_that_are_there(tmp_path: Path) -> None:
    native = installed(tmp_path)
    others = [build.path(f"{machine}-linux-gnu.2.17").name for machine in ("aarch64", "x86_64")]
    for name in others:
        (native / name).write_bytes(b"")
    (native / ".building-x").mkdir()
    (native / ".building-x" / others[0]).write_bytes(b"half of it")
    (path,) = said(python(PACK, tmp_path, tmp_path / "place"))
    names = zipfile.ZipFile(path).namelist()
    assert {name for name in names if name.endswith(".so")} == {
        f"mondrian_ops/native/{name}" for name in {*others, build.path().name}
    }


def test_an_executor_of_another_machine_says_what_is_missing(tmp_path: Path) -> None:
    native = installed(tmp_path)
    native.joinpath(build.path().name).rename(native / "kernels-plan9-mips.so")
    (path,) = said(python(PACK, tmp_path, tmp_path / "place"))
    task = on_executor(CUT, Path(path), tmp_path / "place")
    _, complaints = task.communicate()
    assert task.returncode != 0
    assert re.search(
        rf"KernelsError: .*/{build.path().name}: missing; its folder has kernels-plan9-mips.so; "
        r".* for Spark executors .* `python -m mondrian_ops.native.build --target ",
        complaints,
    )


def test_executors_unpack_it_at_once_and_compile_nothing(archive: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    tasks = [on_executor(CUT, archive, place) for _ in range(4)]
    home = place / archive.stem
    for task in tasks:
        where, kernels = said(task)
        assert Path(where) == home / "mondrian_ops" / "engines" / "fragment.py"
        assert Path(kernels) == home / "mondrian_ops" / "native" / build.path().name
    assert list(place.iterdir()) == [home]
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_code_is_not_run_from_a_folder_that_others_may_write_to(
    archive: Path, tmp_path: Path, mode: int
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(mode)
    task = on_executor("from mondrian_ops.engines import executor", archive, place)
    _, complaints = task.communicate()
    assert task.returncode != 0
    assert "could put code there" in complaints
    assert "MONDRIAN_OPS_CACHE" in complaints
    assert not list(place.iterdir())


@pytest.mark.java
def test_executors_that_have_nothing_installed_have_it(spark_engine: SparkEngine) -> None:
    def look(batches: Any) -> Any:  # in here, it travels by value
        import pyarrow as pa

        from mondrian_ops.engines import executor

        for _ in batches:
            found = {"came": [executor.__file__], "settled": [executor.fragment.__file__]}
            yield pa.RecordBatch.from_pydict(found)

    frame = spark_engine._session.range(1).mapInArrow(look, "came string, settled string")
    (found,) = frame.toArrow().to_pylist()
    assert ".zip/mondrian_ops/engines/" in found["came"]
    assert ".zip" not in found["settled"]
    assert SOURCE not in Path(found["settled"]).parents


@pytest.mark.java
def test_the_process_that_ships_it_imports_as_before(spark_engine: SparkEngine) -> None:
    before = list(sys.path)
    type(spark_engine)(spark_engine._session)
    assert sys.path == before
