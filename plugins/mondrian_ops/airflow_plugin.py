"""The plugin: the one file of this package that Airflow itself loads."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

__all__ = ["MondrianOpsPlugin"]


class MondrianOpsPlugin(AirflowPlugin):
    """Registers mondrian_ops with Airflow; its operators and task groups are plain imports."""

    name = "mondrian_ops"
