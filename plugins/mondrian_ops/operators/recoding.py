"""Two-phase top-down specialization (TDS) with its first phase in mapped tasks, then its second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from mondrian_ops.lean_imports import import_lean
from mondrian_ops.operators.base import (
    MondrianOperator,
    check_is_mapped,
    final_errors,
    work_of_run,
)
from mondrian_ops.operators.notify import Notifiers, OneOrMore, failure_recorded, refusal_notified
from mondrian_ops.operators.release_link import ReleaseLink
from mondrian_ops.operators.released import fragments_of, released

if TYPE_CHECKING:
    from airflow.sdk import Context


class SpecializePartOperator(MondrianOperator):
    """Specialize one random part of the rows on its own; meant to be mapped.

    ::

        partition = PartitionOperator(task_id="partition", job=job, map_first_phase=True)
        SpecializePartOperator.partial(
            task_id="specialize_part",
            job=job,
            map_index_template=SpecializePartOperator.NAME_TEMPLATE,
        ).expand(part=partition.output)

    The task writes its result to the working files; a second run replaces it.

    :param part: one of the parts that :class:`PartitionOperator` returned (templated).
    """

    template_fields: Sequence[str] = (*MondrianOperator.template_fields, "part")
    template_fields_renderers: ClassVar[dict[str, str]] = {"job": "json", "part": "json"}
    NAME_TEMPLATE: ClassVar[str] = "{{ task.part_name }}"

    def __init__(self, *, part: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.part = part

    @property
    def part_name(self) -> str:
        """The part's number, as the grid shows it."""
        return f"part {self.part['part'] + 1} of {self.part['parts']}"

    def execute(self, context: Context) -> dict[str, Any]:
        """Read the part, specialize it, save its level of generalization; return a summary."""
        import_lean()
        from mondrian_ops import pipeline
        from mondrian_ops.engines.handover import Part

        with final_errors():
            check_is_mapped("part", self.part, "partition")
        with final_errors(), failure_recorded(self, context, -1):
            part = Part.from_dict(self.part)
            if released(self, context, part.work, -1) is not None:
                return part.to_dict()
            self.job_of_run(context, part.work)  # from here on its locations can be reached
            summary = pipeline.specialize_part(part)
        self.log.info(
            "%s: %d specializations of %d rows",
            self.part_name,
            summary.specializations,
            summary.rows,
        )
        return summary.to_dict()


class RecodeOperator(MondrianOperator):
    """Merge the parts' levels and specialize all rows from there; return one dict per fragment.

    For a job without a first phase the task only returns the fragments. The mapped task before it
    is skipped then, so give this one the trigger rule ``none_failed_min_one_success``, and both
    tasks as upstream::

        recode = RecodeOperator(
            task_id="recode", job=job, parts=specialize_part.output, trigger_rule=...
        )
        partition >> recode

    :param parts: what the :class:`SpecializePartOperator` tasks returned (templated).
    :param on_refusal: notifiers to call when no release of the data can be made; see
        :mod:`mondrian_ops.notifications`.
    """

    template_fields: Sequence[str] = (*MondrianOperator.template_fields, "parts")
    operator_extra_links = (ReleaseLink(),)
    release_url = ""

    def __init__(self, *, parts: Any, on_refusal: OneOrMore = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.parts = parts
        self.on_refusal = Notifiers.of(on_refusal)

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Choose the recoding of all rows and write it to the working files."""
        import_lean()
        from mondrian_ops import pipeline
        from mondrian_ops.engines.handover import PartSummary

        with final_errors(), failure_recorded(self, context):
            work = work_of_run(self, context)
            report = released(self, context, work)
            if report is not None:
                return fragments_of(report, work)
            job = self.job_of_run(context, work)
            with refusal_notified(self, context, job):
                parts = [PartSummary.from_dict(part) for part in self.parts[:]]  # one request
                return [fragment.to_dict() for fragment in pipeline.recode(work, parts)]
