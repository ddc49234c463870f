"""What this package tells Airflow as a provider.

Airflow looks for filesystems, plugins and settings in what calls itself a provider.
It reads this before it has a configuration, so this module imports nothing of Airflow.
"""

from __future__ import annotations

from typing import Any

from mondrian_ops.hooks.settings import CONFIG

_NAME = "mondrian_ops"


def get_provider_info() -> dict[str, Any]:
    """What Airflow's providers manager reads.

    The package has no connection type and no notifier of its own: connections are of the types of
    the providers for Spark, HDFS and Amazon.
    """
    return {
        "package-name": "mondrian-ops",
        "name": _NAME,
        "description": "k-anonymous, l-diverse releases of personal data",
        "integrations": [{"integration-name": _NAME, "tags": ["privacy"]}],
        "operators": _modules("mondrian_ops.operators"),
        "hooks": _modules(
            "mondrian_ops.hooks.filesystems",
            "mondrian_ops.hooks.spark",
            "mondrian_ops.hooks.spark_driver",
            "mondrian_ops.hooks.spark_submit",
            "mondrian_ops.hooks.store_credentials",
        ),
        "triggers": _modules("mondrian_ops.hooks.spark_driver"),
        "filesystems": ["mondrian_ops.hooks.filesystems"],
        "extra-links": ["mondrian_ops.operators.release_link.ReleaseLink"],
        "plugins": [
            {"name": _NAME, "plugin-class": "mondrian_ops.airflow_plugin.MondrianOpsPlugin"}
        ],
        "config": CONFIG,
    }


def _modules(*names: str) -> list[dict[str, Any]]:
    return [{"integration-name": _NAME, "python-modules": list(names)}]
