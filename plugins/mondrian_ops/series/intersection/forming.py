"""The classes of a night whose persons are followed."""

from __future__ import annotations

import pyarrow as pa

from mondrian_ops.cut.algorithms.mondrian import CodedRows
from mondrian_ops.cut.anonymizer import Counterfeits, Formed
from mondrian_ops.job.job import Job
from mondrian_ops.series.intersection.invariance import History, kept_classes
from mondrian_ops.series.intersection.subtraction_protection import balanced_classes


def form_classes(job: Job, rows: CodedRows, signatures: pa.ChunkedArray, cores: int) -> Formed:
    """The classes of a night, as :data:`mondrian_ops.cut.anonymizer.ClassMaker` has it."""
    history, l = History.from_array(signatures), int(job.l or 2)  # noqa: E741
    if job.is_balanced:
        balanced = balanced_classes(rows, history, l)
        made_up = Counterfeits.of(balanced.counterfeits, history.values)
        return Formed(balanced.classes, balanced.unmatched, made_up, balanced.signatures)
    kept = kept_classes(rows, history, l, cores, counterfeits=job.has_counterfeits)
    return Formed(kept.classes, kept.unmatched, Counterfeits.of(kept.counterfeits, history.values))
