"""Putting a release in its place on S3, which renames nothing.

The parts, whose names no other release has, are copied beside those of the old release, on the
server; then the report; then ``_SUCCESS``, which names the parts. That is the step that counts:
whoever follows it reads the old release until then, and the new one from then on. The old parts are
deleted after it. A marker that is there meanwhile lets the next :func:`recover` tell what a killed
process left behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mondrian_ops.storage import manifest
from mondrian_ops.storage.files import remove_file, remove_tree, write_file
from mondrian_ops.storage.locations import filesystem, joined, shown
from mondrian_ops.storage.remote import Entry, entries, entry, store_errors

__all__ = ["alone", "place", "recover", "refuse_unwritable"]

_MARKER = "_mondrian_ops-publishing"


@contextmanager
def alone(target: str) -> Iterator[None]:
    """S3 has no lock to take: of two that publish to ``target`` at once, both may succeed."""
    yield


def recover(target: str) -> None:
    """Remove what a publication that was killed left beside a release, or instead of one."""
    marker = entry(joined(target, _MARKER))
    if marker is not None:
        _clear(target)


def refuse_unwritable(target: str) -> None:
    """Nothing tells beforehand what may be written to a bucket; making the working files will."""


def place(staging: str, target: str) -> None:
    """Make a complete ``staging`` the release at ``target``; parts that were there are deleted.

    Raises:
        OSError: what was copied is not there any more: a run that began meanwhile took it for what
            a killed process left. Doing it again may help; nothing was published.
    """
    staged = sorted(entries(staging), key=_moment)
    write_file(joined(target, _MARKER), b"")
    for each in staged:
        if each.name == manifest.NAME:
            _refuse_gaps(staged, target)
        store, source = filesystem(each.url)
        with store_errors(each.url):
            store.copy_file(source, filesystem(joined(target, each.name))[1])
    _clear(target)
    remove_tree(staging)


def _refuse_gaps(staged: Sequence[Entry], target: str) -> None:
    """The manifest comes next, and names only what is there."""
    there = {each.name for each in entries(target)}
    gone = [each.name for each in staged if each.name not in there | {manifest.NAME}]
    if gone:
        raise OSError(
            f"{shown(target)}: {len(gone)} of the parts that were copied there are gone; a run "
            "that began meanwhile took them for leftovers, try again"
        )


def _moment(staged: Entry) -> int:
    """Parts come first, then the report, then what names the parts."""
    if staged.name == manifest.NAME:
        return 2
    return 1 if staged.name.startswith("_") else 0


def _clear(target: str) -> None:
    """Delete what the manifest does not name, then the marker; without a manifest, everything."""
    told = manifest.read(target)
    named = manifest.names(told)
    marker = joined(target, _MARKER)
    for each in entries(target):
        stays = each.name in named or (told is not None and each.name.startswith("_"))
        if not stays and each.url != marker:
            remove_file(each.url)
    remove_file(marker)
