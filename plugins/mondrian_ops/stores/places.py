"""What a location says, be it a store's or a table's that another package opens.

A package registers a scheme of tables in the entry points' group ``mondrian_ops.tables``: the name
of the entry point is the scheme, its object a subclass of :class:`mondrian_ops.tables.table.Table`.
A store's scheme cannot be taken over.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from mondrian_ops.added import Group
from mondrian_ops.errors import InputError
from mondrian_ops.stores.store import Place, find_store, scheme_of, store_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "mondrian_ops.tables"
"""The group of the entry points by which other packages add kinds of tables."""
TABLES = Group(GROUP, "kind of tables", InputError, "://")

_OF_TABLES = Place()


def place_of(url: str) -> Place:
    """What the URLs of this scheme say; raises InputError for a scheme that is not available."""
    return store_of(url) if opener_of(url) is None else _OF_TABLES


def opener_of(url: str) -> EntryPoint | None:
    """What opens the table at a location; None where it has no scheme, or that of a store.

    Raises InputError where two packages register the scheme for different classes.
    """
    scheme = scheme_of(url)
    return None if find_store(scheme) is not None else _opener(scheme)


@cache
def _opener(scheme: str) -> EntryPoint | None:
    return TABLES.entry(scheme)
