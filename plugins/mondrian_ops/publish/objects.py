"""Publication on object stores, which cannot rename: S3 and its like.

The parts, whose names no other release has, are copied beside those of the old release, on the
server and several at once; then the report; then ``_SUCCESS``, which names the parts. That last
copy is the publication: a reader that follows ``_SUCCESS`` reads the old release before it, the new
one after it. Then parts that another run has deleted meanwhile are copied again, and the old parts
are deleted.

A marker object exists meanwhile, with the token of the attempt that publishes. By it the next
:meth:`ObjectPublication.recover` recognizes what a killed process left behind: the retry of that
attempt goes on and copies the parts that are missing, everybody else takes the marker over and
removes them. Who has lost the marker deletes nothing more, and does not copy ``_SUCCESS``.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from functools import partial

from mondrian_ops.publish import manifest
from mondrian_ops.publish.publication import Progress, Publication
from mondrian_ops.stores.files import (
    concurrently,
    list_directory,
    read_file,
    remove_file,
    remove_files,
    remove_tree,
    write_file,
)
from mondrian_ops.stores.locations import joined, shown
from mondrian_ops.stores.remote import is_unfinished
from mondrian_ops.stores.store import FileInfo, store_of

MARKER = "_mondrian_ops-publishing"
"""The object that is beside a release while it is published."""

_DELETED_AT_ONCE = 256  # before the marker is looked at again


class ObjectPublication(Publication):
    """By copies, the last of which is that of the manifest."""

    manifest_tells = True

    def recover(self, target: str, token: str = "") -> None:
        """Remove what a killed publication left beside a release, or in place of one.

        Its parts stay, with the :data:`MARKER`, if it was that of the attempt with this ``token``,
        so that :meth:`place` can resume it.
        """
        holder = _holder(target)
        if holder is None:
            return
        if holder == token and not _is_published(target, token):
            files = _files(target)
            leftovers = _leftovers(files, manifest.read(target))
            remove_files(file.url for file in leftovers if file.name.startswith("_"))
            return
        _hold(target, holder := uuid.uuid4().hex)
        _remove_leftovers(target, holder)

    def refuse_unwritable(self, target: str) -> None:
        """Do nothing: only writing tells what a bucket permits, and working files come first."""

    def place(self, staging: str, target: str, token: str, progress: Progress) -> None:
        """Make a complete ``staging`` the release at ``target``; replaced parts are deleted.

        Raises:
            OSError: a run that began meanwhile publishes here too, or took the copied parts for
                the leftovers of a killed process. Nothing was published; a retry may succeed.
        """
        holder = token or uuid.uuid4().hex
        _hold(target, holder)
        staged = list_directory(staging)
        parts = [file for file in staged if not file.name.startswith("_")]
        _copy_missing(parts, target, progress)
        for file in staged:
            if file.name.startswith("_") and file.name != manifest.NAME:
                _copy(target, file)
        _refuse_loss(parts, target, holder)
        (complete,) = (file for file in staged if file.name == manifest.NAME)
        _copy(target, complete)
        # A run that began after that look may take parts for leftovers, until it sees _SUCCESS.
        concurrently(partial(_copy, target), _lost(parts, target), lambda _: None)
        _remove_leftovers(target, holder, [file.name for file in staged])
        remove_tree(staging)

    def is_begun(self, names: Collection[str]) -> bool:
        """By the marker, or what a process left that was killed while it wrote it."""
        return MARKER in names or any(is_unfinished(name, MARKER) for name in names)


def _copy_missing(parts: Sequence[FileInfo], target: str, progress: Progress) -> None:
    there = {file.name: file for file in list_directory(target)}
    missing = [part for part in parts if not _is_copy(there.get(part.name), part)]
    copied = len(parts) - len(missing)
    progress(copied, len(parts))
    concurrently(partial(_copy, target), missing, lambda done: progress(copied + done, len(parts)))


def _is_copy(file: FileInfo | None, part: FileInfo) -> bool:
    """Whether a file was copied from a part as it is now; times are seconds of the store."""
    return file is not None and file.bytes == part.bytes and file.modified > part.modified


def _copy(target: str, file: FileInfo) -> None:
    store_of(file.url).copy(file.url, joined(target, file.name))


def _refuse_loss(parts: Sequence[FileInfo], target: str, holder: str) -> None:
    """Raise OSError unless all parts are there and the marker, looked at last, is still held."""
    lost = _lost(parts, target)
    if lost:
        raise OSError(
            f"{shown(target)}: {len(lost)} of the copied parts are gone, probably removed as "
            "leftovers by a run that began meanwhile; run again"
        )
    if _holder(target) != holder:
        raise OSError(
            f"{shown(target)}: another run began meanwhile and publishes here, or removes "
            "leftovers; nothing was published; run again"
        )


def _lost(parts: Sequence[FileInfo], target: str) -> list[FileInfo]:
    there = {file.name for file in list_directory(target)}
    return [part for part in parts if part.name not in there]


def _hold(target: str, holder: str) -> None:
    write_file(joined(target, MARKER), holder.encode())


def _holder(target: str) -> str | None:
    """The content of the marker; None if there is none."""
    try:
        return read_file(joined(target, MARKER)).decode(errors="replace")
    except FileNotFoundError:
        return None


def _is_published(target: str, token: str) -> bool:
    current = manifest.read(target)
    return current is not None and current.token == token


def _remove_leftovers(target: str, holder: str, reports: Collection[str] | None = None) -> None:
    """Delete what is not of the release, last the marker; who loses that stops.

    ``reports``: the names of the files beside the parts, where they are known. The manifest is read
    again before each deletion, since another run may publish meanwhile.
    """
    files = _files(target)
    while _holder(target) == holder:
        leftovers = _leftovers(files, manifest.read(target), reports)
        if not leftovers:
            remove_file(joined(target, MARKER))
            return
        gone = {file.url for file in leftovers[:_DELETED_AT_ONCE]}
        remove_files(gone)
        files = [file for file in files if file.url not in gone]


def _files(target: str) -> list[FileInfo]:
    return [file for file in list_directory(target) if file.name != MARKER]


def _leftovers(
    files: Sequence[FileInfo],
    listed: manifest.Manifest | None,
    reports: Collection[str] | None = None,
) -> list[FileInfo]:
    """The parts that the manifest does not list, and other ``reports`` than these.

    Everything where there is no manifest. It must be read after the files were listed: a release
    that was published between has its parts in both.
    """
    if listed is None:
        return list(files)
    return [
        file
        for file in files
        if (
            file.name not in listed.names
            if not file.name.startswith("_")
            else reports is not None and file.name not in reports
        )
    ]
