"""The kinds of tables that other packages add, by the scheme of a location."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint

from mondrian_ops.errors import InputError
from mondrian_ops.stores.places import GROUP, opener_of
from mondrian_ops.tables.table import Table


def kind_of(url: str) -> type[Table] | None:
    """The class that opens the table at a location; None where files of a store are there.

    Raises InputError where the package that adds it is wrong.
    """
    entry = opener_of(url)
    return None if entry is None else _loaded(entry)


@cache
def _loaded(entry: EntryPoint) -> type[Table]:
    try:
        kind = entry.load()
    except Exception as error:
        raise InputError(
            f"{entry.name}://: the package that opens such tables cannot be imported "
            f"({type(error).__name__} in {entry.value}); repair or remove it"
        ) from error
    if not (isinstance(kind, type) and issubclass(kind, Table)):
        raise InputError(
            f"{entry.name}://: {entry.value} is no subclass of {Table.__module__}.Table; correct "
            f"the entry point of its package in {GROUP}"
        )
    if missing := sorted(kind.__abstractmethods__):
        raise InputError(f"{entry.name}://: {entry.value} lacks {', '.join(missing)}; add it")
    return kind
