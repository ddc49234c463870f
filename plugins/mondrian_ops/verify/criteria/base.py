"""What a privacy criterion is on a release as written, and how a sensitive column is counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.figures import ClassCounts
from mondrian_ops.verify.spread import SensitiveCount

Measure = NDArray[Any]
"""One number per class."""

IN_ROWS = " in rows, not persons"
"""What a criterion says that counts rows, although the job counts persons."""


class WrittenCriterion(ABC):
    """A requirement on every class of a release as written.

    ``key`` names the number that a class achieves, ``level`` is the one that is required; None
    where it is only measured. ``at_most``: the level is a ceiling, not a floor.
    """

    key: ClassVar[str]
    at_most: ClassVar[bool] = False
    level: float | None

    @abstractmethod
    def measure(self, classes: ClassCounts) -> Measure:
        """(classes,) the number that each class achieves."""

    @abstractmethod
    def __str__(self) -> str:
        """The criterion and its numbers, for reports and errors."""


@dataclass(frozen=True)
class ColumnCriterion(WrittenCriterion):
    """A requirement on a sensitive column. ``of_rows``: of rows, though the job counts persons."""

    column: str
    job: Job
    of_rows: bool = False

    @classmethod
    def of(
        cls, job: Job, column: str, hierarchies: Mapping[str, Hierarchy], of_rows: bool
    ) -> Self | None:
        """The criterion that ``job`` asks for, or whose number is measured; None if neither.

        ``hierarchies`` by sensitive column.
        """
        return cls(column, job, of_rows)

    def counted(self, classes: ClassCounts) -> SensitiveCount:
        """How often each value of the column occurs in each class."""
        if self.column not in classes.sensitive:
            raise PrivacyError(
                f"sensitive column {self.column!r} was not counted; the release cannot be checked"
            )
        return classes.sensitive[self.column]


class Diversity(ColumnCriterion):
    """l-diversity of a column. Missing values are left out unless the job counts them."""

    key = "l"

    @property
    def level(self) -> float | None:  # type: ignore[override]
        return self.job.l

    def measure(self, classes: ClassCounts) -> Measure:
        sensitive, sizes = self.counted(classes), classes.class_sizes
        if self.job.missing_sensitive != "value":
            sensitive, sizes = present(sensitive, sizes)
        return self.diversity(sensitive, sizes)

    @abstractmethod
    def diversity(self, sensitive: SensitiveCount, sizes: Measure) -> Measure:
        """(classes,) the l of each class, by its rows that count; ``sizes``: how many these are."""

    @property
    def _level(self) -> str:
        required = "" if self.job.l is None else f"l = {self.job.l:g}"
        if self.job.l is not None and self.of_rows:
            required += IN_ROWS
        if self.job.missing_sensitive == "value":
            required += ", missing values counted as one"
        return required


def present(sensitive: SensitiveCount, sizes: Measure) -> tuple[SensitiveCount, Measure]:
    """The count of the rows that have a value, and the number of these in each class."""
    if not sensitive.totals[0]:  # copy nothing, as it may be large
        return sensitive, sizes
    has_value = sensitive.codes > 0
    counted = replace(
        sensitive,
        classes=sensitive.classes[has_value],
        codes=sensitive.codes[has_value],
        counts=sensitive.counts[has_value],
    )
    rows = np.zeros(len(sizes), np.int64)
    np.add.at(rows, counted.classes, counted.counts)
    return counted, rows
