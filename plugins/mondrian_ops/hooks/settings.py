"""The section ``[mondrian_ops]`` of Airflow's configuration.

Airflow reads the section's description before it has a configuration, so this module imports
nothing of Airflow at module level.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mondrian_ops.errors import JobError

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from mondrian_ops.catalogue import Place
    from mondrian_ops.stores import AccessPolicy

__all__ = ["home"]  # what DAG files import; the rest is for this package

SECTION = "mondrian_ops"


def _option(
    description: str, default: str | None = None, example: str | None = None, type_: str = "string"
) -> dict[str, Any]:
    return {
        "description": description,
        "version_added": None,
        "type": type_,
        "example": example,
        "default": default,
    }


CONFIG: dict[str, Any] = {
    SECTION: {
        "description": "k-anonymous, l-diverse releases of personal data.",
        "options": {
            "home": _option(
                "The directory where relative paths start, those of jobs and those of this "
                "section. If not set, the folder above `[core] dags_folder`.",
                example="/srv/anonymization",
            ),
            "catalogue": _option(
                "The catalogue of releases, which the pages show: the path of an SQLite file, made "
                "on first use, on a disk that all tasks and API servers of this Airflow share (no "
                "network file system). If not set, `$AIRFLOW_HOME/mondrian_ops/catalogue.db`.",
                example="/srv/mondrian_ops/catalogue.db",
            ),
            "catalogue_conn_id": _option(
                "A connection of type Postgres to the database that holds the catalogue instead, "
                "for an Airflow of several machines.",
                example="mondrian_ops_catalogue",
            ),
            "catalogue_key": _option(
                "The private file with the secret key of the catalogue's hashes, 64 hexadecimal "
                "digits. With SQLite it is made on first use. If not set, "
                "`$AIRFLOW_HOME/mondrian_ops/catalogue.key`.",
                example="/srv/mondrian_ops/catalogue.key",
            ),
            "catalogue_key_conn_id": _option(
                "A connection whose password is that key, instead of the file.",
                example="mondrian_ops_catalogue_key",
            ),
            "without_catalogue": _option(
                "What a run does that cannot use the catalogue: `refuse`, before any work, or "
                "`publish`, with a warning in the log of the task; the pages do not show it then. "
                "A job that may ask for an approval never does without it.",
                default="refuse",
            ),
            "api_url": _option(
                "Where tasks reach Airflow's API server, which tells them who answered a question "
                "and who has changed its run. If not set, beside the execution API "
                "(`[core] execution_api_server_url`).",
                example="http://airflow-api-server:8080",
            ),
            "drift": _option(
                "The pages mark a release whose loss or number of rows differs by more than this "
                "share from the median of the dataset's seven releases before.",
                default="0.2",
                type_="float",
            ),
            "keep_hours": _option(
                "How long the working files of a failed run, which hold original rows, are kept "
                "so that its failed tasks can be cleared; 0 keeps none. The DAG `mondrian_sweep` "
                "removes them afterwards.",
                default="24",
                type_="float",
            ),
            "allowed_inputs": _option(
                "Directories that jobs may read, including everything below them: paths and URLs, "
                "separated by commas or lines. A store's connection is part of its URL. Jobs may "
                "also read what `allowed_outputs` lists.",
                default="data, include",
                example="/srv/landing, hdfs://namenode/data, s3://a_connection@bucket/raw",
            ),
            "allowed_outputs": _option(
                "Directories in which jobs may write releases and, beside them, working files.",
                default="out",
                example="/srv/releases, hdfs://namenode/releases",
            ),
            "allowed_connections": _option(
                "Connections that jobs may name in `spark.connection`.",
                default="spark_connect_default, spark_default",
            ),
            "allowed_spark_conf": _option(
                "Spark properties that jobs may set in `spark.conf`; `*` stands for anything. "
                "Other properties may let a job run any program.",
                default="spark.cores.max, spark.default.parallelism, spark.driver.cores, "
                "spark.driver.memory, spark.driver.memoryOverhead, spark.dynamicAllocation.*, "
                "spark.executor.cores, spark.executor.instances, spark.executor.memory, "
                "spark.executor.memoryOverhead, spark.sql.adaptive.coalescePartitions.*, "
                "spark.sql.adaptive.enabled, spark.sql.shuffle.partitions, spark.task.*",
            ),
            "policies": _option(
                "The file, YAML or JSON, with what jobs must ask at least: a path on the workers "
                "that only the deployment can write. While it cannot be read, no job runs. "
                "docs/security.md lists its keys. If not set, there is no floor.",
                example="/etc/mondrian_ops/policies.yaml",
            ),
            "limits": _option(
                "Limits on jobs and their files that differ from the defaults: `NAME=NUMBER`, "
                "separated by commas or lines. docs/security.md lists them.",
                example="csv_line=64MiB, columns=20000",
            ),
        },
    }
}
"""The section as a provider describes its own to Airflow."""


def home() -> str:
    """Where relative paths start. Raises JobError if the setting is a relative path itself."""
    from airflow.sdk import conf

    given: str | None = conf.get(SECTION, "home", fallback=None)
    if not given:
        return str(Path(conf.get("core", "dags_folder")).expanduser().absolute().parent)
    folder = Path(given).expanduser()
    if not folder.is_absolute():
        raise JobError(
            f"home: {given} is a relative path; give an absolute one in the section [mondrian_ops] "
            "of Airflow's configuration"
        )
    return str(folder)


def catalogue_place(with_key: bool = True) -> Place:
    """Where the catalogue and its key are; the pages need no key.

    Raises JobError for a connection that is missing, or of another type than Postgres.
    """
    from mondrian_ops.catalogue import Place

    key_conn_id, conn_id = _given("catalogue_key_conn_id"), _given("catalogue_conn_id")
    key = key_file = None
    if not key_conn_id:
        key_file = _path("catalogue_key", "catalogue.key")
    elif with_key:
        key = _connection("catalogue_key_conn_id", key_conn_id).password or ""
    if not conn_id:
        return Place.of(_path("catalogue", "catalogue.db"), key_file, key)
    url = _postgresql_url(_connection("catalogue_conn_id", conn_id))
    return Place.of(url, key_file, key)


def _given(option: str) -> str | None:
    from airflow.sdk import conf

    given: str | None = conf.get(SECTION, option, fallback=None)
    return given or None


def _path(option: str, default: str) -> str:
    if given := _given(option):
        return str(Path(home(), Path(given).expanduser()))
    airflow = os.path.expandvars(os.environ.get("AIRFLOW_HOME", "~/airflow"))
    return str(Path(airflow).expanduser() / "mondrian_ops" / default)


def _connection(option: str, conn_id: str) -> Connection:
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise JobError(
            f"{option}: there is no connection {conn_id!r}; make it, or name another one in the "
            "section [mondrian_ops] of Airflow's configuration"
        ) from None


def _postgresql_url(connection: Connection) -> str:
    """SQLAlchemy's URL; of the connection's extra, what libpq knows."""
    from sqlalchemy import URL

    if connection.conn_type != "postgres":
        raise JobError(
            f"catalogue_conn_id: the connection {connection.conn_id!r} is of type "
            f"{connection.conn_type!r}; name one of type 'postgres'"
        )
    known = ("options", "sslcert", "sslkey", "sslmode", "sslrootcert", "target_session_attrs")
    extra = connection.extra_dejson
    url = URL.create(
        "postgresql+psycopg2",
        username=connection.login or None,
        password=connection.password or None,
        host=connection.host or None,
        port=connection.port or None,
        database=connection.schema or None,
        query={name: str(extra[name]) for name in known if name in extra},
    )
    return url.render_as_string(hide_password=False)


def api_url() -> str | None:
    """Where tasks reach Airflow's API server; None if beside the execution API."""
    return _given("api_url")


