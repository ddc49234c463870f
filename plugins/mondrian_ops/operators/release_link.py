"""The link from a task to the page of its release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class ReleaseLink(BaseOperatorLink):
    """A button that leads from a task to the page of its release.

    Airflow calls it in the task's process when that ends, so the operator knows its URL.
    """

    @property
    def name(self) -> str:
        """The button's label."""
        return "Release"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The operator's ``release_url``; empty if there is no page."""
        return getattr(operator, "release_url", "")
