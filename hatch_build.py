"""Compiles the kernels when a wheel is built; an sdist has their sources."""

from __future__ import annotations

import os
import runpy
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGET_VARIABLE = "MONDRIAN_OPS_TARGET"
"""Another machine that the wheel is for, as zig names it; `make wheels` sets it."""

_REQUIREMENTS = "requirements-build.txt"


class KernelsHook(BuildHookInterface[Any]):
    """Puts the compiled kernels into the wheel, and its platform into the wheel's name."""

    def dependencies(self) -> list[str]:
        """zig, where there is no other compiler, or the wheel is for another machine."""
        builder = self._builder()
        try:
            if not os.environ.get(TARGET_VARIABLE):
                builder.compiler()
                return []
        except builder.CompilerError:
            pass
        lines = Path(self.root, _REQUIREMENTS).read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line and not line.startswith("#")]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile: beside the sources for an editable install, else for the wheel only."""
        builder = self._builder()
        if version == "editable":
            builder.build()
            return
        target = os.environ.get(TARGET_VARIABLE) or None
        self._folder = tempfile.mkdtemp()
        made = builder.build(Path(self._folder, builder.path(target).name), target=target)
        build_data["force_include"][str(made)] = f"mondrian_ops/native/{made.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{builder.platform_tag(target)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled: it is in the wheel."""
        if version != "editable":
            shutil.rmtree(self._folder)

    def _builder(self) -> SimpleNamespace:
        """:mod:`mondrian_ops.native.build`, which cannot be imported before it is installed."""
        return SimpleNamespace(
            **runpy.run_path(f"{self.root}/plugins/mondrian_ops/native/build.py")
        )
