"""A folder on a remote store, with which tests deal by nothing of this project."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from email.utils import formatdate
from pathlib import Path
from typing import Any, Protocol

from servers.azure import ACCOUNT, KEY
from servers.hdfs import Hdfs
from servers.processes import START_S, ServerError
from servers.proxy import Proxy
from servers.s3 import S3, Request

USER = "alice"


class Store(Protocol):
    """A folder of its own for each test."""

    name: str

    def url(self, path: str = "") -> str:
        """The URL of something in the folder."""

    def put(self, path: str, content: bytes) -> str:
        """Write a file; its URL."""

    def fetch(self, path: str) -> bytes:
        """The content of a file."""

    def names(self, path: str = "") -> list[str]:
        """What a directory holds, sorted; nothing where there is none."""

    def copy(self, path: str, target: Path) -> Path:
        """Copy a directory of files to the local file system."""
        target.mkdir()
        for name in self.names(path):
            (target / name).write_bytes(self.fetch(f"{path}/{name}"))
        return target

    def bytes_read(self) -> int:
        """How much was read of files in the folder so far, but for :meth:`fetch`."""


class HdfsFolder(Store):
    """A folder on HDFS that belongs to ``alice``."""

    name = "hdfs"

    def __init__(self, server: Hdfs, root: str) -> None:
        self.server = server
        self._root = root
        server.call("MKDIRS", root, method="PUT", user=USER)

    def url(self, path: str = "") -> str:
        return self.server.url(self.path(path))

    def path(self, path: str = "") -> str:
        """The path on HDFS of something in the folder."""
        return f"{self._root}/{path}".rstrip("/")

    def put(self, path: str, content: bytes) -> str:
        where = self._data_node("CREATE", path, "PUT", overwrite="true", noredirect="true")
        request = urllib.request.Request(where, content, method="PUT")
        urllib.request.urlopen(request, timeout=START_S).close()
        return self.url(path)

    def fetch(self, path: str) -> bytes:
        where = self._data_node("OPEN", path, "GET", noredirect="true")
        with urllib.request.urlopen(where, timeout=START_S) as file:
            return bytes(file.read())

    def names(self, path: str = "") -> list[str]:
        try:
            told = self.server.call("LISTSTATUS", self.path(path))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise
        return sorted(each["pathSuffix"] for each in told["FileStatuses"]["FileStatus"])

    def bytes_read(self) -> int:
        asked = [told for _, told in self.server.requests("OPEN")]
        return sum(
            int(told["length"]) for told in asked if told["path"].startswith(f"{self.path()}/")
        )

    def _data_node(self, op: str, path: str, method: str, **parameters: str) -> str:
        told = self.server.call(op, self.path(path), method=method, user=USER, **parameters)
        return urllib.parse.quote(told["Location"], safe="%/:?=&+")


class ObjectFolder(Store, Protocol):
    """A bucket of an object store, behind a server that tells what it was asked."""

    server: S3 | Proxy
    bucket: str

    def delete(self, path: str) -> None:
        """Delete an object."""

    def is_copy(self, request: Request) -> bool:
        """Whether a request copies an object on the server."""

    def end_locks(self) -> None:
        """Do as if the locks that a killed client left had run out, where there are locks."""

    def read_directly(self) -> AbstractContextManager[None]:
        """Read without the server that tells of requests, where Arrow cannot read through it."""
        return nullcontext()

    def bytes_read(self) -> int:
        return sum(each.bytes for each in self.server.requests if each.method == "GET")


class S3Folder(ObjectFolder):
    """A bucket."""

    name = "s3"

    def __init__(self, server: S3, bucket: str) -> None:
        import boto3

        self.server = server
        self.bucket = bucket
        self._client = boto3.client(
            "s3",
            endpoint_url=server.endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        self._client.create_bucket(Bucket=bucket)

    def url(self, path: str = "") -> str:
        return f"s3://{self.bucket}/{path}"

    def put(self, path: str, content: bytes) -> str:
        self._client.put_object(Bucket=self.bucket, Key=path, Body=content)
        return self.url(path)

    def fetch(self, path: str) -> bytes:
        return bytes(self._client.get_object(Bucket=self.bucket, Key=path)["Body"].read())

    def names(self, path: str = "") -> list[str]:
        prefix = f"{path}/" if path else ""
        told = self._client.list_objects_v2(Bucket=self.bucket, Prefix=prefix, Delimiter="/")
        files = [each["Key"] for each in told.get("Contents", []) if each["Key"] != prefix]
        folders = [each["Prefix"].rstrip("/") for each in told.get("CommonPrefixes", [])]
        return sorted(key.removeprefix(prefix) for key in files + folders)

    def is_copy(self, request: Request) -> bool:
        return "x-amz-copy-source" in request.headers

    def delete(self, path: str) -> None:
        self._client.delete_object(Bucket=self.bucket, Key=path)


class GcsFolder(ObjectFolder):
    """A bucket, by Google's JSON protocol."""

    name = "gcs"

    def __init__(self, server: Proxy, bucket: str) -> None:
        self.server = server
        self.bucket = bucket
        body = json.dumps({"name": bucket}).encode()
        self._ask("POST", "/storage/v1/b?project=p", body, {"Content-Type": "application/json"})

    def url(self, path: str = "") -> str:
        return f"gs://{self.bucket}/{path}"

    def put(self, path: str, content: bytes) -> str:
        name = urllib.parse.quote(path, safe="")
        self._ask(
            "POST",
            f"/upload/storage/v1/b/{self.bucket}/o?uploadType=media&name={name}",
            content,
            {"Content-Type": "application/octet-stream"},
        )
        return self.url(path)

    def fetch(self, path: str) -> bytes:
        return self._ask("GET", f"{self._object(path)}?alt=media")

    def names(self, path: str = "") -> list[str]:
        prefix = f"{path}/" if path else ""
        query = urllib.parse.urlencode({"prefix": prefix, "delimiter": "/"})
        told = json.loads(self._ask("GET", f"/storage/v1/b/{self.bucket}/o?{query}"))
        files = [each["name"] for each in told.get("items", [])]
        folders = [name.rstrip("/") for name in told.get("prefixes", [])]
        found = {name.removeprefix(prefix) for name in files + folders if name != prefix}
        return sorted(name.rstrip("/") for name in found)

    def is_copy(self, request: Request) -> bool:
        return "/rewriteTo/" in request.path

    @contextmanager
    def read_directly(self) -> Iterator[None]:
        """Arrow opens a Parquet file there with Python's lock held, which this process needs."""
        name = "STORAGE_EMULATOR_HOST"
        before, os.environ[name] = os.environ[name], f"http://127.0.0.1:{self.server.port}"
        try:
            yield
        finally:
            os.environ[name] = before

    def delete(self, path: str) -> None:
        self._ask("DELETE", self._object(path))

    def _object(self, path: str) -> str:
        return f"/storage/v1/b/{self.bucket}/o/{urllib.parse.quote(path, safe='')}"

    def _ask(self, method: str, path: str, body: bytes | None = None, headers: Any = None) -> bytes:
        url = f"http://127.0.0.1:{self.server.port}{path}"
        request = urllib.request.Request(url, body, headers or {}, method=method)
        with urllib.request.urlopen(request, timeout=START_S) as answer:
            return bytes(answer.read())


