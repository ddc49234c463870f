"""Publication on S3, which cannot rename.

The parts, whose names no other release has, are copied beside those of the old release, on the
server; then the report; then ``_SUCCESS``, which names the parts. That last copy is the
publication: a reader that follows ``_SUCCESS`` reads the old release before it, the new one after
it. Then the old parts are deleted. A marker object exists meanwhile, by which the next
:func:`recover` recognizes what a killed process left behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from mondrian_ops.storage import manifest
from mondrian_ops.storage.files import (
    FileInfo,
    file_info,
    list_directory,
    remove_file,
    remove_tree,
    store_errors,
    write_file,
)
from mondrian_ops.storage.locations import filesystem, joined, shown

__all__ = ["place", "recover", "refuse_unwritable"]

_MARKER = "_mondrian_ops-publishing"


def recover(target: str) -> None:
    """Remove what a killed publication left beside a release, or in place of one."""
    if file_info(joined(target, _MARKER)) is not None:
        _remove_unlisted(target)


def refuse_unwritable(target: str) -> None:
    """Do nothing: only writing tells what a bucket permits, and the working files come first."""


def place(staging: str, target: str) -> None:
    """Make a complete ``staging`` the release at ``target``; the parts it replaces are deleted.

    Raises:
        OSError: copied parts are missing, because a run that began meanwhile took them for the
            leftovers of a killed process. Nothing was published; a retry may succeed.
    """
    staged = sorted(list_directory(staging), key=_copy_order)
    write_file(joined(target, _MARKER), b"")
    for file in staged:
        if file.name == manifest.NAME:
            _refuse_gaps(staged, target)
        store, source = filesystem(file.url)
        with store_errors(file.url):
            store.copy_file(source, filesystem(joined(target, file.name))[1])
    _remove_unlisted(target)
    remove_tree(staging)


def _refuse_gaps(staged: Sequence[FileInfo], target: str) -> None:
    """Raise OSError unless everything that the manifest, copied next, names is there."""
    copied = {file.name for file in list_directory(target)}
    missing = [file.name for file in staged if file.name not in copied | {manifest.NAME}]
    if missing:
        raise OSError(
            f"{shown(target)}: {len(missing)} of the copied parts are gone, probably removed as "
            "leftovers by a run that began meanwhile; run again"
        )


def _copy_order(staged: FileInfo) -> int:
    """Parts first, then the report, then the manifest."""
    if staged.name == manifest.NAME:
        return 2
    return 1 if staged.name.startswith("_") else 0


def _remove_unlisted(target: str) -> None:
    """Delete the parts that the manifest does not list, last the marker; all without a manifest."""
    listed = manifest.read(target)
    marker = joined(target, _MARKER)
    for file in list_directory(target):
        stays = listed is not None and (file.name in listed.names or file.name.startswith("_"))
        if not stays and file.url != marker:
            remove_file(file.url)
    remove_file(marker)
