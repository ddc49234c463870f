"""How tests are dealt out to processes, shown by a small suite of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xdist")
TESTS = Path(__file__).parent

CONFTEST = """
import json, os, time
import pytest
from dealer import Dealer
from running_order import in_order

def pytest_xdist_make_scheduler(config, log):
    return Dealer(config, log)

def pytest_collection_modifyitems(config, items):
    items[:] = in_order(items, dealt=hasattr(config, "workerinput"))

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    began = time.monotonic()
    yield
    told = [item.nodeid, os.getpid(), began, time.monotonic()]
    with open("told", "a") as file:
        file.write(json.dumps(told) + "\\n")
    return True
"""
WELL = """
import pytest, time

@pytest.mark.parametrize("number", range(4))
def test_it(number):
    time.sleep(0.05)
"""
DEADLY = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(4))
def test_it(number):
    if number == 1:
        os.abort()
"""
BROKEN = "def test_it():\n    assert False\n"
IMPORT = ("--import-mode=importlib", "-p", "no:cacheprovider")
AIRFLOWS = ("tests/integration/test_a.py", "tests/integration/test_b.py")
SERVERS = ("tests/engines/test_a.py", "tests/storage/test_hdfs.py")
FRAGILE = ("tests/engines/test_disturbed_steps.py", "tests/engines/test_faults.py")
OTHERS = ("tests/core/test_a.py", "tests/core/test_b.py", "tests/test_c.py", "tests/test_d.py")


class Suite:
    """A suite whose tests tell when they ran, and in which process."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self._folder = folder
        (folder / "pytest.ini").write_text("[pytest]\n")
        for name, text in {**files, "tests/conftest.py": CONFTEST}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def run(self, *options: str) -> int:
        """Run it; pytest's exit status."""
        kept = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
        command = [sys.executable, "-m", "pytest", "-p", "xdist.plugin", *IMPORT, *options]
        done = subprocess.run(
            command,
            cwd=self._folder,
            env={
                **kept,
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        self.said = done.stdout + done.stderr
        return done.returncode

    @property
    def told(self) -> list[list[Any]]:
        """Of each test that ran: name, process, begin and end, in order of their ends."""
        return [json.loads(line) for line in (self._folder / "told").read_text().splitlines()]

    def of(self, *files: str) -> list[list[Any]]:
        return [each for each in self.told if each[0].partition("::")[0] in files]


def processes(told: list[list[Any]]) -> set[int]:
    return {process for _name, process, _begin, _end in told}


@pytest.mark.parametrize("count", [2, 3])
def test_whole_airflows_run_last_and_alone_and_servers_in_one_process(tmp_path, count):
    suite = Suite(tmp_path, dict.fromkeys([*AIRFLOWS, *SERVERS, *FRAGILE, *OTHERS], WELL))
    assert suite.run("-n", str(count)) == 0, suite.said
    assert len({each[0] for each in suite.told}) == len(suite.told) == 40
    airflows, before = suite.of(*AIRFLOWS), suite.of(*SERVERS, *FRAGILE, *OTHERS)
    assert min(begin for *_, begin, _end in airflows) >= max(end for *_, end in before)
    assert all(len(processes(suite.of(*each))) == 1 for each in (AIRFLOWS, SERVERS, FRAGILE))
    assert processes(suite.of(*SERVERS)) != processes(suite.of(*FRAGILE))
    assert all(len(processes(suite.of(file))) == 1 for file in OTHERS)
    assert len(processes(before)) == count


@pytest.mark.parametrize("files", [AIRFLOWS, (AIRFLOWS[0], OTHERS[0])])
def test_of_few_files_all_are_run(tmp_path, files):
    suite = Suite(tmp_path, dict.fromkeys(files, WELL))
    assert suite.run("-n", "3") == 0, suite.said
    assert len(suite.told) == 4 * len(files)


def test_without_processes_whole_airflows_are_last_too(tmp_path):
    suite = Suite(tmp_path, dict.fromkeys([*AIRFLOWS, *SERVERS, *OTHERS], WELL))
    assert suite.run() == 0, suite.said
    files = [*dict.fromkeys(name.partition("::")[0] for name, *_ in suite.told)]
    assert tuple(files[-2:]) == AIRFLOWS


def test_a_process_that_crashes_ends_the_run_with_the_name_of_its_test(tmp_path):
    files = {**dict.fromkeys([*AIRFLOWS, *OTHERS], WELL), OTHERS[0]: DEADLY}
    suite = Suite(tmp_path, files)
    assert suite.run("-n", "2", "--max-worker-restart", "0") == 1
    assert f"crashed while running '{OTHERS[0]}::test_it[1]'" in suite.said
    assert suite.of(*AIRFLOWS) == []


def test_a_failure_ends_the_run_where_that_is_asked_for(tmp_path):
    files = {**dict.fromkeys([*AIRFLOWS, *OTHERS], WELL), OTHERS[0]: BROKEN}
    suite = Suite(tmp_path, files)
    assert suite.run("-n", "2", "-x") != 0
    assert suite.of(*AIRFLOWS) == []
    assert f"FAILED {OTHERS[0]}::test_it - assert False" in suite.said
