"""A PostgreSQL server with a data directory of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_airflow import free_port
from servers.processes import Process

# Debian keeps the server's programs out of the PATH.
_DEBIAN = Path("/usr/lib/postgresql")


@contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """Run one, with its log in ``folder``; gives SQLAlchemy's URL of a database in it."""
    port = free_port()
    user = _user()
    # pytest's own folders are for one user only, who may be root, whom PostgreSQL refuses.
    with tempfile.TemporaryDirectory(prefix="mondrian_ops-postgres-") as home:
        data = Path(home, "data")
        if user is not None:
            shutil.chown(home, user)
        _initialize(data, folder / "initdb.log", user)
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "fsync": "off",  # it need not outlive the tests
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        server = Process(
            [_program("postgres"), "-D", str(data), *options], folder / "postgres.log", user=user
        )
        try:
            server.wait_for(lambda: _accepts(port))
            yield f"postgresql+psycopg2://airflow@127.0.0.1:{port}/postgres"
        finally:
            server.stop()


def new_database(url: str, name: str) -> str:
    """Make a database in the server of ``url``; gives SQLAlchemy's URL of it."""
    import psycopg2  # which only those need who run Airflow on PostgreSQL

    connection = psycopg2.connect(url.replace("+psycopg2", ""))
    try:
        connection.autocommit = True  # PostgreSQL makes no database in a transaction
        connection.cursor().execute(f"CREATE DATABASE {name}")
    finally:
        connection.close()
    return f"{url.rpartition('/')[0]}/{name}"


def copy_database(url: str, other: str, folder: Path) -> None:
    """Dump the database of a URL and restore it into that of another, which is empty."""
    source, target = (each.replace("+psycopg2", "") for each in (url, other))
    dump = str(folder / "dump")
    subprocess.run([_program("pg_dump"), "--format=custom", "--file", dump, source], check=True)
    restore = [_program("pg_restore"), "--exit-on-error", "--dbname", target, dump]
    subprocess.run(restore, check=True)


def _accepts(port: int) -> bool:
    """Whether a server lets somebody in: its port is open before, while the database starts."""
    asked = [_program("pg_isready"), "--quiet", "--host", "127.0.0.1", "--port", str(port)]
    return subprocess.run(asked, check=False).returncode == 0


def _initialize(data: Path, log: Path, user: str | None) -> None:
    with log.open("wb") as output:
        subprocess.run(
            [
                *(_program("initdb"), "--pgdata", str(data), "--username", "airflow"),
                *("--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            user=user,
            cwd="/",
            check=True,
        )


def _program(name: str) -> str:
    installed = sorted(_DEBIAN.glob(f"*/bin/{name}"))
    return str(installed[-1]) if installed else shutil.which(name) or name


def _user() -> str | None:
    """Who runs the server: root must not, so that its package's user does, or else nobody."""
    if os.geteuid() != 0:
        return None
    known = {each.pw_name for each in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"
