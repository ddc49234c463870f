"""Sets as lists: a reader tells values, hidden and missing apart without any text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mondrian_ops.generalize.attributes import Classes
from mondrian_ops.generalize.set_attribute import SetAttribute

VALUES = ["*", "Farming, fishing", "Sales", "{a}"]


def lists_of(rows: list[str | None], *sizes: int) -> list[list[str] | None]:
    """What classes of so many ``rows`` each publish."""
    attribute = SetAttribute("q", pa.string(), pa.array(VALUES), True)
    encoded = attribute.encode(pa.array(rows, pa.string()))
    starts = np.cumsum([0, *sizes[:-1]]).astype(np.int64)
    classes = Classes(np.arange(len(rows), dtype=np.int32), starts)
    column = attribute.publish(encoded, classes).columns["q"]
    lists: list[list[str] | None] = column.dictionary.take(column.indices).to_pylist()
    return lists


def test_a_set_is_the_list_of_its_values_in_their_order() -> None:
    rows = ["Sales", "Farming, fishing", "{a}", "{a}", "*", "*"]
    assert lists_of(rows, 2, 2, 2) == [["Farming, fishing", "Sales"], ["{a}"], ["*"]]


def test_what_is_hidden_is_an_empty_list_and_what_is_missing_none() -> None:
    assert lists_of(["Sales", None, None, None, "Sales", "*"], 2, 2, 2) == [
        [], None, ["*", "Sales"],
    ]  # fmt: skip
