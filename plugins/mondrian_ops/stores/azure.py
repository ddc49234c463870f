"""Azure's object store: ``abfss://[CONNECTION@]CONTAINER@ACCOUNT.dfs.core.windows.net/PATH``.

Or ``abfss://CONNECTION@CONTAINER/PATH``, as Airflow writes it: the connection names the account.
Without a connection, ``AZURE_STORAGE_CONNECTION_STRING``, or ``AZURE_STORAGE_ACCOUNT`` with
``AZURE_STORAGE_KEY`` or ``AZURE_STORAGE_SAS_TOKEN`` apply, as Azure's tools read them; without a
key, what Azure's default credential finds (a managed identity, ``AZURE_CLIENT_ID``).
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mondrian_ops.errors import InputError
from mondrian_ops.stores import store_access
from mondrian_ops.stores.remote import RemoteStore

if TYPE_CHECKING:
    import pyarrow.fs as pa_fs

_LOCKED = "[LeaseAlreadyPresent]"
_PAUSES = (1.0, 2.0, 4.0, 4.0, 5.0)
"""Seconds between attempts to delete a locked blob; together they outlast the lock."""


class AzureStore(RemoteStore):
    """A container. Here, too, a release appears by copies, though some accounts could rename."""

    name = "azure"
    publication = "mondrian_ops.publish.objects:ObjectPublication"
    default_connection = "wasb_default"
    max_name_bytes = max_path_bytes = 1024  # of a blob's name
    makes_buckets = True
    forbidden_marks = ("[Authorization", "[AuthenticationFailed]", "[PublicAccessNotPermitted]")
    missing_marks = ("[ContainerNotFound]", "[BlobNotFound]", "[PathNotFound]")
    error_marks = ("Azure Error",)

    def split_authority(self, authority: str) -> tuple[str, str]:
        """The host of an account has a dot, which no container and no connection has here."""
        before, _, last = authority.rpartition("@")
        if "." not in last:
            return before, last
        connection, _, container = before.rpartition("@")
        return connection, f"{container}@{last}"

    def options(self, base: str) -> Mapping[str, Any]:
        scheme, name, authority = store_access.split(base)
        container, _, host = authority.partition("@")
        if not container:
            raise InputError(
                f"{scheme}://{authority}/: the URL names no container; give "
                f"{scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"
            )
        if name:
            known = store_access.connection(base, self.name, name)
        else:
            looked_up = store_access.looked_up(self.name, None)
            known = _of_environment() if looked_up is None else looked_up
        account, _, domain = host.partition(".")
        if account and known.get("account_name", account) != account:
            if name:
                raise InputError(
                    f"{scheme}://{authority}: the connection {name!r} is of another account; name "
                    "that of this account in the URL"
                )
            known = {}  # the keys of another account are not for this one
        account = account or known.get("account_name", "")
        if not account:
            raise InputError(
                f"{scheme}://{authority}: the account is unknown; give "
                f"{scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH, name an Airflow "
                "connection, or set AZURE_STORAGE_ACCOUNT"
            )
        return {**_authorities(domain.partition(".")[2]), **known, "account_name": account}

    def from_connection(self, connection: Any) -> Mapping[str, Any]:
        """By the fields of the types ``wasb`` and ``adls``: host or login name the account."""
        extra = connection.extra_dejson
        text = extra.get("connection_string")
        if text:
            return _of_connection_string(text)
        host = (connection.host or "").partition("://")[2] or connection.host or ""
        host = host.strip("/")
        tenant = extra.get("tenant_id") or extra.get("tenant")
        options = {
            "account_name": extra.get("account_name") or host.partition(".")[0] or connection.login,
            "sas_token": extra.get("sas_token"),
        }
        if tenant and connection.login and connection.password:
            options["tenant_id"] = tenant
            options["client_id"] = connection.login
            options["client_secret"] = connection.password
        elif not options["sas_token"]:
            options["account_key"] = connection.password or extra.get("account_key")
        return {name: value for name, value in options.items() if value}

    def servers(self, base: str) -> set[str]:
        """The container with its account, which the connection names where the URL does not."""
        container, _, host = store_access.split(base)[2].lower().partition("@")
        account = host.partition(".")[0] or store_access.options(base)["account_name"]
        return {f"abfss://{container}@{account}"}

    def known_as(self, base: str) -> set[str]:
        with suppress(InputError):  # an unknown account cannot be read from either
            return self.servers(base)
        return super().servers(base)

    def connect(self, options: Mapping[str, Any]) -> pa_fs.FileSystem:
        import pyarrow.fs as pa_fs

        if not hasattr(pa_fs, "AzureFileSystem"):
            raise InputError(
                "abfss: this pyarrow was built without Azure; install the wheel from PyPI, version "
                "20 or later"
            )
        store = pa_fs.AzureFileSystem(**options)
        _sign_in(store)
        return store

    def path_in(self, base: str, path: str) -> str:
        return store_access.split(base)[2].partition("@")[0] + path

    def remove_file(self, url: str) -> None:
        """Arrow locks a blob for 15 seconds to delete it; a process killed then leaves the lock."""
        for pause in _PAUSES:
            try:
                return super().remove_file(url)
            except OSError as error:
                if _LOCKED not in str(error):
                    raise
            time.sleep(pause)
        return super().remove_file(url)

    def upload(self, url: str, content: IO[bytes]) -> None:
        """Under a hidden name, then by a copy: Arrow makes an empty blob before it has content."""
        temporary = self.unfinished(url)
        try:
            super().upload(temporary, content)
            self.copy(temporary, url)
        finally:
            with suppress(OSError):
                self.remove_file(temporary)


def _sign_in(store: pa_fs.FileSystem) -> None:
    """Try the key or credential once, by the one request that ends in an error where it fails.

    With any other Arrow ends the process. What the server answers to this one does not matter.
    """
    import pyarrow as pa

    try:
        store.get_file_info("none/none")
    except OSError:  # what is asked next tells it
        return
    except pa.ArrowException as error:
        kind, _, reason = str(error).partition("' failed: ")[2].partition(": ")
        text = (
            f"abfss: Azure's client cannot sign in ({reason.partition(chr(10))[0].rstrip('.')}); "
            "correct the key or the credential in the Airflow connection or the environment"
        )
        if "AuthenticationException" in kind:  # who gives tokens may be away for a moment
            raise OSError(errno.EIO, text) from None
        raise InputError(text) from None


def _of_environment() -> Mapping[str, Any]:
    if text := os.environ.get("AZURE_STORAGE_CONNECTION_STRING"):
        return _of_connection_string(text)
    options = {
        "account_name": os.environ.get("AZURE_STORAGE_ACCOUNT"),
        "account_key": os.environ.get("AZURE_STORAGE_KEY"),
    }
    if not options["account_key"]:
        options["sas_token"] = os.environ.get("AZURE_STORAGE_SAS_TOKEN")
    return {name: value for name, value in options.items() if value}


def _of_connection_string(text: str) -> Mapping[str, Any]:
    """The options that a connection string of Azure's portal gives."""
    fields = dict(field.split("=", 1) for field in text.strip().split(";") if "=" in field)
    options = {
        "account_name": fields.get("AccountName"),
        "account_key": fields.get("AccountKey"),
        "sas_token": fields.get("SharedAccessSignature"),
        **_authorities(fields.get("EndpointSuffix", "")),
    }
    scheme = fields.get("DefaultEndpointsProtocol")
    options |= {"blob_storage_scheme": scheme, "dfs_storage_scheme": scheme}
    if endpoint := fields.get("BlobEndpoint"):
        parts = urlsplit(endpoint)
        for kind in ("blob", "dfs"):
            options[f"{kind}_storage_authority"] = parts.netloc
            options[f"{kind}_storage_scheme"] = parts.scheme
    return {name: value for name, value in options.items() if value}


def _authorities(domain: str) -> dict[str, str]:
    """The options for a cloud of Azure with another domain than ``core.windows.net``."""
    if not domain or domain == "core.windows.net":
        return {}
    return {f"{kind}_storage_authority": f".{kind}.{domain}" for kind in ("blob", "dfs")}
