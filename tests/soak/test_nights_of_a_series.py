"""Two hundred nights of a series with kills, repetitions, late drops and runs that overtake."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from series_nights import KINDS_OF_SERIES, random_nights
from soak.drops import NIGHTS

pytestmark = pytest.mark.soak

DISTURBED = {
    "partition killed",
    "anonymize_fragment killed",
    "wrap_up killed",
    "clean_up killed",
    "given up",
    "late",
    "overtaken",
    "run again",
    "comes after others",
}


@pytest.mark.parametrize("kind", KINDS_OF_SERIES)
def test_every_row_ends_in_one_place(tmp_path: Path, kind: str) -> None:
    with random_nights(tmp_path, kind, seed=0) as nights:
        nights.go(NIGHTS)
        nights.check_all()
        sys.stdout.write(f"\n{kind}: {NIGHTS} nights, {nights.seen().summary}\n")
        sys.stdout.write(f"{dict(nights.struck)}\n")
        assert nights.left() == []
        if "intersected" in kind or "balanced" in kind:
            assert min(map(len, nights.values_left().values())) >= 2
        assert nights.struck.keys() >= DISTURBED
