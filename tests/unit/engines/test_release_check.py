"""A cluster says of a release what one process says of it, whatever became of its parts."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drawn_releases import CRITERIA, job_of, releases
from engines.in_process import InProcessEngine
from hypothesis_profiles import examples
from staged_checks import DAMAGES, StagedRelease, outcome


@examples(1000)
@given(
    st.data(),
    releases(),
    st.sampled_from(CRITERIA),
    st.booleans(),
    st.sampled_from([*["none"] * 9, *DAMAGES]),
)
def test_a_cluster_says_what_one_process_says(
    data: Any, parts: Any, criteria: Any, has_persons: bool, damage: str
) -> None:
    numbers = st.integers(0, len(parts) - 1)
    buckets = data.draw(st.sampled_from([1, 2, 3, 7, 1024]), "buckets")
    with tempfile.TemporaryDirectory() as folder:
        release = StagedRelease(Path(folder), job_of(parts, criteria, has_persons), parts)
        DAMAGES[damage](release, data.draw(numbers, "one"), data.draw(numbers, "other"))
        expected = outcome(release.checked_here)
        assert outcome(lambda: release.checked_by(InProcessEngine(), buckets=buckets)) == expected
