"""The catalogue of this process.

In Airflow the section ``[mondrian_ops]`` says where it is (:mod:`mondrian_ops.hooks.settings`). On
a command line and in Python the environment does: MONDRIAN_OPS_CATALOGUE (a path, or the URL of a
PostgreSQL database) and MONDRIAN_OPS_CATALOGUE_KEY (the path of the key's file). There is no
default: in another catalogue than last night's nobody was released before, and no row waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from mondrian_ops.catalogue.place import Place
from mondrian_ops.errors import StorageError

if TYPE_CHECKING:
    from mondrian_ops.catalogue.database import Catalogue

_CATALOGUE, _KEY = "MONDRIAN_OPS_CATALOGUE", "MONDRIAN_OPS_CATALOGUE_KEY"

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
