"""What Airflow's configuration says of this package: the section ``[mondrian_ops]``.

Airflow asks for the description of the section before it has a configuration, so nothing of
Airflow is imported at module level.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mondrian_ops.storage import AccessPolicy

__all__ = ["CONFIG", "allowed", "drift", "reports", "use_settings"]

SECTION = "mondrian_ops"

CONFIG: dict[str, Any] = {
    SECTION: {
        "description": "k-anonymous, l-diverse releases of personal data.",
        "options": {
            "reports": {
                "description": "The archive of reports, which the pages show: a path or URL that "
                "workers write and API servers read. If not set, "
                "`$AIRFLOW_HOME/mondrian_ops/reports`.",
                "version_added": None,
                "type": "string",
                "example": "s3://bucket/reports",
                "default": None,
            },
            "drift": {
                "description": "The pages mark a release whose loss or number of rows differs by "
                "more than this share from the median of the dataset's seven releases before.",
                "version_added": None,
                "type": "float",
                "example": None,
                "default": "0.2",
            },
            "allowed_inputs": {
                "description": "Directories that jobs may read, including everything below them: "
                "paths and URLs, separated by commas or lines. A relative path starts beside the "
                "DAGs folder. A store's connection is part of its URL. Jobs may also read what "
                "`allowed_outputs` lists.",
                "version_added": None,
                "type": "string",
                "example": "/srv/landing, hdfs://namenode/data, s3://a_connection@bucket/raw",
                "default": "data, include",
            },
            "allowed_outputs": {
                "description": "Directories in which jobs may write releases and, beside them, "
                "working files.",
                "version_added": None,
                "type": "string",
                "example": "/srv/releases, hdfs://namenode/releases",
                "default": "out",
            },
            "allowed_connections": {
                "description": "Connections that jobs may name in `spark.connection`.",
                "version_added": None,
                "type": "string",
                "example": None,
                "default": "spark_connect_default, spark_default",
            },
            "allowed_spark_conf": {
                "description": "Spark properties that jobs may set in `spark.conf`; `*` stands for "
                "anything. Other properties may let a job run any program.",
                "version_added": None,
                "type": "string",
                "example": None,
                "default": "spark.cores.max, spark.default.parallelism, spark.driver.cores, "
                "spark.driver.memory, spark.driver.memoryOverhead, spark.dynamicAllocation.*, "
                "spark.executor.cores, spark.executor.instances, spark.executor.memory, "
                "spark.executor.memoryOverhead, spark.sql.adaptive.coalescePartitions.*, "
                "spark.sql.adaptive.enabled, spark.sql.shuffle.partitions, spark.task.*",
            },
            "limits": {
                "description": "Limits on jobs and their files that differ from the defaults: "
                "`NAME=NUMBER`, separated by commas or lines. docs/security.md lists them.",
                "version_added": None,
                "type": "string",
                "example": "csv_line=64MiB, columns=20000",
                "default": None,
            },
        },
    }
}
"""The section as a provider describes its own to Airflow."""


def reports() -> str:
    """Where the archive of reports is: a path or a URL of any store."""
    from airflow.sdk import conf

    given: str | None = conf.get(SECTION, "reports", fallback=None)
    if given:
        return given
    home = os.path.expandvars(os.environ.get("AIRFLOW_HOME", "~/airflow"))
    return str(Path(home).expanduser() / "mondrian_ops" / "reports")


def drift() -> float:
    """The relative change of loss or rows, from a dataset's releases before, that is marked."""
    from airflow.sdk import conf

    return conf.getfloat(SECTION, "drift", fallback=0.2)


def allowed() -> AccessPolicy:
    """What jobs may name in this Airflow."""
    from airflow.sdk import conf

    from mondrian_ops.storage import AccessPolicy

    told = {
        name: conf.get(SECTION, name, fallback=option["default"])
        for name, option in CONFIG[SECTION]["options"].items()
        if name.startswith("allowed_")
    }
    return AccessPolicy.of(told, str(Path(conf.get("core", "dags_folder")).expanduser().parent))


def use_settings() -> None:
    """Let this process go by this Airflow from now on: its connections, and what jobs may do."""
    from airflow.sdk import conf

    from mondrian_ops import storage
    from mondrian_ops.core import limits
    from mondrian_ops.hooks.connections import use_connections

    use_connections()
    storage.use_policy(allowed())
    limits.use(limits.parsed(conf.get(SECTION, "limits", fallback=None) or ""))
