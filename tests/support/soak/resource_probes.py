"""How much memory, how many files and threads processes use, read again and again: does it grow?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import psutil

from local_airflow import LocalAirflow

_WARM_UP = 0.25
"""The share of the nights that are not looked at: caches fill, and the allocator's pools."""


@dataclass(frozen=True)
class Usage:
    """What a process has for itself: memory in MiB that it has written to, and so on.

    ``mappings`` of memory: a file that stays mapped is no memory that it has written to.
    """

    memory: float
    files: int
    threads: int
    mappings: int


FLAT = Usage(memory=8, files=0.5, threads=0.5, mappings=20)
"""What a process may gather from the end of the warm-up to the last night."""


def usage_of(process: psutil.Process) -> Usage:
    """What it holds now; raises psutil.NoSuchProcess.

    Pages of libraries are not counted: they are its own or shared as other processes come and go.
    """
    maps = process.memory_maps(grouped=False)
    written = sum(each.private_dirty for each in maps)
    return Usage(written / 2**20, process.num_fds(), process.num_threads(), len(maps))


def long_lived(airflow: LocalAirflow) -> dict[str, psutil.Process]:
    """What lives as long as an Airflow: its components, and what tasks are forked from."""
    found = airflow.processes()
    workers = found["scheduler"].children()
    return found | {f"worker {number}": each for number, each in enumerate(workers)}


def growth(readings: Sequence[Usage]) -> Usage:
    """How much each grows from the end of the warm-up to the last, on the line that fits best."""
    kept = np.array([astuple(each) for each in readings[round(len(readings) * _WARM_UP) :]])
    slopes = np.polyfit(np.arange(len(kept)), kept, 1)[0]
    return Usage(*(slopes * (len(kept) - 1)))


def print_usage(what: str, readings: Mapping[str, Sequence[Usage]]) -> None:
    """Print what each process held, for people who run the soak with ``-rP``."""
    for name, each in readings.items():
        grown = growth(each)
        print(  # noqa: T201 - what pytest -rP shows
            f"{what}: {name}: {each[0].memory:.0f} MiB at first, {max(h.memory for h in each):.0f} "
            f"at most, {each[-1].memory:.0f} at last, {grown.memory:+.1f} since the warm-up; "
            f"{each[-1].files} files ({grown.files:+.1f}), "
            f"{each[-1].threads} threads ({grown.threads:+.1f}), "
            f"{each[0].mappings} mappings at first, {max(h.mappings for h in each)} at most, "
            f"{each[-1].mappings} at last ({grown.mappings:+.1f})"
        )
