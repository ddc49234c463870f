"""Where the catalogue and its key are.

In Airflow the section ``[mondrian_ops]`` says so (:mod:`mondrian_ops.hooks.settings`). On a command
line and in Python the environment does: MONDRIAN_OPS_CATALOGUE (a path, or the URL of a PostgreSQL
database) and MONDRIAN_OPS_CATALOGUE_KEY (the path of the key's file). There is no default: in
another catalogue than last night's nobody was released before, and no row waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mondrian_ops.errors import StorageError

if TYPE_CHECKING:
    from mondrian_ops.catalogue.database import Catalogue

_CATALOGUE, _KEY = "MONDRIAN_OPS_CATALOGUE", "MONDRIAN_OPS_CATALOGUE_KEY"
_DRIVERS = {"postgres": "postgresql+psycopg2", "postgresql": "postgresql+psycopg2"}


@dataclass(frozen=True)
class Place:
    """The path or URL of the database, and the key's file or the key itself.

    ``url``: the absolute path of an SQLite file, or SQLAlchemy's URL of a PostgreSQL database.
    ``key``: 64 hexadecimal digits, for a key that is not in a file. Neither a password of the URL
    nor the key is in the text of this value.
    """

    url: str = field(repr=False)
    key_file: str | None = None
    key: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, location: str, key_file: str | None = None, key: str | None = None) -> Place:
        """The place at a path or URL; the key's file lies beside an SQLite file by default.

        Raises StorageError for a URL of another kind of database.
        """
        scheme, separator, rest = location.partition("://")
        if not separator:
            path = Path(location).expanduser().absolute()
            if key_file is None and key is None:
                key_file = str(path.with_name("catalogue.key"))
            return cls(str(path), key_file, key)
        if scheme not in {*_DRIVERS, *_DRIVERS.values()}:
            raise StorageError(
                f"catalogue: {scheme}:// is not a place for it; give the path of an SQLite file on "
                "a disk of this machine, or the URL of a PostgreSQL database"
            )
        return cls(f"{_DRIVERS.get(scheme, scheme)}://{rest}", key_file, key)


_given: Callable[[], Place] | None = None


def use(place: Callable[[], Place] | None) -> None:
    """Open the catalogue there in this process; None: where the environment says."""
    global _given
    _given = place


def current() -> Catalogue:
    """The catalogue of this process. It connects with its first use.

    Raises StorageError if its place is not given, or wrongly.
    """
    return _opened((_given or _of_environment)())


@cache
def _opened(place: Place) -> Catalogue:
    from mondrian_ops.catalogue.database import Catalogue

    return Catalogue(place)


def _of_environment() -> Place:
    location = os.environ.get(_CATALOGUE)
    if not location:
        raise StorageError(
            f"catalogue: nothing says where it is; set {_CATALOGUE} in the environment to the path "
            "of an SQLite file or the URL of a PostgreSQL database; if Airflow releases the same "
            "people, to its catalogue"
        )
    return Place.of(location, os.environ.get(_KEY) or None)
