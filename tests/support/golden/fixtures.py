"""The folder that the jobs of the golden set run in."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def golden_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources, and the releases of the jobs that have run."""
    from golden.sources import make_sources  # late: most tests need neither these nor numpy

    folder = tmp_path_factory.mktemp("golden")
    make_sources(folder)
    (folder / "out").mkdir()  # as the first release leaves it
    return folder


@pytest.fixture
def golden_folder(golden_sources: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That folder, as the working directory: paths of jobs, and so of errors, are relative."""
    monkeypatch.chdir(golden_sources)
    return golden_sources
