"""Which job files say that their releases are a series."""

from __future__ import annotations

from pathlib import Path

import pytest

from mondrian_ops.nightly.series import SeriesOfJobs


@pytest.mark.parametrize(
    ("content", "is_series"),
    [
        ("series: {hold_nights: 2}", True),
        ("series: {}", True),
        ("series: null", False),
        ("k: 5", False),
        ("k: [", False),
    ],
)
def test_a_job_with_any_series_is_one(tmp_path: Path, content: str, is_series: bool) -> None:
    (tmp_path / "people.yaml").write_text(content)
    assert SeriesOfJobs(tmp_path).has("people") is is_series
