"""Putting a release in its place on HDFS, which renames directories but cannot exchange two.

An old release steps aside by one rename before the new one takes its place by another. A reader
between the two finds nothing; a process killed between the two leaves nothing, until the next
:func:`recover` puts the old release back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mondrian_ops.core.errors import StorageError
from mondrian_ops.storage.files import hdfs_client, remove_tree
from mondrian_ops.storage.locations import filesystem, joined, name_of, parent_of, shown
from mondrian_ops.storage.remote import entries, entry

__all__ = ["alone", "place", "recover", "refuse_unwritable"]


@contextmanager
def alone(target: str) -> Iterator[None]:
    """HDFS has no lock to take: of two that publish to ``target`` at once, both may succeed."""
    yield


def recover(target: str) -> None:
    """Put back a release that stepped aside for one that never came."""
    aside = _aside(target)
    if entry(aside) is None:
        return
    if _is_free(target):
        _rename(aside, target)
    else:
        remove_tree(aside)


def refuse_unwritable(target: str) -> None:
    """Raise StorageError where this user could not make the release."""
    ancestor = parent_of(target)
    while (found := entry(ancestor)) is None:
        ancestor = parent_of(ancestor)
    if not found.is_directory or not hdfs_client(ancestor).may_write(filesystem(ancestor)[1]):
        raise StorageError(
            f"output: {shown(ancestor)} is not a directory this user may write to; "
            "choose another `output`, or grant the permission"
        )


def place(staging: str, target: str) -> None:
    """Make a complete ``staging`` the directory at ``target``; what was there is removed."""
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
    return entry(target) is None or not entries(target)


def _rename(one: str, other: str) -> None:
    hdfs_client(one).mv(filesystem(one)[1], filesystem(other)[1])


def _aside(target: str) -> str:
    return joined(parent_of(target), f".{name_of(target)}.mondrian_ops-previous")
