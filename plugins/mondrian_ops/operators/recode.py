"""The second phase of a recoding: what the parts agree on, specialized for all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mondrian_ops.lean_imports import import_lean
from mondrian_ops.operators.base import MondrianOperator, final_errors, read_job, work_of
from mondrian_ops.operators.notify import Notifiers, OneOrMore, refusal_notified

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["RecodeOperator"]


class RecodeOperator(MondrianOperator):
    """Decide what the values of each column become; returns one dict per fragment.

    Of a job without a first phase it only returns the fragments. The stage before it is skipped
    then, so give it the trigger rule ``none_failed_min_one_success``, and both tasks as upstream::

        recode = RecodeOperator(
            task_id="recode", job=job, parts=specialize_part.output, trigger_rule=...
        )
        partition >> recode

    :param parts: what the :class:`SpecializePartOperator` tasks returned (templated).
    :param on_refusal: notifiers to call when no release of the data can be made; see
        :mod:`mondrian_ops.notifications`.
    """

    template_fields: Sequence[str] = ("job", "parts")

    def __init__(self, *, parts: Any, on_refusal: OneOrMore = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.parts = parts
        self.on_refusal = Notifiers.of(on_refusal)

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Merge the levels of the parts, specialize the whole from there, keep the recoding."""
        import_lean()
        from mondrian_ops import pipeline
        from mondrian_ops.engines.handover import PartSummary

        with final_errors():
            job = read_job(self.job)
            work = work_of(job, self, context)
            with refusal_notified(self.on_refusal, context, job):
                parts = [PartSummary.from_dict(each) for each in self.parts[:]]  # one request
                return [fragment.to_dict() for fragment in pipeline.recode(work, parts)]
