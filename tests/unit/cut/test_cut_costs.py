"""The costs of cutting are figures of one table, which a script fits to what it measures."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import cut_costs as script
from mondrian_ops.cut.cut_costs import COSTS, CutCosts


def test_each_attribute_costs_by_its_values() -> None:
    narrow, wide = (COSTS.level_seconds(np.array([values])) for values in (1.0, 1e9))
    assert narrow == pytest.approx(COSTS.level_s * (1 + 6 / 101))
    assert wide == pytest.approx(COSTS.level_s * 7)
    assert COSTS.level_seconds(np.array([1.0, 1.0])) == pytest.approx(4 * narrow)
    assert COSTS.slower(np.array([1000, 1000])) == pytest.approx(1 + COSTS.many / 2)


def test_a_power_of_k_is_found_again() -> None:
    assert script.power_of_k([(k, 12 * k**-0.45) for k in (5, 10, 20)]) == pytest.approx(
        (12, -0.45)
    )
    assert script.power_of_k([(5, 2.0), (5, 2.0)]) == pytest.approx((2, 0))


def test_the_fit_finds_costs_that_are_charged(monkeypatch) -> None:
    """Where cutting takes exactly the seconds of the table, the table is what is fitted."""

    class Charged(script.Case):  # type: ignore[misc,name-defined]
        """Cutting takes what the figures say, whatever the clock says."""

        def seconds(self, rollout_rows=0, group_rows=0, candidates=3, joined=0):
            level, some = self.level * COSTS.level_s, (1 + self.slower) / 2
            spent = self.coded.rows.codes.size * COSTS.greedy_s
            times = rollout_rows / self.k
            if (times, candidates, joined) == (6, 1, 2):
                return spent + level * some * COSTS.few_joined
            spent += level * COSTS.smaller.get(times, 1.0 if times else 0.0)
            groups = some * COSTS.groups * self.k**COSTS.groups_by_k
            if group_rows:
                spent += level * groups * COSTS.candidates[candidates]
            if times > script.SMALL:
                spent += level * self.slower * COSTS.doubling * self.k**COSTS.doubling_by_k
            if joined:
                lost = script.lost(self) * self.k**COSTS.groups_by_k
                spent += level * some * COSTS.joined[joined] * lost
            return spent

    monkeypatch.setattr(script, "Case", Charged)
    found = script.fitted(list(script.cases(500, [4, 8])))
    for name in (each.name for each in fields(CutCosts)):
        assert getattr(found, name) == pytest.approx(getattr(COSTS, name), rel=1e-6), name
