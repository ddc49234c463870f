"""A database in a PostgreSQL, and what its administrator does to it."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from servers.postgres import copy_database, new_database

_NUMBERS = itertools.count()


class Database:
    """A database for one test, and what an administrator does to it."""

    def __init__(self, server: str) -> None:
        self.name = f"catalogue_{next(_NUMBERS)}"
        self.url = new_database(server, self.name)
        self._server = server

    def do(self, *statements: str) -> None:
        """Execute statements, each in no transaction, from another database."""
        engine = sa.create_engine(self._server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(sa.text(statement))
        engine.dispose()

    def cut_off(self) -> None:
        """Let nobody in, and end all connections."""
        self.do(
            f"ALTER DATABASE {self.name} ALLOW_CONNECTIONS false",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ~ '^catalogue_'",
        )

    def back(self) -> None:
        self.do(f"ALTER DATABASE {self.name} ALLOW_CONNECTIONS true")

    def copy_to(self, name: str, folder: Path) -> None:
        """Dump it to a folder, as docs/operate.md says, and restore it into a new database."""
        copy_database(self.url, new_database(self._server, name), folder)

    def restore(self, name: str) -> None:
        self.do(f"DROP DATABASE {self.name}", f"CREATE DATABASE {self.name} TEMPLATE {name}")


@pytest.fixture
def database(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    database = Database(postgres_url)
    key = tmp_path / "catalogue.key"
    key.write_text(secrets.token_hex(32))
    monkeypatch.setattr("mondrian_ops.catalogue.database.PATIENCE_S", 0.0)
    monkeypatch.setenv("MONDRIAN_OPS_CATALOGUE", database.url)
    monkeypatch.setenv("MONDRIAN_OPS_CATALOGUE_KEY", str(key))
    yield database
    database.back()
