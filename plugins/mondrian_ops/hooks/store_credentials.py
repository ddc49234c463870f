"""The options of remote stores, from Airflow's connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from mondrian_ops import stores
from mondrian_ops.errors import InputError
from mondrian_ops.stores.remote import remote_store
from mondrian_ops.stores.s3 import s3_endpoint

if TYPE_CHECKING:
    from airflow.sdk import Connection

_PORT = {"http": 9870, "https": 9871}


def use_connections() -> None:
    """Let the stores look up Airflow's connections."""
    stores.look_up_with(connection_options)


def connection_options(kind: str, conn_id: str | None) -> Mapping[str, Any] | None:
    """The options of a connection for the store of this name; ``conn_id`` None: the default one.

    A catalog is a store in this: ``iceberg``, and its name is that of the connection.

    HDFS and S3 take them from their providers' hooks, the others from the connection's fields
    (:meth:`mondrian_ops.stores.remote.RemoteStore.from_connection`). None if there is no
    such connection.

    Raises:
        InputError: the connection lacks something, or its provider is not installed.
    """
    store = None if kind == "iceberg" else remote_store(kind)
    name = conn_id if store is None else conn_id or store.default_connection
    if not name:
        return None
    try:
        connection = BaseHook.get_connection(name)
    except AirflowNotFoundException:
        return None
    if store is None:
        return _catalog_properties(connection)
    if kind == "hdfs":
        return _hdfs_options(connection)
    return _s3_options(connection) if kind == "s3" else store.from_connection(connection)


def _catalog_properties(connection: Connection) -> dict[str, Any]:
    """As the Iceberg provider's hook: the catalog's URI as host, OAuth's client as login."""
    extra = connection.extra_dejson
    credential = f"{connection.login}:{connection.password}" if connection.login else None
    return {**extra, **_present(uri=connection.host, credential=credential)}


def _hdfs_options(connection: Connection) -> dict[str, Any]:
    """As the HDFS provider's WebHDFSHook, but HTTPS is verified unless ``verify`` is false."""
    if not connection.host:
        raise InputError(
            f"connection {connection.conn_id!r}: it has no host; enter the NameNode's, or several "
            "separated by commas"
        )
    extra = connection.extra_dejson
    scheme = "https" if str(extra.get("use_ssl", False)).lower() == "true" else "http"
    rest = f":{connection.port or _PORT[scheme]}"
    if connection.schema:
        rest += f"/{connection.schema.strip('/')}"
    hosts = [host.strip() for host in connection.host.split(",")]
    cert = [extra["cert"], extra["key"]] if extra.get("key") else extra.get("cert")
    options = {
        "servers": [f"{scheme}://{host}{rest}" for host in hosts if host],
        "user": connection.login,
        "password": connection.password,
        "kerberos": _in_kerberos_mode(),
        "verify": extra.get("verify"),
        "cert": cert,
        "headers": extra.get("headers"),
    }
    return {name: value for name, value in options.items() if value not in (None, "")}


def _in_kerberos_mode() -> bool:
    """Whether Airflow uses Kerberos, as the provider's hook decides on import."""
    try:
        from airflow.providers.apache.hdfs.hooks import webhdfs
    except ImportError as error:
        raise InputError(
            "hdfs: the connection is that of the HDFS provider, which is not installed completely "
            f"(no module {error.name!r}); install apache-airflow-providers-apache-hdfs, with "
            "Kerberos also hdfs[kerberos], or give webhdfs://HOST:PORT/… without a connection"
        ) from None
    return bool(webhdfs._kerberos_security_mode)


def _s3_options(connection: Connection) -> Mapping[str, Any]:
    """By the Amazon provider if it is installed, else from the connection's own fields."""
    try:
        from airflow.providers.amazon.aws.hooks.base_aws import AwsGenericHook
    except ImportError:
        return remote_store("s3").from_connection(connection)
    hook = AwsGenericHook(aws_conn_id=connection.conn_id, client_type="s3")
    options = _present(
        region=hook.region_name,
        **s3_endpoint(hook.conn_config.get_service_endpoint_url("s3")),
    )
    credentials = hook.get_session().get_credentials()
    if credentials is None:  # then Arrow looks where AWS's own tools look
        return options
    frozen = credentials.get_frozen_credentials()
    return options | _present(
        access_key=frozen.access_key,
        secret_key=frozen.secret_key,
        session_token=frozen.token,
    )


def _present(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value}
