"""Write the platform's secrets into folders by reader: those of the environment, else random ones.

    python make_secrets.py FOLDER

A secret that is there already stays, unless the environment gives another one.
"""

import base64
import json
import os
import secrets
import sys
from pathlib import Path
from urllib.parse import quote

# What each file holds, by the variable of .env that may give it.
FILES = {
    "POSTGRES_PASSWORD": "postgres/postgres_password",
    "REDIS_PASSWORD": "redis/redis_password",
    "AIRFLOW_ADMIN_PASSWORD": "login/admin_password",
    "AIRFLOW_API_SECRET_KEY": "server/api_secret_key",
    "AIRFLOW_FERNET_KEY": "server/fernet_key",
    "AIRFLOW_JWT_SECRET": "server/jwt_secret",
    "CATALOGUE_KEY": "server/catalogue_key",
    "CATALOGUE_PASSWORD": "server/catalogue_password",
}
# Their servers run as other users, who see no other folder than this one of theirs.
OF_OTHERS = ("postgres", "redis")
# What the database holds was made with these.
LASTING = ("POSTGRES_PASSWORD", "AIRFLOW_FERNET_KEY", "CATALOGUE_KEY")


def main(folder: Path) -> None:
    """Write all files. Raises SystemExit where a lasting secret would change."""
    for variable, file in FILES.items():
        settle(folder / file, variable)
    admin = read(folder / FILES["AIRFLOW_ADMIN_PASSWORD"])
    write(folder / "login/passwords.json", json.dumps({"admin": admin}))
    postgres = url_part(folder / FILES["POSTGRES_PASSWORD"])
    write(
        folder / "server/database_url", f"postgresql+psycopg2://airflow:{postgres}@postgres/airflow"
    )
    write(folder / "server/connections.json", json.dumps(connections(folder)))
    redis = f"redis://:{url_part(folder / FILES['REDIS_PASSWORD'])}@redis:6379"
    for reader in ("server", "worker"):
        write(folder / reader / "broker_url", f"{redis}/0")
        write(folder / reader / "result_backend", f"{redis}/1")


def connections(folder: Path) -> dict[str, dict[str, str]]:
    """Airflow's connections to the catalogue, and the one that holds its key."""
    return {
        "mondrian_ops_catalogue": {
            "conn_type": "postgres",
            "host": "postgres",
            "schema": "mondrian_ops",
            "login": "mondrian_ops",
            "password": read(folder / FILES["CATALOGUE_PASSWORD"]),
        },
        "mondrian_ops_catalogue_key": {
            "conn_type": "generic",
            "password": read(folder / FILES["CATALOGUE_KEY"]),
        },
    }


def settle(file: Path, variable: str) -> None:
    """Write one secret, unless the file holds it already."""
    given = os.environ.get(variable, "")
    before = read(file) if file.exists() else ""
    if before and given not in ("", before) and variable in LASTING:
        raise SystemExit(
            f"{variable} is not what it was when the database was made. Give the old value, or "
            "begin anew (docker compose down --volumes removes all data)."
        )
    write(file, given or before or generated(variable))


def generated(variable: str) -> str:
    """A random secret; a Fernet key is 32 bytes in base64, the catalogue's in hexadecimal."""
    if variable == "AIRFLOW_FERNET_KEY":
        return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    if variable == "CATALOGUE_KEY":
        return secrets.token_hex(32)
    return secrets.token_urlsafe(24)


def url_part(file: Path) -> str:
    """A secret as it stands in a URL."""
    return quote(read(file), safe="")


def read(file: Path) -> str:
    """What a file holds."""
    return file.read_text()


def write(file: Path, content: str) -> None:
    """Write a file that only its owner (and root) reads, or the server that it is made for."""
    file.parent.mkdir(exist_ok=True)
    file.touch(mode=0o600)
    file.write_text(content)
    if file.parent.name in OF_OTHERS:
        file.chmod(0o444)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
