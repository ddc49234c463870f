"""How tests are dealt out to processes, shown by a small suite of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("xdist")
TESTS = Path(__file__).parent

CONFTEST = """
import json, os
import pytest
from groups import in_order
from xdist_scheduler import GroupScheduler

def pytest_xdist_make_scheduler(config, log):
    return GroupScheduler(config, log)

def pytest_collection_modifyitems(items):
    items[:] = in_order(items)

def pytest_runtest_call(item):
    with open("ran", "a") as file:
        file.write(json.dumps([item.nodeid.partition("::")[0], os.getpid()]) + "\\n")
"""
TEST = "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_it(n): ...\n"
GROUPS = [
    ("tests/integration/test_a.py", "tests/integration/test_b.py"),
    ("tests/engines/test_a.py", "tests/storage/test_hdfs.py"),
    ("tests/engines/test_disturbed_steps.py", "tests/engines/test_faults.py"),
    ("tests/faults/test_a.py", "tests/faults/test_b.py"),
    ("tests/core/test_a.py",),
    ("tests/test_c.py",),
]
"""The groups of the suite, in the order in which they are dealt out."""


def ran(folder: Path, *options: str) -> list[tuple[str, int]]:
    """Run the suite: of each test its file and the process that ran it, in order."""
    files = {file: TEST for group in GROUPS for file in group}
    for name, text in {**files, "tests/conftest.py": CONFTEST, "pytest.ini": "[pytest]\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "xdist.plugin", "--import-mode=importlib"),
            *("-p", "no:cacheprovider", *options),
        ],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if "PYTEST" not in name},
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads(line) for line in (folder / "ran").read_text().splitlines()]
    assert len(told) == 4 * len(files)
    return [(file, process) for file, process in told]


def test_a_file_is_not_divided_and_what_needs_one_server_shares_a_process(tmp_path: Path) -> None:
    found = ran(tmp_path, "-n", str(len(GROUPS)), "--no-loadscope-reorder")
    by_process: dict[int, set[str]] = {}
    for file, process in found:
        by_process.setdefault(process, set()).add(file)
    assert sorted(map(sorted, by_process.values())) == sorted(map(sorted, GROUPS))


def test_the_groups_that_take_longest_come_first(tmp_path: Path) -> None:
    files = [*dict.fromkeys(file for file, _process in ran(tmp_path))]
    assert files == [file for group in GROUPS for file in group]


def test_every_path_that_has_a_group_is_there() -> None:
    import groups

    assert [path for path in groups._GROUPS if not (TESTS.parent / path).exists()] == []