class AzureFolder(ObjectFolder):
    """A container, by the protocol of Azure's blobs."""

    name = "azure"

    def __init__(self, server: Proxy, container: str) -> None:
        self.server = server
        self.bucket = container
        self._ask("PUT", f"/{container}", {"restype": "container"})

    def url(self, path: str = "") -> str:
        return f"abfss://{self.bucket}@{ACCOUNT}.dfs.core.windows.net/{path}"

    def put(self, path: str, content: bytes) -> str:
        self._ask("PUT", self._blob(path), {}, content, {"x-ms-blob-type": "BlockBlob"})
        return self.url(path)

    def fetch(self, path: str) -> bytes:
        return self._ask("GET", self._blob(path), {})

    def names(self, path: str = "") -> list[str]:
        prefix = f"{path}/" if path else ""
        query = {"restype": "container", "comp": "list", "prefix": prefix, "delimiter": "/"}
        told = self._ask("GET", f"/{self.bucket}", query).decode()
        listed = re.findall(r"<(?:Blob|BlobPrefix)><Name>([^<]*)</Name>", told)
        found = {name.removeprefix(prefix) for name in listed if name != prefix}
        return sorted({name.rstrip("/") for name in found})

    def is_copy(self, request: Request) -> bool:
        source = request.headers.get("x-ms-copy-source", "")
        return "/" in source and "/." not in source  # as a file that is being written has

    def delete(self, path: str) -> None:
        self._ask("DELETE", self._blob(path), {})

    def end_locks(self) -> None:
        listed = self._ask("GET", f"/{self.bucket}", {"restype": "container", "comp": "list"})
        for name in re.findall(r"<Name>([^<]*)</Name>(?:(?!<Name>).)*>leased<", listed.decode()):
            how = {"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"}
            self._ask("PUT", self._blob(name), {"comp": "lease"}, headers=how)

    def _blob(self, path: str) -> str:
        return f"/{self.bucket}/{urllib.parse.quote(path)}"

    def _ask(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: bytes = b"",
        headers: dict[str, str] | None = None,
    ) -> bytes:
        """Ask with a signature by the account's key, as Azure's protocol wants it."""
        own = {
            "x-ms-date": formatdate(usegmt=True),
            "x-ms-version": "2021-12-02",
            **(headers or {}),
        }
        kind = "application/octet-stream" if body else ""
        length = str(len(body)) if body else ""
        signed = "".join(f"{name}:{own[name]}\n" for name in sorted(own))
        asked = "".join(f"\n{name}:{query[name]}" for name in sorted(query))
        text = (
            f"{method}\n\n\n{length}\n\n{kind}\n\n\n\n\n\n\n"
            f"{signed}/{ACCOUNT}/{ACCOUNT}{path}{asked}"
        )
        digest = hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)
        own["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        if body:
            own["Content-Type"] = kind
        url = f"/{ACCOUNT}{path}?{urllib.parse.urlencode(query)}"
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=START_S)
        with closing(connection):
            connection.request(method, url, body, own)
            answer = connection.getresponse()
            content = bytes(answer.read())
        if answer.status >= 400:
            raise ServerError(f"{method} {path}: {answer.status} {content!r}")
        return content
