"""The columns that a series adds to the rows of a night, beside those of the drop.

A night of a series anonymizes a pool: the rows of its drop, and the rows that waited for it. Its
hidden columns are in working files and in the files of waiting rows only; they are never published.
"""

from __future__ import annotations

NIGHT = "mondrian_ops_night"
"""int32: the number of the night in which the row first came."""

SIGNATURE = "mondrian_ops_signature"
"""What the releases before have told of the row's person (``series.protect: intersection``)."""

HIDDEN = (NIGHT, SIGNATURE)


def as_shown(waits: int, k: int) -> int:
    """How many rows wait, as a report or a page shows it: a count below k as 0 or k, if nearer.

    Who knows who was delivered would learn from a small one who had no company.
    """
    return waits if waits >= k else k * (2 * waits >= k)
