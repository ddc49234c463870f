"""Many nights in one process, to one output: memory, files and threads stay, and so does the disk.

In Airflow each task is a process of its own, which hides what one would gather. Here none ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local_airflow import CHECKOUT
from soak import outside
from soak.disk import State, check_catalogue, state
from soak.drops import NIGHTS, Drop, drops, job_of
from soak.resource_probes import FLAT, growth, print_usage
from soak.worker import Ended, worker

pytestmark = pytest.mark.soak

DROPS = [drop for drop in drops(NIGHTS + 20) if drop.kind != "no drop"][:NIGHTS]
"""Airflow asks for nothing where there is no drop."""


@dataclass(frozen=True)
class Night:
    """What was seen when it was over."""

    drop: Drop
    ended: Ended
    seen: outside.Seen | None
    before: State
    after: State
    left: list[str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nights")


@pytest.fixture(scope="module")
def nights(place: Path) -> list[Night]:
    """All of them, from the first to the last."""
    for name in ("tmp", "out", "landing"):
        (place / name).mkdir()
    settings = {
        "AIRFLOW__MONDRIAN_OPS__ALLOWED_INPUTS": str(place),
        "AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS": str(place / "out"),
        "AIRFLOW__MONDRIAN_OPS__CATALOGUE": str(place / "catalogue" / "catalogue.db"),
        "MONDRIAN_OPS_HIERARCHIES": str(CHECKOUT / "include" / "hierarchies"),
        "TMPDIR": str(place / "tmp"),
    }
    with worker(settings) as do:
        return [_done(place, drop, do) for drop in DROPS]


def _done(place: Path, drop: Drop, do: Callable[[str, Any], Ended]) -> Night:
    files = drop.write(place / "landing")
    output = place / "out" / "people"
    before = state(output)
    ended = do(str(drop.day), job_of(files, output))
    seen = None if ended.refused else outside.check(output, files)
    for path in files:
        path.unlink()
    left = [path for name in ("tmp", "out", "landing") for path in (place / name).iterdir()]
    return Night(drop, ended, seen, before, state(output), [str(path) for path in left])


def test_a_night_ends_as_its_drop_demands(nights: list[Night]) -> None:
    for night in nights:
        assert night.drop.says in night.ended.refused, night.drop
        assert bool(night.ended.refused) != night.drop.good, (night.drop, night.ended.refused)
        if night.seen is not None:
            assert night.seen.rows == night.drop.rows


def test_the_last_good_release_stands_until_the_next(nights: list[Night]) -> None:
    for night in nights:
        assert (night.before == night.after) != night.drop.good, night.drop


def test_a_night_leaves_its_release_and_nothing_else(nights: list[Night], place: Path) -> None:
    for night in nights:
        assert night.left in ([], [str(place / "out" / "people")]), night.drop


def test_the_catalogue_grows_by_a_report_a_night(nights: list[Night], place: Path) -> None:
    path = place / "catalogue" / "catalogue.db"
    check_catalogue(path, sum(night.drop.good for night in nights), len(nights))


def test_the_process_gathers_nothing(nights: list[Night]) -> None:
    readings = [night.ended.held for night in nights]
    grown = growth(readings)
    print_usage(f"one process, {len(nights)} nights", {"worker": readings})
    assert grown.memory < FLAT.memory, grown
    assert grown.files < FLAT.files, grown
    assert grown.threads < FLAT.threads, grown
    assert grown.mappings < FLAT.mappings, grown


def test_the_process_keeps_nothing_of_a_night(nights: list[Night]) -> None:
    """Memory that allocators hold on to comes and goes; what is in use does not grow."""
    warm, last = nights[len(nights) // 4].ended, nights[-1].ended
    assert last.objects - warm.objects < 10 * len(nights), (warm, last)
    assert last.arrow - warm.arrow < 1 << 20, (warm, last)
