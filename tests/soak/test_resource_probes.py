"""What the probes of the soak show of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from soak.resource_probes import Usage, growth

# In a process of its own: what other tests have left in this one goes when it likes to.
MAPPED = """
import mmap, sys
from pathlib import Path
import psutil
from soak.resource_probes import usage_of

path = Path(sys.argv[1])
path.write_bytes(bytes(16 << 20))
before = usage_of(psutil.Process())
kept = []
for _ in range(40):
    with path.open("rb") as file:
        kept.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    assert kept[-1][::4096].count(0) == 4096  # each page was read
after = usage_of(psutil.Process())
print(after.memory - before.memory, after.mappings - before.mappings)
"""


def test_a_file_that_stays_mapped_is_a_mapping_and_no_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAPPED, str(tmp_path / "file")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    memory, mappings = map(float, told.split())
    assert memory < 16
    assert mappings >= 40


def test_growth_is_told_from_what_comes_and_goes() -> None:
    readings = [Usage(100 + night % 2, 9, 7, 300 + night) for night in range(80)]
    grown = growth(readings)
    assert abs(grown.memory) < 0.2
    assert (round(grown.files, 6), round(grown.threads, 6)) == (0, 0)
    assert round(grown.mappings, 6) == 59
