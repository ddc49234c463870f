"""The folder that the jobs of the golden set run in."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def golden_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sources, where the jobs leave their releases."""
    from golden.sources import make_sources  # late: most tests need neither these nor numpy

    folder = tmp_path_factory.mktemp("golden")
    make_sources(folder)
    (folder / "out").mkdir()  # as the first release leaves it, whichever job is the first
    return folder


@pytest.fixture
def golden_folder(golden_sources: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same as the working directory, so that paths in jobs and errors are relative."""
    monkeypatch.chdir(golden_sources)
    return golden_sources
