"""What all charts share."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.report.charts import ticks


@given(st.floats(1e-6, 1.0))
def test_levels_of_an_axis_are_few_and_hold_what_is_drawn(most: float) -> None:
    found = ticks(most)
    assert found[0] == 0
    assert 4 <= len(found) <= 7
    assert found[-2] < most <= found[-1] * (1 + 1e-9)
