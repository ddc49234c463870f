"""Spark says of a release what one process says of it, whatever became of its parts."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from drawn_releases import CRITERIA, job_of, releases
from mondrian_ops.engines.spark import SparkEngine
from staged_checks import DAMAGES, StagedRelease, outcome

pytestmark = pytest.mark.java


def test_spark_says_what_one_process_says(spark_engine: SparkEngine) -> None:
    @settings(max_examples=12, phases=[Phase.generate], deadline=None)
    @given(
        st.data(),
        releases(),
        st.sampled_from(CRITERIA),
        st.booleans(),
        st.sampled_from(["none", *DAMAGES]),
    )
    def holds(data: Any, parts: Any, criteria: Any, has_persons: bool, damage: str) -> None:
        numbers = st.integers(0, len(parts) - 1)
        with tempfile.TemporaryDirectory() as folder:
            release = StagedRelease(Path(folder), job_of(parts, criteria, has_persons), parts)
            DAMAGES[damage](release, data.draw(numbers, "one"), data.draw(numbers, "other"))
            expected = outcome(release.checked_here)
            assert outcome(lambda: release.checked_by(spark_engine)) == expected

    holds()
