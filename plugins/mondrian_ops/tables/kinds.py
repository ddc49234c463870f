"""The kinds of tables that other packages add, by the scheme of a location."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from mondrian_ops.stores.places import TABLES, opener_of
from mondrian_ops.tables.table import Table

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def kind_of(url: str) -> type[Table] | None:
    """The class that opens the table at a location; None where files of a store are there.

    Raises InputError where the package that adds it is wrong.
    """
    entry = opener_of(url)
    return None if entry is None else _loaded(entry)


@cache
def _loaded(entry: EntryPoint) -> type[Table]:
    return TABLES.loaded(entry, Table)
