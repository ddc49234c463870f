"""Coded rows of people, with what the releases before have told of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mondrian_ops.cut.algorithms.mondrian import CodedRows
from mondrian_ops.cut.criteria import DistinctDiversity, KAnonymity, Privacy
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.generalize.encoded import Encoded
from mondrian_ops.series.intersection.invariance import NEW, History


def coded_of(codes, values, *, k, l, kinds=("interval", "set", "tree")):  # noqa: E741
    """Rows of codes 0 to 19, each its own value; 0 is the missing one. Values: -1 is missing."""
    size = 20
    values = np.where(values < 0, values.max() + 1, values)
    line = np.arange(size, dtype=float)
    encoded = [
        Encoded(
            codes=column.astype(np.uint8),
            size=size,
            kind=kind,
            low=line,
            high=line,
            step=line / (size - 1) if kind == "set" else np.ones(size),
            span=float(size),
            present=float(size),
        )
        for column, kind in zip(codes, kinds, strict=True)
    ]
    counts = np.bincount(values, minlength=1)
    domain = SensitiveDomain("s", pa.array([f"{i:03d}" for i in range(len(counts))]), counts)
    privacy = Privacy(KAnonymity(k), (DistinctDiversity("s", l),))
    return CodedRows.of(encoded, [values.astype(np.int32)], [domain], privacy)


def history_of(values, common=None, class_of=None):
    count = len(values)
    return History(
        values.astype(np.int32),
        np.full((count, 1), ~np.uint64(0)) if common is None else common,
        np.full(count, NEW, np.int32) if class_of is None else class_of.astype(np.int32),
    )
