"""Prepare PostgreSQL for the platform: Airflow's tables, the catalogue's database, the connections.

    python initialize.py SECRETS

Tasks reach the catalogue with a user of its own, who cannot connect to Airflow's database. They get
its password and key as Airflow's connections. May be run again.
"""

import subprocess
import sys
from pathlib import Path

import psycopg2
from psycopg2 import sql

USER = DATABASE = "mondrian_ops"


def main(secrets: Path) -> None:
    """Do all of it. Raises an error where a step fails."""
    airflow("db", "migrate")
    url = (secrets / "database_url").read_text().replace("+psycopg2", "")
    make_database(url, (secrets / "catalogue_password").read_text())
    airflow("connections", "import", "--overwrite", str(secrets / "connections.json"))


def airflow(*arguments: str) -> None:
    """Run a command of Airflow."""
    subprocess.run([sys.executable, "-m", "airflow", *arguments], check=True)  # noqa: S603


def make_database(url: str, password: str) -> None:
    """Make the catalogue's database and its user, unless they are there; ``url``: Airflow's own."""
    connection = psycopg2.connect(url)
    connection.autocommit = True  # PostgreSQL makes no database in a transaction
    user, database = sql.Identifier(USER), sql.Identifier(DATABASE)
    of_airflow = sql.Identifier(connection.info.dbname)
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [USER])
        if cursor.fetchone() is None:
            cursor.execute(sql.SQL("CREATE ROLE {} LOGIN").format(user))
        cursor.execute(sql.SQL("ALTER ROLE {} PASSWORD %s").format(user), [password])
        cursor.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
        if cursor.fetchone() is None:
            cursor.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, user))
        for each in (of_airflow, database):
            cursor.execute(sql.SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(each))
    connection.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
