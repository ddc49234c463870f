"""A test whose need is not met is skipped with the reason, and fails where CI requires it."""

from __future__ import annotations

from pathlib import Path

import pytest

import shared_data
from servers.needs import NEEDS, REQUIRED, needs, required


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine on whose PATH there is nothing, and which requires nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(REQUIRED, raising=False)


def test_a_need_that_is_not_met_skips_and_says_why(bare):
    with pytest.raises(pytest.skip.Exception, match="needs redis: no `redis-server` on the PATH"):
        needs("redis")


@pytest.mark.parametrize("asked", ["all", "redis", "java, redis"])
def test_a_need_that_is_required_fails(bare, monkeypatch, asked):
    monkeypatch.setenv(REQUIRED, asked)
    with pytest.raises(pytest.fail.Exception, match="redis is required"):
        needs("redis")


def test_all_means_every_need(bare, monkeypatch):
    monkeypatch.setenv(REQUIRED, "all")
    assert required() == NEEDS.keys()


def test_real_data_is_missing_only_where_nobody_has_put_any(monkeypatch, tmp_path):
    assert (shared_data.SHARED.parent / Path(__file__).parents[2].name / "pyproject.toml").exists()
    monkeypatch.setattr(shared_data, "SHARED", tmp_path / "shared")
    with pytest.raises(pytest.skip.Exception, match=r"needs \.\./shared/data/adult\.csv"):
        shared_data.shared_data("adult.csv")
    (tmp_path / "shared" / "data").mkdir(parents=True)
    with pytest.raises(pytest.fail.Exception, match=r"has no data/adult\.csv"):
        shared_data.shared_data("adult.csv")


def test_a_need_that_no_test_knows_is_refused(bare, monkeypatch):
    monkeypatch.setenv(REQUIRED, "rediss")
    with pytest.raises(KeyError, match="'rediss' is none of all, java"):
        needs("redis")
