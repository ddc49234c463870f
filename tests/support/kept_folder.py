"""A folder that takes long to fill: filled once, and brought back for each test as it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mondrian_ops import catalogue


class KeptFolder:
    """What was made in a folder below ``root``, and the catalogue of it, which lies there too."""

    def __init__(self, root: Path, make: Callable[[Path], object]) -> None:
        self._folder, self._copy = root / "here", root / "copy"
        self._folder.mkdir()
        with pytest.MonkeyPatch.context() as patched:
            self._use_its_catalogue(patched)
            make(self._folder)
        catalogue.use(None)
        shutil.copytree(self._folder, self._copy)

    def brought_back(self, patched: pytest.MonkeyPatch) -> Path:
        """The folder, where it always was; until ``patched`` is undone its catalogue is used."""
        shutil.rmtree(self._folder)
        shutil.copytree(self._copy, self._folder)
        self._use_its_catalogue(patched)
        return self._folder

    def _use_its_catalogue(self, patched: pytest.MonkeyPatch) -> None:
        for name in ("MONDRIAN_OPS_CATALOGUE", "AIRFLOW__MONDRIAN_OPS__CATALOGUE"):
            patched.setenv(name, str(self._folder / ".catalogue.db"))
            patched.setenv(f"{name}_KEY", str(self._folder / ".catalogue.key"))
