"""Tables of people that nobody has described, and their columns as an inspection has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mondrian_ops.inspection.columns import Column

ROWS = 600


def column(values: Sequence[Any] | pa.Array, name: str = "x") -> Column:
    """A column of an inspection, of some values."""
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return Column.of(name, pa.chunked_array([array]), array.type)


def patients(rows: int = ROWS, seed: int = 7) -> pa.Table:
    """People of a hospital: a column of each role, under names that say so or not."""
    draw = np.random.default_rng(seed)
    numbers = np.arange(rows)
    days = draw.integers(0, 700, rows)
    return pa.table(
        {
            "MRN": numbers + 40_000,
            "last_name": [f"Smith{n % 211}" for n in numbers],
            "contact": [f"p{n}@mail.example" for n in numbers],
            "V1": draw.choice(["male", "female"], rows),
            "birthDate": pa.array(days * 20 - 10_000, pa.int32()).cast(pa.date32()),
            "zip": draw.integers(10_000, 10_060, rows),
            "pain": draw.choice(["low", "medium", "high"], rows),
            "diagnosis": draw.choice(["flu", "cold", "asthma", "gout"], rows),
            "salary": draw.integers(20_000, 90_000, rows),
            "remark": [f"came on day {n} with a cough of some days" for n in numbers],
            "flag": ["yes"] * rows,
        }
    )
