"""A process that has imported Airflow and nothing of this project: programs are forked from it.

Airflow is imported once for all of them, which takes seconds; what they import, nobody else has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_PROGRAM = """
import json, os, sys
import airflow.sdk
# What Airflow itself has imported when it parses or runs a task: not ours to answer for.
import airflow.providers.standard.operators.python, airflow.sdk.definitions.mappedoperator
import airflow.sdk.configuration
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics import stats_utils

for line in sys.stdin:
    if child := os.fork():
        print(os.waitpid(child, 0)[1], flush=True)
        continue
    asked = json.loads(line)
    with open(asked["output"], "w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = ["-c", *asked["arguments"]]
    exec(compile(asked["program"], "program", "exec"), {"__name__": "__main__"})
    sys.exit()
"""


class AirflowProcess:
    """Runs programs; each begins as one does that has just imported Airflow."""

    def __init__(self, folder: Path) -> None:
        self._output = folder / "output"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str, *arguments: str, **settings: str) -> list[str]:
        """The lines that a program prints, which must end well."""
        assert self._process.stdin and self._process.stdout
        asked = {
            "program": program,
            "arguments": arguments,
            "environment": {**os.environ, "NO_PROXY": "127.0.0.1", **settings},
            "output": str(self._output),
        }
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        status = self._process.stdout.readline().strip()
        printed = self._output.read_text("utf-8")
        assert status == "0", printed
        return printed.splitlines()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@pytest.fixture(scope="session")
def airflow_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowProcess]:
    """The process, which the first test that needs it starts."""
    process = AirflowProcess(tmp_path_factory.mktemp("airflow_process"))
    yield process
    process.close()
