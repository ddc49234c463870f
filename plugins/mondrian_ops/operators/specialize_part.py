"""The first phase of a recoding: one random part of the rows, specialized on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from mondrian_ops.core.errors import JobError
from mondrian_ops.lean_imports import import_lean
from mondrian_ops.operators.base import MondrianOperator, final_errors, read_job

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["SpecializePartOperator"]


class SpecializePartOperator(MondrianOperator):
    """Specialize one part of the rows as far as it by itself allows; made to be mapped.

    ::

        partition = PartitionOperator(task_id="partition", job=job, map_first_phase=True)
        SpecializePartOperator.partial(
            task_id="specialize_part",
            job=job,
            map_index_template=SpecializePartOperator.NAME_TEMPLATE,
            retries=2,
        ).expand(part=partition.output)

    What it finds goes to the working files; running it again replaces that.

    :param part: one of the parts that :class:`PartitionOperator` returned (templated).
    """

    template_fields: Sequence[str] = ("job", "part")
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
        """Deal the part, specialize it, keep its level; returns a summary."""
        import_lean()
        from mondrian_ops import pipeline
        from mondrian_ops.engines.handover import Part

        with final_errors():
            if not isinstance(self.part, Mapping):
                raise JobError(
                    f"part: must be one part of the partition task, not "
                    f"{type(self.part).__name__}; map this task over its output"
                )
            read_job(self.job)  # from here on its locations can be reached
            summary = pipeline.specialize_part(Part.from_dict(self.part))
        self.log.info(
            "%s: %d specializations of %d rows",
            self.part_name,
            summary.specializations,
            summary.rows,
        )
        return summary.to_dict()
