"""What the gauges of the soak show of a process, this one."""

from __future__ import annotations

import mmap
from pathlib import Path

import psutil

from soak.gauges import Held, growth, held


def test_a_file_that_stays_mapped_is_a_mapping_and_no_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(16 << 20))
    before = held(psutil.Process())
    kept = []
    for _ in range(40):
        with (tmp_path / "file").open("rb") as file:
            kept.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        assert kept[-1][::4096].count(0) == 4096  # each page was read
    after = held(psutil.Process())
    assert after.memory - before.memory < 16
    assert after.mappings - before.mappings >= 40


def test_growth_is_told_from_what_comes_and_goes() -> None:
    readings = [Held(100 + night % 2, 9, 7, 300 + night) for night in range(80)]
    grown = growth(readings)
    assert abs(grown.memory) < 0.2
    assert (round(grown.files, 6), round(grown.threads, 6)) == (0, 0)
    assert round(grown.mappings, 6) == 59
