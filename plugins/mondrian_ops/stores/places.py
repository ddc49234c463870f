"""What a location says, be it a store's or that of a table with a scheme of its own.

Besides :data:`CATALOGS`, a package registers a scheme of tables in the entry points' group
``mondrian_ops.tables``: the name of the entry point is the scheme, its object a subclass of
:class:`mondrian_ops.tables.table.Table`. A store's scheme cannot be taken over.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from mondrian_ops.added import Group
from mondrian_ops.errors import InputError
from mondrian_ops.stores.store import CATALOGS, Place, find_store, scheme_of, store_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "mondrian_ops.tables"
"""The group of the entry points by which other packages add kinds of tables."""
TABLES = Group(GROUP, "kind of tables", InputError, "://")


class _Catalogs(Place):
    """The tables of catalogs: ``iceberg://CATALOG/NAMESPACE.TABLE@TIME``.

    Policies and access treat a namespace as a folder and its tables as files. They ignore the time
    after the @: an earlier state has rows of the same table.
    """

    publication = "mondrian_ops.publish.iceberg:IcebergPublication"

    def parts(self, url: str) -> tuple[str, str]:
        base, path = super().parts(url)
        return base, path.partition("@")[0].replace(".", "/")

    def real(self, url: str) -> str:
        base, name = self.lineage_name(url)
        return f"{base}/{name}"

    def lineage_name(self, url: str) -> tuple[str, str]:
        base, path = self.parts(url)
        return base, path.strip("/").replace("/", ".")


_OF_TABLES, _OF_CATALOGS = Place(), _Catalogs()


def place_of(url: str) -> Place:
    """What the URLs of this scheme say; raises InputError for a scheme that is not available."""
    if opener_of(url) is None:
        return store_of(url)
    return _OF_CATALOGS if scheme_of(url) in CATALOGS else _OF_TABLES


def opener_of(url: str) -> EntryPoint | None:
    """What opens the table at a location; None where it has no scheme, or that of a store.

    Raises InputError where two packages register the scheme for different classes.
    """
    scheme = scheme_of(url)
    return None if find_store(scheme) is not None else _opener(scheme)


@cache
def _opener(scheme: str) -> EntryPoint | None:
    if scheme not in CATALOGS:
        return TABLES.entry(scheme)
    from importlib.metadata import EntryPoint

    return EntryPoint(scheme, CATALOGS[scheme], GROUP)
