"""What is remembered of the rows of a node."""

from __future__ import annotations

import pytest

from mondrian_cases import anonymizer_of, classes_of
from mondrian_ops.algorithms.mondrian import Cut
from mondrian_ops.core.kernels import model
from mondrian_tables import contents, skewed_table


@pytest.mark.parametrize("group_rows", [0, 800])
def test_what_is_remembered_saves_time_and_changes_nothing(group_rows, monkeypatch):
    kinds, columns = skewed_table(seed=7, rows=800)
    anonymizer, data = anonymizer_of(kinds, columns, [], {"k": 4}, "gain")
    cut = Cut("gain", 800, group_rows, 800)
    remembering = contents(classes_of(anonymizer, data, cut), data, kinds)
    monkeypatch.setattr(model, "KNOWN", 1)  # the next one takes the only place
    assert contents(classes_of(anonymizer, data, cut), data, kinds) == remembering