def drift() -> float:
    """The difference of loss or rows from earlier releases, as a share, that the pages mark."""
    from airflow.sdk import conf

    return conf.getfloat(SECTION, "drift", fallback=0.2)


def needs_catalogue() -> bool:
    """Whether no run may begin that cannot use the catalogue. Raises JobError for another word."""
    from airflow.sdk import conf

    word = str(conf.get(SECTION, "without_catalogue", fallback="refuse"))
    if word not in ("refuse", "publish"):
        raise JobError(
            f"without_catalogue: is {word!r}; give 'refuse' or 'publish' in the section "
            "[mondrian_ops] of Airflow's configuration"
        )
    return word == "refuse"


def keep_time() -> timedelta:
    """How long the working files of a failed run are kept."""
    from airflow.sdk import conf

    return timedelta(hours=conf.getfloat(SECTION, "keep_hours", fallback=24.0))


def allowed() -> AccessPolicy:
    """The access policy of this Airflow."""
    from airflow.sdk import conf

    from mondrian_ops.stores import AccessPolicy

    options = {
        name: conf.get(SECTION, name, fallback=option["default"])
        for name, option in CONFIG[SECTION]["options"].items()
        if name.startswith("allowed_")
    }
    return AccessPolicy.of(options, dags=_dag_folders())


def _dag_folders() -> list[str]:
    """Where this Airflow has DAG files: the DAGs folder, and what it fetches of other bundles."""
    from airflow.dag_processing.bundles import base
    from airflow.sdk import conf

    fetched: Path = base.get_bundle_storage_root_path()  # type: ignore[no-untyped-call]
    return [str(Path(conf.get("core", "dags_folder")).expanduser()), str(fetched)]


def use_settings() -> None:
    """Apply this Airflow's connections, access policy, policies and limits in this process."""
    from airflow.sdk import conf

    from mondrian_ops import catalogue, stores
    from mondrian_ops.hooks.store_credentials import use_connections
    from mondrian_ops.job import limits

    use_connections()
    catalogue.use(catalogue_place)
    stores.use_home(home())
    stores.use_policy(allowed())
    stores.use_policies(conf.get(SECTION, "policies", fallback=None))
    limits.use(limits.parsed(conf.get(SECTION, "limits", fallback=None) or ""))
