"""Publication on HDFS, which renames directories but cannot exchange two.

One rename moves the old release aside, another puts the new one in its place. A reader between the
two finds nothing, and so does a reader after a kill between the two, until the next
:meth:`HdfsPublication.recover` puts the old release back.
"""

from __future__ import annotations

from mondrian_ops.errors import StorageError
from mondrian_ops.publish import manifest
from mondrian_ops.publish.publication import Progress, Publication, aside_of
from mondrian_ops.stores.files import file_info, list_directory, remove_tree
from mondrian_ops.stores.hdfs import hdfs_client
from mondrian_ops.stores.locations import filesystem, joined, name_of, parent_of, shown
from mondrian_ops.stores.store import store_of


class HdfsPublication(Publication):
    """By two renames."""

    def recover(self, target: str, token: str = "") -> None:
        """Put back a release that an unfinished publication moved aside.

        It is removed if another one took its place, and stays where something else is there.
        """
        aside = _aside(target)
        if file_info(aside) is None:
            return
        if _is_free(target):
            _rename(aside, target)
        elif file_info(joined(target, manifest.NAME)) is not None:
            remove_tree(aside)

    def refuse_unwritable(self, target: str) -> None:
        ancestor = parent_of(target)
        while (directory := file_info(ancestor)) is None:
            ancestor = parent_of(ancestor)
        client = hdfs_client(ancestor)
        if not directory.is_directory or not client.may_write(filesystem(ancestor)[1]):
            raise StorageError(
                f"output: {shown(ancestor)} is not a directory this user may write to; "
                "choose another `output`, or grant the permission"
            )

    def place(self, staging: str, target: str, token: str, progress: Progress) -> None:
        if _is_free(target):
            _rename(staging, target)
            return
        aside = _aside(target)
        _rename(target, aside)
        try:
            _rename(staging, target)
        except BaseException:
            self.recover(target)
            raise
        remove_tree(aside)


def _is_free(target: str) -> bool:
    return file_info(target) is None or not list_directory(target)


def _rename(source: str, target: str) -> None:
    store_of(source).move(source, target)


def _aside(target: str) -> str:
    return joined(parent_of(target), aside_of(name_of(target)))
