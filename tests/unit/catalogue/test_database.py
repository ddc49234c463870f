"""The catalogue's database: made on first use, migrated once, private; one writer at a time."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import IntegrityError

from mondrian_ops import catalogue
from mondrian_ops.catalogue import Catalogue, Place
from mondrian_ops.catalogue.tables import SCHEMA, VERSIONS, key_table, metadata, series
from mondrian_ops.errors import StorageError, values_withheld

MIGRATIONS = Path(catalogue.__file__).with_name("migrations")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "catalogue.db"


def opened(path: Path) -> Catalogue:
    return Catalogue(Place.of(str(path)))


def names(of: Catalogue) -> list[str]:
    with of.reading() as connection:
        return list(connection.scalars(sa.select(series.c.name).order_by(series.c.name)))


def add(connection: sa.Connection, name: str) -> None:
    connection.execute(series.insert().values(name=name, terms="{}"))


def test_the_migrations_make_exactly_the_tables(path: Path) -> None:
    """If not: edit the last migration that is in no release, or add one and change SCHEMA."""
    with opened(path).reading() as connection:
        options = {"compare_server_default": True, "version_table": VERSIONS}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == SCHEMA
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [SCHEMA]


def test_its_files_and_their_directory_are_private(path: Path) -> None:
    with opened(path).writing() as connection:
        add(connection, "a")
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes.keys() >= {"catalogue.db", "catalogue.db-wal"}
    assert {*modes.values()} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_many_processes_may_use_a_new_one_at_once(path: Path) -> None:
    """Each makes or awaits the tables, then writes one row."""
    code = (
        "import os, sys; from mondrian_ops.catalogue import Catalogue, Place, tables\n"
        "import alembic.command\n"
        "children = []\n"
        "for name in sys.argv[2:]:\n"
        "    children.append(os.fork())\n"
        "    if children[-1]: continue\n"
        "    opened = Catalogue(Place.of(sys.argv[1])); opened.key\n"
        "    with opened.writing() as connection:\n"
        "        connection.execute(tables.series.insert().values(name=name, terms='{}'))\n"
        "    sys.exit()\n"
        "sys.exit(any(os.waitpid(child, 0)[1] for child in children))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), *"abcd"],
        env={**os.environ, "PYTHONPATH": str(MIGRATIONS.parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert names(opened(path)) == [*"abcd"]


def test_what_a_writer_reads_stays_true_until_it_commits(path: Path) -> None:
    both = [opened(path), opened(path)]

    def count_up(of: Catalogue) -> None:
        for _ in range(20):
            with of.writing() as connection:
                n = connection.scalar(sa.select(sa.func.count()).select_from(series))
                add(connection, f"{n:02}")

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(count_up, both))
    assert names(both[0]) == [f"{n:02}" for n in range(40)]


def test_a_reader_sees_one_state_and_waits_for_no_writer(path: Path) -> None:
    reader, writer = opened(path), opened(path)
    with writer.writing() as writes, reader.reading() as reads:
        add(writes, "a")
        count = sa.select(sa.func.count()).select_from(series)
        assert reads.scalar(count) == 0
        writes.commit()
        assert reads.scalar(count) == 0
    assert names(reader) == ["a"]


def test_an_exception_undoes_all_that_the_block_wrote(path: Path) -> None:
    of = opened(path)
    with pytest.raises(RuntimeError), of.writing() as connection:
        add(connection, "a")
        raise RuntimeError
    assert names(of) == []


def test_after_a_backup_was_restored_the_next_run_works(path: Path) -> None:
    """As docs/operate.md says: SQLite's own backup while the catalogue is in use."""
    of = opened(path)
    key = of.key
    with of.writing() as connection:
        add(connection, "a")
    backup = path.with_name("backup.db")
    with of.writing() as connection:  # which the backup neither waits for nor sees
        add(connection, "unfinished")
        with sqlite3.connect(path) as source, sqlite3.connect(backup) as target:
            source.backup(target)
    for name in ("catalogue.db", "catalogue.db-wal", "catalogue.db-shm"):
        path.with_name(name).unlink(missing_ok=True)
    backup.rename(path)
    restored = opened(path)
    assert names(restored) == ["a"]
    assert restored.key == key
    with restored.writing() as connection:
        add(connection, "b")
    assert names(restored) == ["a", "b"]


