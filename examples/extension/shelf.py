"""``shelf://NAME/PATH``: a folder below ``SHELF_ROOT``, used as a bucket of an object store is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.stores import store_access
from mondrian_ops.stores.locations import parent_of, shown
from mondrian_ops.stores.remote import RemoteStore

if TYPE_CHECKING:
    import pyarrow.fs as pa_fs


class ShelfStore(RemoteStore):
    """Folders and files, which belong to users of this machine."""

    name = "shelf"
    publication = "mondrian_ops.publish.objects:ObjectPublication"
    has_buckets = True
    has_round_trips = False

    def options(self, base: str) -> Mapping[str, Any]:
        root = os.environ.get("SHELF_ROOT")
        if not root:
            raise InputError(f"{base}: SHELF_ROOT does not name the folder of the shelves; set it")
        return {"folder": os.path.join(root, store_access.split(base)[2])}

    def connect(self, options: Mapping[str, Any]) -> pa_fs.FileSystem:
        import pyarrow.fs as pa_fs

        return pa_fs.SubTreeFileSystem(options["folder"], pa_fs.LocalFileSystem())

    def path_in(self, base: str, path: str) -> str:
        return path.lstrip("/")

    def upload(self, url: str, content: IO[bytes]) -> None:
        """As in a bucket, no folder has to be made before a file is written into it."""
        os.makedirs(self._path(parent_of(url)), exist_ok=True)
        with self._in_one_step(url) as hidden:
            super().upload(hidden, content)

    def copy(self, source: str, target: str) -> None:
        os.makedirs(self._path(parent_of(target)), exist_ok=True)
        with self._in_one_step(target) as hidden:
            super().copy(source, hidden)

    def make_private(self, url: str) -> None:
        os.makedirs(self._path(parent_of(url)), exist_ok=True)
        os.mkdir(self._path(url), mode=0o700)

    def keep_private(self, url: str) -> None:
        path = self._path(url)
        if os.path.islink(path) or os.stat(path).st_uid != os.getuid():
            raise StorageError(
                f"{shown(url)}: a link, or another user's, so it would not be private; remove it"
            )
        os.chmod(path, 0o700)

    @contextmanager
    def _in_one_step(self, url: str) -> Iterator[str]:
        """A hidden name to write under, which then takes the place of the file."""
        hidden = self.unfinished(url)
        try:
            yield hidden
            os.replace(self._path(hidden), self._path(url))
        except BaseException:
            self.remove_file(hidden)
            raise

    def _path(self, url: str) -> str:
        """The path on this machine."""
        base, path = self.parts(url)
        folder: str = store_access.options(base)["folder"]
        return folder + path
