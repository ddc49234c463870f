"""The classes of followed persons: who forms them, and that no other job imports how."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import mondrian_ops
from mondrian_cases import anonymizer_of
from mondrian_ops.data.pool import SIGNATURE

MODULES = (
    "cut.anonymizer", "engines.fragment", "engines.spark", "pipeline.wrapping_up", "pipeline.api",
    "series.attack", "series.commit", "series.evidence", "series.gathering", "series.history",
)  # fmt: skip


def test_a_series_that_follows_nobody_imports_none_of_it() -> None:
    code = (
        f"import sys; [__import__('mondrian_ops.' + name) for name in {MODULES}];"
        "sys.exit('mondrian_ops.series.intersection' in sys.modules)"
    )
    plugins = Path(mondrian_ops.__file__).resolve().parents[1]
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(plugins)}
    )


def test_followed_persons_never_get_other_classes() -> None:
    anonymizer, table = anonymizer_of(["interval"], [[1, 2]], [["a", "b"]], {"k": 2, "l": 2})
    followed = table.append_column(SIGNATURE, pa.array([b""] * len(table)))
    with pytest.raises(RuntimeError, match="nothing forms their classes"):
        anonymizer.release(followed)
