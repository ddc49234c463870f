"""How a store's releases appear: what the rest asks, and which class answers for a location."""

from __future__ import annotations

import fnmatch
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from pkgutil import resolve_name
from typing import ClassVar, NamedTuple

from mondrian_ops.errors import StorageError
from mondrian_ops.publish import manifest
from mondrian_ops.stores.documents import json_value
from mondrian_ops.stores.files import (
    file_info,
    list_directory,
    names_in,
    read_file,
    remove_files,
    write_file,
)
from mondrian_ops.stores.locations import is_hidden, joined, shown
from mondrian_ops.stores.places import place_of
from mondrian_ops.stores.store import store_of

Progress = Callable[[int, int], None]
"""Called with the number of parts that are copied, and of all."""

REPORT = "_report.json"
_REPORT_KEYS = frozenset(
    {"job", "equivalence_classes"}
)  # keys by which a report of this package is recognized


class Candidate(NamedTuple):
    """A release that is written, and not yet checked.

    Attributes:
        token: that of the attempt.
        rows: by the location of each part, its rows.
        about: the run, k and l, which the publication shows to its readers.
    """

    token: str
    rows: Mapping[str, int]
    about: Mapping[str, str]


class Publication(ABC):
    """How a release replaces the one before, by what its store can do in one step.

    In all of them the old release stays until the new one is complete, and the next
    :meth:`recover` repairs what a killed process left behind.

    The methods that are not abstract do what is right where a release is a directory.
    """

    manifest_tells: ClassVar[bool] = False
    """Whether parts of two releases may lie there at once, so that readers need the manifest."""

    def lock(self, target: str) -> AbstractContextManager[None]:
        """Keep other processes from publishing there, where the store has locks.

        Raises TimeoutError, which a retry may cure.
        """
        return nullcontext()

    @abstractmethod
    def recover(self, target: str, token: str = "") -> None:
        """Repair what an unfinished publication left.

        What the attempt with this ``token`` left may stay, if :meth:`place` goes on with it.
        """

    @abstractmethod
    def refuse_unwritable(self, target: str) -> None:
        """Raise StorageError if this process cannot make the release, as far as the store tells."""

    @abstractmethod
    def place(self, staging: str, target: str, token: str, progress: Progress) -> None:
        """Make a complete ``staging`` the release at ``target``; the one it replaces is removed."""

    def is_begun(self, names: Collection[str]) -> bool:
        """Whether a directory of these names was left by :meth:`recover` to be gone on with."""
        return False

    # What is there

    def beside(self, target: str) -> str:
        """The location beside which the working files of a run lie."""
        return target

    def above(self, targets: str) -> str:
        """The directory in which releases lie; ``targets``: what their locations begin with."""
        return targets.rpartition("/")[0] or "/"

    def folder(self, target: str) -> str | None:
        """The directory of the release that readers see, with its report; None without one."""
        return target

    def token(self, target: str) -> str | None:
        """The token with which the release was published; None without a release."""
        current = manifest.read(target)
        return None if current is None else current.token

    def refuse_occupied(self, target: str) -> None:
        """Raise StorageError if something is there that is not a release."""
        names = _names_in(target)
        if names is None:
            return
        is_begun = self.is_begun(names)
        if names and not is_begun and not _is_release(target):
            raise StorageError(
                f"output: {shown(target)} holds something that is not a release; choose another "
                "`output`, or remove it yourself"
            )
        for name in names:
            if not is_hidden(name) and not fnmatch.fnmatchcase(name, manifest.PART_PATTERN):
                raise StorageError(
                    f"output: {shown(joined(target, name))} is not part of a release and would be "
                    "deleted with it; move it elsewhere"
                )

    # Steps

    def stage(self, target: str, candidate: Candidate) -> None:  # noqa: B027 - one without readers
        """Show a release to those alone who check it, as its readers will find it.

        Raises StorageError where readers would find something else.
        """

    def unstage(self, target: str, token: str) -> bool:
        """Take back what :meth:`stage` did; returns whether readers still need the parts."""
        return False

    def publish(
        self,
        staging: str,
        target: str,
        token: str,
        refuse: Callable[[], None],
        progress: Progress,
    ) -> None:
        """Complete ``staging`` and :meth:`place` it, unless ``refuse`` raises."""
        refuse()
        complete(staging, staging, token)
        self.place(staging, target, token, progress)


def complete(staging: str, parts: str, token: str) -> None:
    """Remove the unfinished files of killed attempts, and add ``_SUCCESS`` beside the parts."""
    hidden = [name for name in names_in(staging) if name.startswith(".")]
    remove_files(joined(staging, name) for name in hidden)
    sizes = {file.name: file.bytes for file in list_directory(parts, hidden=False)}
    files = [(name, sizes[name]) for name in manifest.parts_among(sizes)]
    write_file(joined(parts, manifest.NAME), manifest.build(token, files))


def aside_of(name: str) -> str:
    """The name beside a release's own to which the one that is replaced is moved for a moment."""
    return f".{name}.mondrian_ops-previous"


def publication_of(target: str) -> Publication:
    """The publication at a location, of a store or a catalog; raises InputError without one."""
    return _publication(place_of(target).publication or store_of(target).publication)


@lru_cache(maxsize=64)
def _publication(name: str) -> Publication:
    kind: type[Publication] = resolve_name(name)
    return kind()


def _names_in(target: str) -> list[str] | None:
    """The names in a directory; None where there is nothing at all."""
    existing = file_info(target)
    if existing is None:
        return None
    if not existing.is_directory:
        raise StorageError(
            f"output: {shown(target)} is a file, not a release; "
            "choose another `output`, or remove it yourself"
        )
    return list(names_in(target))


def _is_release(target: str) -> bool:
    try:
        report = json_value(read_file(joined(target, REPORT)))
        read_file(joined(target, manifest.NAME))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError, ValueError):
        return False
    return isinstance(report, dict) and report.keys() >= _REPORT_KEYS
