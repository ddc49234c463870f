"""Phase two: anonymize one fragment by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from mondrian_ops.errors import JobError
from mondrian_ops.lean_imports import import_lean
from mondrian_ops.operators.base import (
    MondrianOperator,
    check_is_mapped,
    final_errors,
    release_name,
    whole_of,
)
from mondrian_ops.operators.notify import failure_recorded
from mondrian_ops.operators.released import released

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mondrian_ops.engines.handover import Fragment, Summary

SUMMARIES = "summaries.json"
"""The working file with the summaries of all fragments, if one task has anonymized them."""

_NAME_LENGTH = 120


class AnonymizeFragmentOperator(MondrianOperator):
    """Anonymize one fragment and write its part of the release; meant to be mapped.

    ::

        AnonymizeFragmentOperator.partial(
            task_id="anonymize_fragment",
            job=job,
            map_index_template=AnonymizeFragmentOperator.NAME_TEMPLATE,
        ).expand(fragment=partition.output)

    A second run keeps the part that the first has written: no row is duplicated or lost.

    :param fragment: one of the fragments that :class:`PartitionOperator` returned (templated).
        Where several datasets are anonymized side by side, it carries its job under ``job``, and
        the job's number under ``map_index``.
    :param cores: the number of the worker's cores that cut the fragment (templated); Spark has
        settings of its own for this.
    """

    template_fields: Sequence[str] = (*MondrianOperator.template_fields, "fragment", "cores")
    template_fields_renderers: ClassVar[dict[str, str]] = {"job": "json", "fragment": "json"}
    NAME_TEMPLATE: ClassVar[str] = "{{ task.fragment_name }}"

    def __init__(
        self, *, fragment: Mapping[str, Any], job: Any = None, cores: Any = 1, **kwargs: Any
    ) -> None:
        super().__init__(job=job, **kwargs)
        self.fragment = fragment
        self.cores = cores

    @property
    def fragment_name(self) -> str:
        """The fragment's number and condition, shortened for the grid."""
        from mondrian_ops.engines.handover import Fragment

        label = f"{release_name(self.fragment['job'])} " if "job" in self.fragment else ""
        name = f"{label}{Fragment.from_dict(self.fragment).name}"
        return name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 1] + "…"

    def execute(self, context: Context) -> dict[str, Any]:
        """Read the fragment's rows, cut, generalize and write them; return a summary.

        If this one task has anonymized all fragments, their summaries, which are too large for an
        XCom, go to the working files, where :class:`WrapUpOperator` reads them.
        """
        import_lean()
        from mondrian_ops import pipeline
        from mondrian_ops.engines.handover import Fragment

        with final_errors():
            check_is_mapped("fragment", self.fragment, "partition")
        index = self.fragment.get("map_index", -1)  # of `wrap_up`
        with final_errors(), failure_recorded(self, context, index):
            cores = whole_of("cores", self.cores)
            if cores is not None and cores < 1:
                raise JobError(f"cores: must be 1 or more, not {cores}")
            fragment = Fragment.from_dict(self.fragment)
            if released(self, context, fragment.work, index) is not None:
                return _again(fragment)
            job = self.job_of_run(context, fragment.work, self.fragment.get("job"))
            with self.working(job, context, cores or 1) as engine:
                if fragment.fragments is not None:
                    return self._save(pipeline.anonymize_all(fragment.work, engine), fragment.work)
                summary = pipeline.anonymize_fragment(fragment, engine)
        self._log_summary(summary)
        return summary.to_dict()

    def _save(self, summaries: list[Summary], work: str) -> dict[str, Any]:
        from mondrian_ops import publish

        for summary in summaries:
            self._log_summary(summary)
        publish.WorkDir(work).write_json(SUMMARIES, [summary.to_dict() for summary in summaries])
        return {"summaries": len(summaries), "work": work}

    def _log_summary(self, summary: Summary) -> None:
        self.log.info(
            "fragment %s: %d rows in %d equivalence classes",
            summary.id,
            summary.rows,
            summary.equivalence_classes,
        )


def _again(fragment: Fragment) -> dict[str, Any]:
    """What a task that is cleared after its release was published returns for `wrap_up`."""
    if fragment.fragments is not None:
        return {"summaries": fragment.fragments, "work": fragment.work}
    return fragment.to_dict()
