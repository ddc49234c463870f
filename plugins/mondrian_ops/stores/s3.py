"""S3 and what speaks its protocol: ``s3://[CONNECTION@]BUCKET/KEY``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mondrian_ops.errors import InputError
from mondrian_ops.stores import store_access
from mondrian_ops.stores.remote import RemoteStore

if TYPE_CHECKING:
    import pyarrow.fs as pa_fs

# Timeouts in seconds; a delayed open sends a small file in one request instead of three.
_DEFAULTS = {"connect_timeout": 10, "request_timeout": 60, "allow_delayed_open": True}


class S3Store(RemoteStore):
    """A bucket, where nothing can be renamed and nobody owns a file."""

    name = "s3"
    publication = "mondrian_ops.publish.objects:ObjectPublication"
    default_connection = "aws_default"
    has_buckets = True
    max_name_bytes = max_path_bytes = 1024  # of a key; a name has no limit of its own
    stamp_ns = 10**9  # a listing may be more precise than the answer about one object
    forbidden_marks = ("AWS Error ACCESS_DENIED", "HTTP status 403")
    missing_marks = (
        "AWS Error NO_SUCH_BUCKET",
        "AWS Error NO_SUCH_KEY",
        "AWS Error RESOURCE_NOT_FOUND",
        "not found. To create buckets",
    )
    error_marks = ("AWS Error",)

    def options(self, base: str) -> Mapping[str, Any]:
        scheme, name, bucket = store_access.split(base)
        if not bucket:
            raise InputError(f"{scheme}:///: the URL names no bucket; give {scheme}://BUCKET/KEY")
        if name:
            return store_access.connection(base, self.name, name)
        return store_access.looked_up(self.name, None) or _of_environment()

    def from_connection(self, connection: Any) -> Mapping[str, Any]:
        """From its own fields, where Airflow's Amazon provider is not installed."""
        extra = connection.extra_dejson
        of_service = extra.get("service_config", {}).get("s3", {})
        options = {
            "access_key": connection.login or extra.get("aws_access_key_id"),
            "secret_key": connection.password or extra.get("aws_secret_access_key"),
            "session_token": extra.get("aws_session_token"),
            "region": extra.get("region_name"),
            "role_arn": extra.get("role_arn"),
            "external_id": extra.get("external_id"),
            **s3_endpoint(of_service.get("endpoint_url") or extra.get("endpoint_url")),
        }
        if options["role_arn"] and options["access_key"]:
            raise InputError(
                f"connection {connection.conn_id!r}: it has both a role and keys to assume it "
                "with; install apache-airflow-providers-amazon, which supports that, or remove "
                "the keys"
            )
        return {key: value for key, value in options.items() if value}

    def connect(self, options: Mapping[str, Any]) -> pa_fs.FileSystem:
        import pyarrow.fs as pa_fs

        return pa_fs.S3FileSystem(**{**_DEFAULTS, **options})

    def path_in(self, base: str, path: str) -> str:
        return store_access.split(base)[2] + path


def _of_environment() -> dict[str, Any]:
    """The AWS variables' options; without them, Arrow looks where AWS's own tools look."""
    options = {
        "access_key": os.environ.get("AWS_ACCESS_KEY_ID"),
        "secret_key": os.environ.get("AWS_SECRET_ACCESS_KEY"),
        "session_token": os.environ.get("AWS_SESSION_TOKEN"),
        "region": os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
    }
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return {k: v for k, v in {**options, **s3_endpoint(endpoint)}.items() if v}


def s3_endpoint(url: str | None) -> dict[str, str]:
    """The options for a server that is not Amazon's, such as ``http://localhost:9000``."""
    if not url:
        return {}
    parts = urlsplit(url if "://" in url else f"https://{url}")
    return {"scheme": parts.scheme, "endpoint_override": parts.netloc}
