"""k-anonymity of a release as written, of rows or of persons."""

from __future__ import annotations

from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.criteria.base import IN_ROWS, Measure, WrittenCriterion
from mondrian_ops.verify.figures import ClassCounts


@dataclass(frozen=True)
class KAnonymity(WrittenCriterion):
    """k rows (Samarati 2001) or, with an entity, rows of k persons (Wang and Fung 2006)."""

    job: Job
    rows_only: bool = False

    key = "k"

    @property
    def level(self) -> float | None:  # type: ignore[override]
        return self.job.k

    @property
    def _of_persons(self) -> bool:
        return self.job.entity_id is not None and not self.rows_only

    def measure(self, classes: ClassCounts) -> Measure:
        if not self._of_persons:
            return classes.class_sizes
        if classes.persons is None:
            raise PrivacyError(f"the persons by {self.job.entity_id!r} were not counted")
        return classes.persons

    def __str__(self) -> str:
        title = f"k-anonymity, k = {self.job.k}"
        if self._of_persons:
            return f"{title} persons by {self.job.entity_id}"
        return title if self.job.entity_id is None else title + IN_ROWS
