"""An S3 in memory, as Arrow's file system of one: it cannot rename, and tells what it was asked."""

from __future__ import annotations

import errno
import io
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.fs as pa_fs
import pytest

from mondrian_ops.stores import store_access

_PAGE = 1000
"""Keys that one request lists, or deletes."""


class ObjectStore(pa_fs.FileSystemHandler):  # type: ignore[misc]
    """Objects by key, each with the second of its last change: every request takes one.

    Attributes: ``objects`` (content and time by key), ``requests`` (how many of each kind),
    ``before`` (called with the kind and key of each request, before it is carried out).
    """

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.requests: Counter[str] = Counter()
        self.before: Callable[[str, str], None] = lambda kind, key: None
        self._seconds = itertools.count(1_700_000_000)

    def names(self, folder: str) -> list[str]:
        """The names of the objects in a folder, sorted."""
        prefix = f"{folder}/"
        return sorted(key.removeprefix(prefix) for key in self.objects if key.startswith(prefix))

    def _ask(self, kind: str, key: str) -> int:
        self.before(kind, key)
        self.requests[kind] += 1
        return next(self._seconds)

    def _below(self, folder: str) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(f"{folder}/"))

    def _put(self, key: str, content: bytes) -> None:
        self.objects[key] = content, self._ask("put", key)

    def _info(self, key: str) -> pa_fs.FileInfo:
        if key in self.objects:
            content, second = self.objects[key]
            return pa_fs.FileInfo(key, pa_fs.FileType.File, size=len(content), mtime=float(second))
        kind = pa_fs.FileType.Directory if self._below(key) else pa_fs.FileType.NotFound
        return pa_fs.FileInfo(key, kind)

    # What Arrow calls

    def get_type_name(self) -> str:
        return "s3 in memory"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[pa_fs.FileInfo]:
        for path in paths:
            self._ask("head", path)
        return list(map(self._info, paths))

    def get_file_info_selector(self, selector: pa_fs.FileSelector) -> list[pa_fs.FileInfo]:
        below = self._below(selector.base_dir)
        for _ in range(max(1, -(-len(below) // _PAGE))):
            self._ask("list", selector.base_dir)
        if not below:
            raise FileNotFoundError(errno.ENOENT, "Path does not exist", selector.base_dir)
        depth = selector.base_dir.count("/") + 2
        return [self._info(key) for key in {"/".join(key.split("/")[:depth]) for key in below}]

    def create_dir(self, path: str, recursive: bool) -> None:
        """There are no directories."""

    def copy_file(self, src: str, dest: str) -> None:
        if src not in self.objects:
            raise FileNotFoundError(errno.ENOENT, "NO_SUCH_KEY", src)
        content = self.objects[src][0]
        self.objects[dest] = content, self._ask("copy", dest)

    def delete_file(self, path: str) -> None:
        self._ask("delete", path)
        self.objects.pop(path, None)

    def delete_dir(self, path: str) -> None:
        below = self._below(path)
        for first in range(0, len(below), _PAGE):
            self._ask("delete many", path)
            for key in below[first : first + _PAGE]:
                self.objects.pop(key, None)

    def open_input_file(self, path: str) -> pa.NativeFile:
        self._ask("get", path)
        if path not in self.objects:
            raise FileNotFoundError(errno.ENOENT, "NO_SUCH_KEY", path)
        return pa.PythonFile(io.BytesIO(self.objects[path][0]), "r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        return pa.PythonFile(_Upload(lambda content: self._put(path, content)), "w")

    def _cannot(self, *_: object) -> None:
        raise NotImplementedError("S3 cannot do this")

    move = open_append_stream = delete_dir_contents = delete_root_dir_contents = _cannot


class _Upload(io.BytesIO):
    def __init__(self, done: Callable[[bytes], None]) -> None:
        super().__init__()
        self._done = done

    def close(self) -> None:
        if not self.closed:
            self._done(self.getvalue())
        super().close()


def connect(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``s3://`` lead to this store."""
    monkeypatch.setattr(store_access, "connected", lambda base: pa_fs.PyFileSystem(store))
