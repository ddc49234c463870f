"""How a store's releases appear: what the rest asks, and which class answers for a location."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from pkgutil import resolve_name
from typing import ClassVar

from mondrian_ops.stores.store import store_of

Progress = Callable[[int, int], None]
"""Called with the number of parts that are copied, and of all."""


class Publication(ABC):
    """How a release replaces the one before, by what its store can do in one step.

    In all of them the old release stays until the new one is complete, and the next
    :meth:`recover` repairs what a killed process left behind.
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


def aside_of(name: str) -> str:
    """The name beside a release's own to which the one that is replaced is moved for a moment."""
    return f".{name}.mondrian_ops-previous"


def publication_of(target: str) -> Publication:
    """The publication on the store of a location."""
    return _publication(store_of(target).publication)


@lru_cache(maxsize=64)
def _publication(name: str) -> Publication:
    kind: type[Publication] = resolve_name(name)
    return kind()
