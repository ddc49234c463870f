"""Phase three: check the release as written, report, publish or refuse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

from mondrian_ops.core.errors import StorageError
from mondrian_ops.operators.anonymize_fragment import SUMMARIES
from mondrian_ops.operators.base import (
    MondrianOperator,
    final_errors,
    read_job,
    release_name,
    work_of,
)
from mondrian_ops.operators.records import record, refusal_recorded

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["WrapUpOperator"]


class WrapUpOperator(MondrianOperator):
    """Verify the files as written and publish them as a whole, or refuse and publish nothing.

    Each outlet that is an Asset gets an event that carries the summary; each that is an AssetAlias
    also gets the release itself as an Asset, which the URI of its output names.

    :param summaries: what the :class:`AnonymizeFragmentOperator` tasks returned (templated). Those
        of other releases are passed over.
    """

    template_fields: Sequence[str] = ("job", "summaries")

    def __init__(self, *, summaries: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.summaries = summaries

    def execute(self, context: Context) -> dict[str, Any]:
        """Publish the release; returns its summary."""
        from mondrian_ops import pipeline, storage
        from mondrian_ops.report import render_text

        with final_errors():
            job = read_job(self.job)
            work = work_of(job, self, context)
            summaries = [
                each
                for summary in self.summaries[:]  # one request for all of them
                if summary["work"] == work
                for each in _each(summary)
            ]
            if not summaries:
                raise StorageError(
                    f"{release_name(self.job)}: no fragment of it was anonymized; the log of its "
                    "partition or anonymize_fragment task tells why"
                )
            with refusal_recorded(context, job):
                report = pipeline.wrap_up(
                    job, work=work, summaries=summaries, progress=self.log_progress()
                )
        output = storage.shown(str(job.output))
        self.log.info("published %s\n%s", output, render_text(report, 100))
        record(context, job, "published", report)
        summary = _summary(output, report)
        self._announce(summary, context)
        return summary

    def _announce(self, summary: dict[str, Any], context: Context) -> None:
        uri = _uri(summary["output"])
        for outlet in self.outlets:
            if isinstance(outlet, AssetAlias):
                context["outlet_events"][outlet].add(Asset(uri=uri), extra=summary)
            elif isinstance(outlet, Asset):
                context["outlet_events"][outlet].extra = summary


def _each(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The fragments' summaries that a task returned, or left among the working files."""
    from mondrian_ops import storage

    if "summaries" in summary:
        left: list[dict[str, Any]] = storage.WorkDir(summary["work"]).read_json(SUMMARIES)
        return left
    return [{key: value for key, value in summary.items() if key != "work"}]


def _summary(output: str, report: dict[str, Any]) -> dict[str, Any]:
    return {
        "output": output,
        "rows": report["rows"],
        "achieved": report["achieved"],
        "equivalence_classes": report["equivalence_classes"],
        "metrics": report["metrics"],
    }


def _uri(output: str) -> str:
    return output if "://" in output else Path(output).absolute().as_uri()
