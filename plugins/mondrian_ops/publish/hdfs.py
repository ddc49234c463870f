"""Publication on HDFS, which renames directories but cannot exchange two.

One rename moves the old release aside, another puts the new one in its place. A reader between the
two finds nothing, and so does a reader after a kill between the two, until the next :func:`recover`
puts the old release back.
"""

from __future__ import annotations

from mondrian_ops.errors import StorageError
from mondrian_ops.publish import manifest
from mondrian_ops.stores.files import file_info, hdfs_client, list_directory, remove_tree
from mondrian_ops.stores.locations import filesystem, joined, name_of, parent_of, shown


def recover(target: str, _token: str = "") -> None:
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


def refuse_unwritable(target: str) -> None:
    """Raise StorageError if this user cannot make the release."""
    ancestor = parent_of(target)
    while (directory := file_info(ancestor)) is None:
        ancestor = parent_of(ancestor)
    if not directory.is_directory or not hdfs_client(ancestor).may_write(filesystem(ancestor)[1]):
        raise StorageError(
            f"output: {shown(ancestor)} is not a directory this user may write to; "
            "choose another `output`, or grant the permission"
        )


def place(staging: str, target: str, _token: str, _progress: object) -> None:
    """Make a complete ``staging`` the release at ``target``; the one it replaces is removed."""
    if _is_free(target):
        _rename(staging, target)
        return
    aside = _aside(target)
    _rename(target, aside)
    try:
        _rename(staging, target)
    except BaseException:
        recover(target)
        raise
    remove_tree(aside)


def _is_free(target: str) -> bool:
    return file_info(target) is None or not list_directory(target)


def _rename(source: str, target: str) -> None:
    hdfs_client(source).mv(filesystem(source)[1], filesystem(target)[1])


def _aside(target: str) -> str:
    return joined(parent_of(target), f".{name_of(target)}.mondrian_ops-previous")
