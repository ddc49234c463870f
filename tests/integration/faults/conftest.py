"""The run that is disturbed, and the process that does its steps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults.process import Processes
from faults.run_harness import Harness


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    running = Processes()
    yield running
    running.close()


@pytest.fixture(scope="session")
def scattered(processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """A run that replaces a release."""
    return Harness(tmp_path_factory.mktemp("scattered"), processes, "scatter", replaces=True)


@pytest.fixture(scope="session")
def pushed_down(processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """A run that is the first of its output."""
    return Harness(tmp_path_factory.mktemp("pushed"), processes, "pushdown", replaces=False)