def test_a_violated_constraint_is_told_from_a_database_that_is_away(path: Path) -> None:
    of = opened(path)
    with pytest.raises(IntegrityError), of.writing() as connection:
        add(connection, "a")
        add(connection, "a")


def test_a_file_that_is_no_database_is_an_error_that_may_be_retried(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("not a database" * 100)
    says = "catalogue: the database does not answer"
    with pytest.raises(OSError, match=says), values_withheld():
        names(opened(path))


def test_a_catalogue_of_a_newer_version_is_left_alone(path: Path) -> None:
    names(opened(path))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE mondrian_ops_version SET version_num = '9999'")
    with pytest.raises(StorageError, match="newer version"):
        names(opened(path))


def test_the_key_is_made_once_in_a_private_file(path: Path) -> None:
    key = opened(path).key
    file = path.with_name("catalogue.key")
    assert len(key) == 32
    assert opened(path).key == bytes.fromhex(file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_key_is_not_in_the_database(path: Path) -> None:
    of = opened(path)
    key = of.key
    with of.reading() as connection:
        fingerprint = connection.scalar(sa.select(key_table.c.fingerprint))
    assert fingerprint
    assert fingerprint not in key.hex()
    content = b"".join(each.read_bytes() for each in path.parent.glob("catalogue.db*"))
    assert fingerprint.encode() in content
    assert key not in content
    assert key.hex().encode() not in content


def test_another_key_is_refused(path: Path) -> None:
    assert opened(path).key
    other = Catalogue(Place.of(str(path), key="0" * 64))
    with pytest.raises(StorageError, match="not the one"):
        _ = other.key


def test_a_lost_key_is_not_replaced(path: Path) -> None:
    assert opened(path).key
    path.with_name("catalogue.key").unlink()
    with pytest.raises(StorageError, match=r"catalogue\.key is missing"):
        _ = opened(path).key
    assert not path.with_name("catalogue.key").exists()


def test_what_is_no_key_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.with_name("catalogue.key").write_text("secret")
    with pytest.raises(StorageError, match="64 hexadecimal digits") as raised:
        _ = opened(path).key
    assert "secret" not in str(raised.value)


class Refusing:
    """A driver whose server answers with these errors, then with a connection."""

    loaded_dbapi = sqlite3

    def __init__(self, *errors: str) -> None:
        self.errors = list(errors)

    def connect(self) -> str:
        if self.errors:
            raise sqlite3.OperationalError(self.errors.pop(0))
        return "connected"


@pytest.mark.parametrize(
    "refusal",
    [
        'FATAL:  password authentication failed for user "catalogue"',
        "fe_sendauth: no password supplied",
        'FATAL:  database "catalogue" does not exist',
        'FATAL:  role "catalogue" does not exist',
        'FATAL:  no pg_hba.conf entry for host "10.0.0.7", user "catalogue"',
    ],
)
def test_a_server_that_refuses_is_not_tried_again(refusal: str, path: Path) -> None:
    server = Refusing(f'connection to server at "db", port 5432 failed: {refusal}')
    with pytest.raises(sqlite3.OperationalError, match="port 5432 failed"):
        opened(path)._connect(server, None, (), {})


@pytest.mark.parametrize(
    "reason", ["Connection refused", "FATAL:  the database system is starting up"]
)
def test_a_server_that_is_away_is_tried_again(
    reason: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mondrian_ops.catalogue.database._PAUSE_S", 0)
    assert opened(path)._connect(Refusing(reason, reason), None, (), {}) == "connected"
