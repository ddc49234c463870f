"""No two C files need each other: each can be read, and tried, after those that it calls."""

from __future__ import annotations

import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from mondrian_ops.native import build


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Each C file, compiled by itself."""
    folder = tmp_path_factory.mktemp("objects")
    command = [*build.compiler(), "-std=c11", "-O0", '-DMO_SOURCES=""', *build._includes(), "-c"]
    sources = [str(file) for file in build._sources()]
    subprocess.run([*command, *sources], check=True, cwd=folder)
    return sorted(folder.glob("*.o"))


def symbols(made: Path, kind: str) -> set[str]:
    """The functions that an object file defines (T), or needs of others (U)."""
    listed = subprocess.run(["nm", str(made)], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in listed.splitlines() if line.split()[-2] == kind}


@pytest.mark.servers  # all of the C is compiled once more
def test_c_files_call_each_other_in_one_direction(objects: list[Path]) -> None:
    defined = {name: made.stem for made in objects for name in symbols(made, "T")}
    needed = {made.stem: symbols(made, "U") & defined.keys() for made in objects}
    calls = {file: {defined[name] for name in names} - {file} for file, names in needed.items()}
    order = list(TopologicalSorter(calls).static_order())  # raises CycleError
    assert order.index("cut_greedy") < order.index("cut_lookahead") < order.index("growing")
