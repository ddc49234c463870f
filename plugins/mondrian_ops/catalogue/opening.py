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
_found: Place | None = None


def use(place: Callable[[], Place] | None) -> None:
    """Open the catalogue there in this process; None: where the environment says.

    ``place`` is called once, when the catalogue is needed: in Airflow it asks the API server.
    """
    global _given, _found
    if place is not _given:
        _given, _found = place, None


def current() -> Catalogue:
    """The catalogue of this process. It connects with its first use.

    Raises StorageError if its place is not given, or wrongly.
    """
    global _found
    if _given is None:
        return _opened(_of_environment())
    if _found is None:
        _found = _given()
    return _opened(_found)


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
