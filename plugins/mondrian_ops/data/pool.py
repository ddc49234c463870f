"""The columns that a series adds to the rows of a night, beside those of the drop.

A night of a series anonymizes a pool: the rows of its drop, and the rows that waited for it. Its
hidden columns are in working files and in the files of waiting rows only; they are never published.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def shown_by_night(waits: Iterable[Sequence[int]], k: int) -> list[list[int]]:
    """Pairs of a night and the number of its rows that wait, as a report shows them.

    A night with fewer than k rows is added to the next night, the last one to the night before it.
    If it were rounded instead, a reader could subtract the other nights from the number of all
    rows. ``waits``: such pairs, the oldest night first.
    """
    shown: list[list[int]] = []
    for origin, rows in waits:
        if shown and shown[-1][1] < k:
            shown[-1][1] += rows
        else:
            shown.append([origin, rows])
    if len(shown) > 1 and shown[-1][1] < k:
        _, rows = shown.pop()
        shown[-1][1] += rows
    return [[origin, as_shown(rows, k)] for origin, rows in shown]
