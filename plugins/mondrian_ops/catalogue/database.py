"""The database: connections, transactions, migrations, and the key of the persons' hashes."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from mondrian_ops.catalogue import secret_key
from mondrian_ops.catalogue.place import Place
from mondrian_ops.catalogue.tables import SCHEMA, VERSIONS, key_table
from mondrian_ops.errors import StorageError
from mondrian_ops.stores.regular_files import refuse_special

PATIENCE_S = 90.0
"""How long to try to reach a PostgreSQL that is away, such as one that is restarted."""

_PAUSE_S = 1.0
_WAIT_S = 60
"""How long a transaction waits for another one that writes."""

_IDLE_S = 600
"""After so long without a statement PostgreSQL ends a transaction, whose client may be dead."""

_MIGRATING = Lock()  # what alembic runs is one for the whole process
_LOCK = 0x6D6F6E6472
"""The number of the advisory lock by which writers take turns in PostgreSQL."""

_READS = "mondrian_ops_reads"
_VERSION = sa.table(VERSIONS, sa.column("version_num"))

# libpq gives no code with a refused connection. A server of another language is tried in vain.
_REFUSED = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry"
    r"|(role|database) .* does not exist|permission denied for database"
)

_log = logging.getLogger(__name__)


class Catalogue:
    """The catalogue at a place. Threads may share it, and so may processes after a fork.

    Each transaction has a connection of its own: a server that was away is back with the next one.

    :param patience_s: how long to try to reach the server; None: as PATIENCE_S says.
    """

    def __init__(self, place: Place, patience_s: float | None = None) -> None:
        self._place = place
        self._patience_s = patience_s
        self._is_ready = False
        self._lock = Lock()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that only reads, and sees one state of the database.

        Raises OSError while the database cannot be reached; StorageError if it is of a newer
        version.
        """
        self._make_ready()
        with self._reader.begin() as connection:
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
        with self._engine.begin() as connection:
            yield connection

    @cached_property
    def key(self) -> bytes:
        """The secret key (32 bytes) of the ids of pages and of the persons' hashes.

        The first one is noted in the database by its fingerprint. Only for SQLite a missing one is
        made.

        Raises StorageError if it is missing, no key, or another one than the first.
        """
        with self.reading() as connection:
            noted = connection.scalar(sa.select(key_table.c.fingerprint))
        if noted is None:
            with self.writing() as connection:
                return self._first_key(connection)
        return self._checked(self._read_key(may_make=False), noted)

    def _first_key(self, connection: sa.Connection) -> bytes:
        key = self._read_key(may_make=self.is_sqlite)
        noted = connection.scalar(sa.select(key_table.c.fingerprint))
        if noted is None:
            noted = secret_key.fingerprint(key)
            connection.execute(key_table.insert().values(id=1, fingerprint=noted))
        return self._checked(key, noted)

    def _read_key(self, may_make: bool) -> bytes:
        return secret_key.read(self._place.key, self._place.key_file, may_make)

    @staticmethod
    def _checked(key: bytes, noted: str) -> bytes:
        if secret_key.fingerprint(key) != noted:
            raise StorageError(
                "catalogue: the key is not the one that the persons in it were hashed with, so "
                "they could not be found again; restore that key, or name another catalogue"
            )
        return key

    @property
    def is_there(self) -> bool:
        """Whether there is a database; the file of an SQLite is made with its first use."""
        return not self.is_sqlite or Path(str(self._engine.url.database)).exists()

    @property
    def is_sqlite(self) -> bool:
        """Whether writers wait by asking again and again, not in a queue as in PostgreSQL."""
        return self._engine.dialect.name == "sqlite"

    @cached_property
    def _engine(self) -> sa.Engine:
        place = self._place.url
        is_sqlite = "://" not in place
        if is_sqlite:
            with suppress(OSError):  # SQLite says so itself
                refuse_special(place, name=f"catalogue: {place}")
        url = sa.URL.create("sqlite", database=place) if is_sqlite else sa.make_url(place)
        arguments: dict[str, Any] = (
            {"timeout": _WAIT_S, "isolation_level": None}
            if is_sqlite
            else {
                "application_name": "mondrian_ops",
                "connect_timeout": 10,
                "tcp_user_timeout": 1000 * _WAIT_S,  # a server that vanished answers nothing
            }
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
        else:
            sa.event.listen(engine, "do_connect", self._connect)
        sa.event.listen(engine, "handle_error", _explain)
        sa.event.listen(engine, "begin", _begin_sqlite if is_sqlite else _begin_postgresql)
        return engine

    @cached_property
    def _reader(self) -> sa.Engine:
        return self._engine.execution_options(**{_READS: True})

    def _connect(self, dialect: Any, _record: object, given: Any, named: Any) -> Any:
        """A connection to a server; one that is away may be back in a moment.

        One that refuses the user, or has no such database, is not tried again.
        """
        patience_s = PATIENCE_S if self._patience_s is None else self._patience_s
        until, is_first = monotonic() + patience_s, True
        while True:
            try:
                return dialect.connect(*given, **named)
            except dialect.loaded_dbapi.OperationalError as error:
                if monotonic() >= until or _REFUSED.search(str(error)):
                    raise
                if is_first:
                    _log.warning("%s; trying for %g s", _away(error), patience_s)
                is_first = False
                sleep(_PAUSE_S)

    def _make_ready(self) -> None:
        """Make the database, or bring it to this version, unless this object has done so."""
        with self._lock:
            if self._is_ready:
                return
            if self.is_sqlite:
                _make_file(Path(str(self._engine.url.database)))
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
        with _MIGRATING, self._engine.begin() as connection:
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


class _AwayError(OSError):
    """The database cannot be used now. SQLAlchemy drops where it was raised."""


def _explain(context: ExceptionContext) -> None:
    """Raise an error of the database as OSError, which a retry may cure; constraints stay."""
    error = context.sqlalchemy_exception
    if isinstance(error, DBAPIError) and not isinstance(error, IntegrityError):
        raise _AwayError(f"{_away(error.orig)}; repair or reconnect it, and run again") from error


def _away(error: BaseException | None) -> str:
    name, lines = type(error).__name__, str(error).splitlines()
    what = f"{name}: {lines[0].strip()}" if lines else name
    return f"catalogue: the database does not answer as it should ({what})"


def _make_file(path: Path) -> None:
    """Make an empty, private file; SQLite gives its other files the same mode.

    It appears with its journal set: to change that while another process writes is an error.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists():
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    os.close(handle)
    try:
        with closing(sqlite3.connect(temporary)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        Path(temporary).unlink()


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")  # nothing deleted stays in the database file


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
