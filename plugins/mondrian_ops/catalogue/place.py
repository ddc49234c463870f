"""Where the catalogue and its key are."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from mondrian_ops.errors import StorageError
from mondrian_ops.late_methods import dataclass

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
