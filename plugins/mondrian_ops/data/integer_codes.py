"""Whole numbers that are codes: 1 for married, 2 for single, whose intervals mean nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_FEWEST, _MOST = 3, 20  # values; of two each interval is a set
_DEVIATIONS = 3.0


def look_like_codes(quantiles: pa.Array) -> bool:
    """Whether the values of a column, by `spans.quantiles_of` it, may be codes.

    They are few whole numbers, and how often they occur rises, falls and rises again as they
    ascend, by more than chance: what is counted or measured hardly ever does.
    """
    present = quantiles.drop_null()
    if not pa.types.is_integer(present.type) or not len(present):
        return False
    values, counts = np.unique(present.to_numpy(), return_counts=True)
    if not _FEWEST <= len(values) <= _MOST:
        return False
    apart = _DEVIATIONS * np.sqrt(counts)
    least, most = counts - apart, counts + apart
    before = np.maximum.accumulate(least)[:-2]
    after = np.maximum.accumulate(least[::-1])[::-1][2:]
    return bool((most[1:-1] < np.minimum(before, after)).any())


def note_on_codes(name: str) -> str:
    """A question about such a column."""
    return (
        f"column {name!r}: has few whole numbers, which look like codes, and its intervals join "
        "those that follow one another; if they are codes, give it generalization: set or a "
        "hierarchy, else generalization: interval"
    )
