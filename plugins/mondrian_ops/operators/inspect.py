"""Inspect an unknown table, and propose a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from mondrian_ops.lean_imports import import_lean
from mondrian_ops.operators.base import RETRIES, RETRY_DELAY, final_errors, whole_of

if TYPE_CHECKING:
    from airflow.sdk import Context


class InspectOperator(BaseOperator):
    """Inspect a table; the log shows what was found, and the job to begin with is returned.

    No value of fewer than five people is shown.

    :param input: the table, as the ``input`` of a job names it (templated).
    :param rows: about how many random rows to look at; by default a million (templated).
    """

    template_fields: Sequence[str] = ("input", "rows")
    ui_color = "#e2ecf7"

    def __init__(self, *, input: Any, rows: Any = None, **kwargs: Any) -> None:  # noqa: A002
        super().__init__(**{"retries": RETRIES, "retry_delay": RETRY_DELAY, **kwargs})
        self.input = input
        self.rows = rows

    def execute(self, context: Context) -> str:
        """Return the job, as YAML."""
        import_lean()
        from mondrian_ops import stores
        from mondrian_ops.hooks.settings import use_settings
        from mondrian_ops.inspection.inspector import inspect
        from mondrian_ops.inspection.rows import MOST_ROWS
        from mondrian_ops.inspection.starter_job import starter_job
        from mondrian_ops.inspection.text import render_text

        with final_errors():
            use_settings()
            rows = whole_of("rows", self.rows) or MOST_ROWS
            inspection = inspect(stores.resolved(str(self.input)), rows=rows)
        for line in render_text(inspection, 100).splitlines():
            self.log.info("%s", line)
        job = starter_job(inspection)
        self.log.info("A job to begin with; the task returns it, too:\n%s", job)
        return job
