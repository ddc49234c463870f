"""Google Cloud Storage: ``gs://[CONNECTION@]BUCKET/PATH``.

Without a connection the machine's own credentials apply (``GOOGLE_APPLICATION_CREDENTIALS``, or
those of its service account); ``STORAGE_EMULATOR_HOST`` names a server in Google's place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mondrian_ops.errors import InputError
from mondrian_ops.stores import store_access
from mondrian_ops.stores.remote import RemoteStore

if TYPE_CHECKING:
    import pyarrow.fs as pa_fs

_RETRIED_S = 60.0  # Google's client repeats a failed request for 15 minutes by itself
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_PREFIX = "extra__google_cloud_platform__"  # of a connection's fields in older Airflows
_EXPIRES = "credential_token_expiration"


class GcsStore(RemoteStore):
    """A bucket, where nothing can be renamed and nobody owns a file."""

    name = "gcs"
    publication = "mondrian_ops.publish.objects:ObjectPublication"
    default_connection = "google_cloud_default"
    max_name_bytes = max_path_bytes = 1024  # of an object's name
    has_buckets = True
    makes_buckets = True
    forbidden_marks = ("PERMISSION_DENIED", "UNAUTHENTICATED")
    missing_marks = ("No such file or directory", "No such directory", "Status(NOT_FOUND")
    error_marks = ("google::cloud::Status",)

    def options(self, base: str) -> Mapping[str, Any]:
        _, name, bucket = store_access.split(base)
        if not bucket:
            raise InputError("gs:///: the URL names no bucket; give gs://BUCKET/PATH")
        if name:
            return store_access.connection(base, self.name, name)
        known = store_access.looked_up(self.name, None)
        return _of_environment() if known is None else known

    def from_connection(self, connection: Any) -> Mapping[str, Any]:
        """A service account's key becomes a token, which is valid for an hour."""
        extra = connection.extra_dejson

        def field(name: str) -> Any:
            return extra.get(name) or extra.get(_PREFIX + name)

        options: dict[str, Any] = dict(_endpoint(connection.host or extra.get("endpoint_url")))
        if project := field("project"):
            options["project_id"] = project
        if account := field("impersonation_chain"):
            options["target_service_account"] = account
        if field("is_anonymous"):
            options["anonymous"] = True
        elif key := field("keyfile_dict") or field("key_path"):
            options.update(_token(connection.conn_id, key))
        return options

    def connect(self, options: Mapping[str, Any]) -> pa_fs.FileSystem:
        import pyarrow.fs as pa_fs

        if not hasattr(pa_fs, "GcsFileSystem"):
            raise InputError(
                "gs: this pyarrow was built without Google Cloud Storage; install the wheel from "
                "PyPI"
            )
        given = {"retry_time_limit": timedelta(seconds=_RETRIED_S), **options}
        if _EXPIRES in given:
            given[_EXPIRES] = datetime.fromisoformat(given[_EXPIRES])
        return pa_fs.GcsFileSystem(**given)

    def path_in(self, base: str, path: str) -> str:
        return store_access.split(base)[2] + path

    def listed(self, store: pa_fs.FileSystem, path: str) -> list[pa_fs.FileInfo]:
        """With the directories that only the names of files tell of.

        Arrow leaves those out of a listing, unless it goes to all depths.
        """
        import pyarrow.fs as pa_fs

        above = path.rstrip("/") + "/"
        found: dict[str, pa_fs.FileInfo] = {}
        for info in store.get_file_info(pa_fs.FileSelector(path, recursive=True)):
            name, _, below = info.path.removeprefix(above).partition("/")
            if below:
                found[name] = pa_fs.FileInfo(above + name, pa_fs.FileType.Directory)
            else:
                found.setdefault(name, info)
        return list(found.values())


def _of_environment() -> Mapping[str, Any]:
    endpoint = _endpoint(os.environ.get("STORAGE_EMULATOR_HOST"))
    return {**endpoint, "anonymous": True} if endpoint else {}


def _endpoint(url: str | None) -> Mapping[str, Any]:
    """The options for a server that is not Google's."""
    if not url:
        return {}
    parts = urlsplit(url if "://" in url else f"http://{url}")
    return {"scheme": parts.scheme, "endpoint_override": parts.netloc}


def _token(conn_id: str, key: Any) -> Mapping[str, str]:
    """A token for the key of a service account: its file, or its content as text or as a value."""
    try:
        request = import_module("google.auth.transport.requests").Request()
        kind = import_module("google.oauth2.service_account").Credentials
    except ImportError:
        raise InputError(
            f"connection {conn_id!r}: it has a service account's key, for which google-auth is "
            "needed; install apache-airflow-providers-google, or let "
            "GOOGLE_APPLICATION_CREDENTIALS name the key's file"
        ) from None
    if isinstance(key, str) and key.lstrip().startswith("{"):
        key = json.loads(key)
    is_content = isinstance(key, Mapping)
    load = kind.from_service_account_info if is_content else kind.from_service_account_file
    credentials = load(key, scopes=[_SCOPE])
    credentials.refresh(request)
    return {"access_token": credentials.token, _EXPIRES: f"{credentials.expiry.isoformat()}+00:00"}
