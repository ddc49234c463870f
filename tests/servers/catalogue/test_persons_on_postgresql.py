"""The persons of a series, with the catalogue in a PostgreSQL."""

from __future__ import annotations

import pytest

from mondrian_ops import pipeline
from mondrian_ops.catalogue import signatures
from mondrian_ops.datasets import nights
from town import POPULATION, PROTECTED, Town

pytestmark = pytest.mark.postgres


def test_persons_come_leave_and_come_back(database, tmp_path, monkeypatch):
    """The attack on all nights compares what it is left with and what the catalogue says."""
    monkeypatch.setattr(signatures, "_AT_ONCE", 20)
    town = Town(tmp_path, **PROTECTED)
    for _, drop in nights(POPULATION):
        report = town.run(drop)
    assert report["series"]["people"]["known_before"] > 500
    verdict = pipeline.verify_series(town.job(0), str(town.job(0).output))
    assert verdict["passed"]
    assert verdict["not_looked_at"] == []
    assert len(verdict["nights"]) == POPULATION.nights
