"""The database: connections, transactions, migrations, and the key of the persons' hashes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from mondrian_ops.catalogue import secret_key
from mondrian_ops.catalogue.place import Place
from mondrian_ops.catalogue.tables import SCHEMA, key_table
from mondrian_ops.core.errors import StorageError

__all__ = ["Catalogue"]

_WAIT_S = 60
"""How long a transaction waits for another one that writes."""

_IDLE_S = 600
"""After so long without a statement PostgreSQL ends a transaction, whose client may be dead."""

_LOCK = 0x6D6F6E6472
"""The number of the advisory lock by which writers take turns in PostgreSQL."""

_READS = "mondrian_ops_reads"
_VERSION = sa.table("alembic_version", sa.column("version_num"))


class Catalogue:
    """The catalogue at a place. Threads may share it, and so may processes after a fork.

    Each transaction has a connection of its own: a server that was away is back with the next one.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._is_ready = False
        self._lock = Lock()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that only reads, and sees one state of the database.

        Raises OSError while the database cannot be reached; StorageError if it is of a newer
        version.
        """
        self._make_ready()
        with _errors_explained(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that writes: no other one writes before it ends, so keep it short.

        What it reads stays true until it commits. It is committed at the end of the block, and
        rolled back by any exception.

        Raises OSError while the database cannot be reached, or others write for a minute;
        sqlalchemy's IntegrityError where a constraint is violated; StorageError as `reading`.
        """
        self._make_ready()
        with _errors_explained(), self._engine.begin() as connection:
            yield connection

    @cached_property
    def key(self) -> bytes:
        """The secret key (32 bytes) of the ids of pages and of the persons' hashes.

        The first one is noted in the database by its fingerprint. Only for SQLite a missing one is
        made.

        Raises StorageError if it is missing, no key, or another one than the first.
        """
        with self.writing() as connection:
            noted = connection.execute(sa.select(key_table.c.fingerprint)).scalar()
            may_make = noted is None and self._is_sqlite
            key = secret_key.read(self._place.key, self._place.key_file, may_make)
            fingerprint = secret_key.fingerprint(key)
            if noted is None:
                connection.execute(key_table.insert().values(id=1, fingerprint=fingerprint))
            elif noted != fingerprint:
                raise StorageError(
                    "catalogue: the key is not the one that the persons in it were hashed with, so "
                    "they could not be found again; restore that key, or name another catalogue"
                )
        return key

    @property
    def _is_sqlite(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    @cached_property
    def _engine(self) -> sa.Engine:
        place = self._place.url
        is_sqlite = "://" not in place
        url = sa.URL.create("sqlite", database=place) if is_sqlite else sa.make_url(place)
        arguments: dict[str, Any] = (
            {"timeout": _WAIT_S, "isolation_level": None}
            if is_sqlite
            else {"connect_timeout": 10, "application_name": "mondrian_ops"}
        )
        try:
            engine = sa.create_engine(
                url, poolclass=NullPool, connect_args=arguments, hide_parameters=True
            )
        except (NoSuchModuleError, ModuleNotFoundError) as error:
            raise StorageError(
                f"catalogue: the driver of its database is missing ({error}); install "
                "psycopg2-binary"
            ) from None
        if is_sqlite:
            sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite if is_sqlite else _begin_postgresql)
        return engine

    @cached_property
    def _reader(self) -> sa.Engine:
        return self._engine.execution_options(**{_READS: True})

    def _make_ready(self) -> None:
        """Make the database, or bring it to this version, unless this object has done so."""
        with self._lock:
            if self._is_ready:
                return
            if self._is_sqlite:
                _make_file(Path(str(self._engine.url.database)))
            with _errors_explained():
                if _version(self._reader) != SCHEMA:
                    self._migrate()
            self._is_ready = True

    def _migrate(self) -> None:
        """Run the missing migrations in one transaction; other processes wait for it."""
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError

        config = Config(attributes={})
        config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
        config.set_main_option("path_separator", "os")
        with self._engine.begin() as connection:
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError:
                raise StorageError(
                    "catalogue: it was made by a newer version of mondrian_ops; install that "
                    "version, or name another catalogue"
                ) from None


def _version(engine: sa.Engine) -> str | None:
    """The version of the tables; None where there are none."""
    with engine.begin() as connection:
        if not sa.inspect(connection).has_table(_VERSION.name):
            return None
        return connection.execute(sa.select(_VERSION)).scalar()


@contextmanager
def _errors_explained() -> Iterator[None]:
    """Raise errors of the database as OSError, which a retry may cure; constraints stay."""
    try:
        yield
    except IntegrityError:
        raise
    except DBAPIError as error:
        raise OSError(
            f"catalogue: the database does not answer as it should ({_first_line(error.orig)}); "
            "see to it and run again"
        ) from error


def _first_line(error: BaseException | None) -> str:
    name, lines = type(error).__name__, str(error).splitlines()
    return f"{name}: {lines[0].strip()}" if lines else name


def _make_file(path: Path) -> None:
    """Make an empty, private file; SQLite gives its other files the same mode."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: sa.Connection) -> None:
    reads = connection.get_execution_options().get(_READS)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _begin_postgresql(connection: sa.Connection) -> None:
    if connection.get_execution_options().get(_READS):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_WAIT_S}s'")
    connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{_IDLE_S}s'")
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
