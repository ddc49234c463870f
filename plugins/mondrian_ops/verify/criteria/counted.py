"""Criteria of installed packages, which are asked with the counts of values as written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops.errors import JobError, values_withheld
from mondrian_ops.job.criterion import Counts, Criterion
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.criteria.base import IN_ROWS, ColumnCriterion, Measure
from mondrian_ops.verify.figures import ClassCounts

_MOST_COUNTS = 1 << 22  # of a table of classes by values


@dataclass(frozen=True, kw_only=True)
class CountedCriterion(ColumnCriterion):
    """A criterion of a package, on a column; ``key`` is the name of its section."""

    key: str  # type: ignore[misc]
    asked: Criterion

    @property
    def level(self) -> float:  # type: ignore[override]
        return self.asked.level

    @property
    def at_most(self) -> bool:  # type: ignore[override]
        return self.asked.at_most

    def __str__(self) -> str:
        return self.asked.says(self.column) + (IN_ROWS if self.of_rows else "")

    def measure(self, classes: ClassCounts) -> Measure:
        sensitive, count = self.counted(classes), len(classes.class_sizes)
        by_value = pc.sort_indices(sensitive.values).to_numpy().astype(np.int64)
        by_value = by_value[sensitive.totals[1:][by_value] > 0]
        values = pa.concat_arrays(
            [pa.nulls(1, sensitive.values.type), sensitive.values.take(pa.array(by_value))]
        )
        place = np.zeros(len(sensitive.totals), np.int64)  # of each code; the missing one's is 0
        place[by_value + 1] = np.arange(1, len(values))
        whole = np.append(sensitive.totals[0], sensitive.totals[1:][by_value])
        size = len(values)
        measured = np.zeros(count)
        step = max(1, _MOST_COUNTS // size)
        for first in range(0, count, step):
            last = min(first + step, count)
            start, end = np.searchsorted(sensitive.classes, [first, last])
            table = np.zeros((last - first, size), np.int64)
            pairs = sensitive.classes[start:end] - first, place[sensitive.codes[start:end]]
            np.add.at(table, pairs, sensitive.counts[start:end])
            with values_withheld():
                achieved = np.asarray(self.asked.measure(Counts(values, whole, table)))
            if achieved.shape != (last - first,) or not np.isfinite(achieved).all():
                raise JobError(
                    f"{self}: measure must return a finite number for each of {last - first} "
                    "classes, (classes,); correct the criterion"
                )
            measured[first:last] = achieved
        return measured
