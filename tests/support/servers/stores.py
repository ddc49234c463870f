"""A folder on a remote store, with which tests deal by nothing of this project."""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Protocol

from servers.hdfs import Hdfs
from servers.processes import START_S
from servers.s3 import S3

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


class S3Folder(Store):
    """A bucket."""

    name = "s3"

    def __init__(self, server: S3, bucket: str) -> None:
        import boto3

        self.server = server
        self._bucket = bucket
        self._client = boto3.client(
            "s3",
            endpoint_url=server.endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        self._client.create_bucket(Bucket=bucket)

    def url(self, path: str = "") -> str:
        return f"s3://{self._bucket}/{path}"

    def put(self, path: str, content: bytes) -> str:
        self._client.put_object(Bucket=self._bucket, Key=path, Body=content)
        return self.url(path)

    def fetch(self, path: str) -> bytes:
        return bytes(self._client.get_object(Bucket=self._bucket, Key=path)["Body"].read())

    def names(self, path: str = "") -> list[str]:
        prefix = f"{path}/" if path else ""
        told = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix, Delimiter="/")
        files = [each["Key"] for each in told.get("Contents", []) if each["Key"] != prefix]
        folders = [each["Prefix"].rstrip("/") for each in told.get("CommonPrefixes", [])]
        return sorted(key.removeprefix(prefix) for key in files + folders)

    def delete(self, path: str) -> None:
        """Delete an object."""
        self._client.delete_object(Bucket=self._bucket, Key=path)

    def bytes_read(self) -> int:
        return sum(each.bytes for each in self.server.requests if each.method == "GET")
