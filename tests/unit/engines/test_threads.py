"""How many cores a process takes for its own."""

from __future__ import annotations

import os

import pytest

from mondrian_ops.engines.threads import available_cores


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(8)), raising=False)


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 8), ("200000 100000", 2), ("250000 100000", 2), ("50000 100000", 1),
     ("9900000 100000", 8), ("-1 100000", 8), ("", 8), ("1 0", 8)],
)  # fmt: skip
def test_a_quota_of_the_control_group_is_kept(tmp_path, quota, cores):
    (tmp_path / "cpu.max").write_text(quota)
    assert available_cores(tmp_path) == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", 8), ("300000", 3)])
def test_so_is_one_of_the_first_version(tmp_path, quota, cores):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota)
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000")
    assert available_cores(tmp_path) == cores


def test_without_control_groups_the_affinity_says_how_many(tmp_path):
    assert available_cores(tmp_path) == 8
