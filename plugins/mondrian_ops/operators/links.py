"""The way from a task to the page of its release."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.sdk import BaseOperatorLink, conf

from mondrian_ops.links import release_path
from mondrian_ops.operators.report_archiving import release_id

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context
    from airflow.sdk.types import TaskInstanceKey

__all__ = ["ReleaseLink", "release_url"]

_log = logging.getLogger(__name__)


class ReleaseLink(BaseOperatorLink):
    """The release's page, of a task that has made one.

    Airflow asks for it in the task's process when that ends, so an operator that has this link
    knows whether there is such a page; it says so in ``release_url``.
    """

    @property
    def name(self) -> str:
        """What the button says."""
        return "Release"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The URL; empty where there is no page."""
        return getattr(operator, "release_url", "")


def release_url(context: Context) -> str:
    """Where the release of this task is shown; a path alone where nobody knows Airflow's host.

    Empty, with a warning in the task's log, where the archive of reports cannot be read: then the
    pages cannot show the release, which is none the worse.
    """
    run, instance = context["dag_run"], context["ti"]
    group = instance.task_id.rpartition(".")[0]
    map_index: Any = instance.map_index
    try:
        entry = release_id(run.dag_id, run.run_id, group, -1 if map_index is None else map_index)
    except Exception as error:
        _log.warning(
            "the release has no link, for the archive of reports cannot be read: %s: %s",
            type(error).__name__,
            error,
        )
        return ""
    base = urlsplit(conf.get("api", "base_url", fallback="") or "")
    path = release_path(entry, base.path.rstrip("/"))
    return f"{base.scheme}://{base.netloc}{path}" if base.netloc else path
