"""A few nights of a series at random; ``tests/soak/test_nights_of_a_series.py`` has many."""

from __future__ import annotations

from pathlib import Path

import pytest

from series_nights import random_nights


@pytest.mark.servers  # which it needs not, but many processes
def test_every_row_ends_in_one_place(tmp_path: Path) -> None:
    with random_nights(tmp_path, "rows wait", seed=1) as nights:
        nights.go(6)
        nights.check_all()
        assert nights.left() == []
        assert nights.struck["partition killed"] + nights.struck["wrap_up killed"] > 0
