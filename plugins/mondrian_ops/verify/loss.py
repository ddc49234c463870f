"""How much a release loses, measured on what it publishes.

The metrics are those of the papers (De Capitani di Vimercati et al., equations 3 and 4; Iyengar
2002). `release_labels` says how much each label loses; here labels are weighed by their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.verify.native.value_counts import sum_by_code
from mondrian_ops.verify.published_labels import PublishedLabels

Ints = NDArray[np.int64]

METRICS = ("NCP", "LM", "NCP_robust", "information")
"""What is summed over rows of `labels.Losses`, by the names in a report."""

LOSS_STEPS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Upper ends of the loss ranges, as shares of a column's range, by which a report counts rows."""


def columns_of(name: str, columns: Sequence[str] | pa.Schema) -> list[str]:
    """The columns that publish a quasi-identifier: its own, or its two bounds and what is hidden.

    Releases of older versions have the two bounds only, and their source may have a column of the
    third's name: in a schema it is the third only if it has truth values.
    """
    names = columns.names if isinstance(columns, pa.Schema) else columns
    if name in names:
        return [name]
    *ends, hidden = f"{name}_min", f"{name}_max", f"{name}_hidden"
    if hidden not in names:
        return ends
    if isinstance(columns, pa.Schema) and not pa.types.is_boolean(columns.field(hidden).type):
        return ends
    return [*ends, hidden]


def losses_of_part(
    labels: Mapping[str, PublishedLabels],
    values: Mapping[str, pa.Array],
    codes: Mapping[str, NDArray[Any]],
    rows: Ints,
) -> dict[str, dict[str, Any]]:
    """What the rows of a part lose, by quasi-identifier.

    ``values`` by column: its distinct values; ``codes`` by column: (classes,) the value of each
    class, counted from 1, 0 for the missing one. ``rows`` (classes,) of each class.

    Returns ``{name: {*METRICS, "rows_exact", "rows_star", "rows_by_loss"}}``, the losses as sums
    over the rows.
    """
    measured = {}
    for name, of_column in labels.items():
        columns = columns_of(name, list(values))
        keys = codes[columns[0]]
        for column in columns[1:]:
            keys = keys.astype(np.int64) * (len(values[column]) + 1) + codes[column]
        used, of_label = _weights(keys, rows)
        arrays = []
        for column in reversed(columns):
            used, code = np.divmod(used, len(values[column]) + 1)
            arrays.append(values[column].take(pa.array(code - 1, mask=code == 0)))
        measured[name] = _weighed(of_column, arrays[::-1], of_label)
    return measured


def nothing_lost() -> dict[str, Any]:
    """The losses of a quasi-identifier in no rows."""
    figures = {**dict.fromkeys(METRICS, 0.0), "rows_exact": 0, "rows_star": 0}
    return {**figures, "rows_by_loss": [[most, 0] for most in LOSS_STEPS]}


def _weights(keys: NDArray[Any], rows: Ints) -> tuple[Ints, Ints]:
    """The distinct keys, and how many rows have each."""
    if keys.max(initial=0) <= len(keys):
        codes = keys if keys.dtype.kind == "u" else keys.astype(np.uint32)
        of_key = sum_by_code(codes, rows, int(keys.max(initial=0)) + 1)
        used = np.flatnonzero(of_key)
        return used, of_key[used]
    used, place = np.unique(keys, return_inverse=True)
    return used, sum_by_code(place.astype(np.uint32), rows, len(used))


def _weighed(labels: PublishedLabels, arrays: Sequence[pa.Array], rows: Ints) -> dict[str, Any]:
    lost = labels.losses(arrays)
    star, exact = lost.star, lost.exact
    metrics = [lost.ncp, lost.lm, lost.robust, lost.information]
    general = ~(exact | star)
    return {
        **{
            metric: float(np.sum(rows * each))
            for metric, each in zip(METRICS, metrics, strict=True)
        },
        "rows_exact": int(rows[exact].sum()),
        "rows_star": int(rows[star].sum()),
        "rows_by_loss": _rows_by_loss(lost.ncp[general], rows[general]),
    }


def _rows_by_loss(lost: NDArray[np.float64], rows: Ints) -> list[list[float]]:
    """Pairs (loss, rows): the rows that lose at most so much and more than the pair before says."""
    # A loss is a sum of rounded shares: one tenth may be a little more.
    hundredths = np.ceil(lost * 100 - 1e-7).astype(np.int64)
    steps = np.searchsorted([round(100 * most) for most in LOSS_STEPS[:-1]], hundredths)
    counts = np.bincount(steps, weights=rows, minlength=len(LOSS_STEPS))
    return [[most, int(count)] for most, count in zip(LOSS_STEPS, counts, strict=True)]
