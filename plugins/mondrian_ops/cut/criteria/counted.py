"""Criteria of installed packages, which are asked with the counts of values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.cut.criteria.base import Bools, CutCriterion, Ints
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.errors import JobError, values_withheld
from mondrian_ops.generalize.attributes import Classes
from mondrian_ops.job.criterion import Counts, Criterion
from mondrian_ops.late_methods import dataclass

_MOST_COUNTS = 1 << 22  # of a table of classes by codes


@dataclass(frozen=True)
class CountedCriterion(CutCriterion):
    """A criterion that the kernels do not know: classes that fail are joined after the cutting."""

    asked: Criterion

    @property
    def min_class_size(self) -> int:
        return self.asked.min_class_size

    def holds(self, counts: Ints, domain: SensitiveDomain) -> Bools:
        of_value = int(domain.missing)  # its first column
        occurs = np.flatnonzero(domain.counts[of_value:])
        values = pa.concat_arrays([pa.nulls(1, domain.values.type), domain.values.take(occurs)])
        whole, classes = (
            np.concatenate(
                [each[..., :of_value].sum(-1, keepdims=True), each[..., of_value + occurs]], -1
            )
            for each in (domain.counts, counts)
        )
        with values_withheld():
            holds = np.asarray(self.asked.holds(Counts(values, whole, classes)))
        if holds.shape != (len(counts),) or holds.dtype != np.bool_:
            raise JobError(
                f"{self}: holds must return a truth value for each of {len(counts)} classes, "
                f"(classes,) bool, not {holds.shape} {holds.dtype}; correct the criterion"
            )
        return holds

    def __str__(self) -> str:
        return self.asked.says(self.column)

    def satisfied(
        self, classes: Classes, codes: NDArray[np.integer], domain: SensitiveDomain
    ) -> Bools:
        """(classes,) which classes of rows with these ``codes`` (rows,) satisfy it."""
        size, count = len(domain.counts), len(classes.starts)
        ends = np.append(classes.starts, len(classes.index))
        holds = np.zeros(count, np.bool_)
        step = max(1, _MOST_COUNTS // max(1, size))
        for first in range(0, count, step):
            last = min(first + step, count)
            of_class = np.repeat(np.arange(last - first), np.diff(ends[first : last + 1]))
            keys = of_class * size + codes[classes.index[ends[first] : ends[last]]]
            counts = np.bincount(keys, minlength=(last - first) * size)
            holds[first:last] = self.holds(counts.reshape(last - first, size), domain)
        return holds
