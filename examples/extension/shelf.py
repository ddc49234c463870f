"""``shelf://NAME/PATH``: a folder below ``SHELF_ROOT``, used as a bucket of an object store is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from mondrian_ops.errors import InputError
from mondrian_ops.stores import store_access
from mondrian_ops.stores.locations import parent_of
from mondrian_ops.stores.remote import RemoteStore

if TYPE_CHECKING:
    import pyarrow.fs as pa_fs


class ShelfStore(RemoteStore):
    """A folder, in which a name is written whole, and nothing is renamed."""

    name = "shelf"
    publication = "mondrian_ops.publish.objects:ObjectPublication"
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
        self.make_private(parent_of(url))
        super().upload(url, content)
