"""How many cores a process takes for its own."""

from __future__ import annotations

import os

import pytest

from mondrian_ops.cores import available_cores


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
    assert available_cores(tmp_path, tmp_path / "own") == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", 8), ("300000", 3)])
def test_so_is_one_of_the_first_version(tmp_path, quota, cores):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota)
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000")
    assert available_cores(tmp_path, tmp_path / "own") == cores


def test_without_control_groups_the_affinity_says_how_many(tmp_path):
    assert available_cores(tmp_path, tmp_path / "own") == 8


@pytest.mark.parametrize(
    ("own", "group", "limit"),
    [
        ("0::/system.slice/airflow.service", "system.slice/airflow.service", "cpu.max"),
        ("0::/system.slice/airflow.service", "system.slice", "cpu.max"),
        ("0::/docker/1a2b", "", "cpu.max"),  # shown as the root
        ("1:name=systemd:/a\n4:cpu,cpuacct:/kube/pod", "cpu,cpuacct/kube", "cpu.cfs_quota_us"),
    ],
)
def test_the_groups_that_it_lies_in_count_too(tmp_path, own, group, limit):
    (tmp_path / "own").write_text(f"{own}\n")
    (tmp_path / group).mkdir(parents=True, exist_ok=True)
    (tmp_path / group / limit).write_text("300000 100000" if limit == "cpu.max" else "300000")
    (tmp_path / group / "cpu.cfs_period_us").write_text("100000")
    assert available_cores(tmp_path, tmp_path / "own") == 3
