"""Criteria of installed packages, which are asked with the counts of values."""

from __future__ import annotations

from typing import Self

import numpy as np
import pyarrow as pa

from mondrian_ops.cut.criteria.base import Bools, CutCriterion, Ints
from mondrian_ops.cut.native import class_criteria
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.errors import JobError, values_withheld
from mondrian_ops.job.criterion import Counts, Criterion
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class CountedCriterion(CutCriterion):
    """A criterion that the kernels do not know, so that they ask it about each cut."""

    criterion: Criterion

    kind = class_criteria.ASKED

    @classmethod
    def by(cls, criterion: Criterion, column: str) -> Self:
        """That of a package, on a column."""
        return cls(column, criterion.level, criterion)

    @property
    def min_class_size(self) -> int:
        return self.criterion.min_class_size

    def asked(self, domain: SensitiveDomain) -> class_criteria.Asked:
        """It by the counts of codes: it gets those of the values that occur, null first."""
        of_value = int(domain.missing)  # its first column
        columns = of_value + np.flatnonzero(domain.counts[of_value:])
        values = domain.values.take(pa.array(columns - of_value))
        values = pa.concat_arrays([pa.nulls(1, values.type), values])
        whole = np.append(domain.counts[:of_value].sum(), domain.counts[columns])

        def holds(counts: Ints) -> Bools:
            table = np.zeros((len(counts), len(values)), np.int64)
            if of_value:
                table[:, 0] = counts[:, 0]
            table[:, 1:] = counts[:, columns]
            with values_withheld():
                found = np.asarray(self.criterion.holds(Counts(values, whole, table)))
            if found.shape != (len(counts),) or found.dtype != np.bool_:
                raise JobError(
                    f"{self}: holds must return a truth value for each of {len(counts)} classes, "
                    f"(classes,) bool, not {found.shape} {found.dtype}; correct the criterion"
                )
            return found

        return holds

    def holds(self, counts: Ints, domain: SensitiveDomain) -> Bools:
        return self.asked(domain)(counts)

    def __str__(self) -> str:
        return self.criterion.says(self.column)
