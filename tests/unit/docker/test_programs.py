"""The small programs inside the images."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from http_server import Request, http_server

DOCKER = Path(__file__).resolve().parents[3] / "docker"
HEALTH = {
    "status": "ALIVE",
    "scheduler": {"status": "healthy"},
    "beans": [{"actors": json.dumps([{"state": "STARTING"}, {"state": "RUNNING"}])}],
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server: ``/`` answers with HEALTH, ``/text`` with text, all else with an error."""

    def answer(request: Request) -> tuple[int, str]:
        answers = {"/": json.dumps(HEALTH), "/text": "fine"}
        return 200 if request.path in answers else 503, answers.get(request.path, "")

    with http_server(answer) as port:
        yield f"http://127.0.0.1:{port}"


def healthcheck(*words: str) -> subprocess.CompletedProcess[str]:
    program = DOCKER / "healthcheck.py"
    return subprocess.run(
        [sys.executable, "-I", program, *words], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "expectations",
    [
        [],
        ["status=ALIVE"],
        ["status=ALIVE", "scheduler.status=healthy"],
        ["beans.0.actors.*.state=RUNNING"],
    ],
)
def test_a_server_is_well_if_it_says_so(server: str, expectations: list[str]) -> None:
    assert healthcheck(f"{server}/", *expectations).returncode == 0


@pytest.mark.parametrize(
    ("page", "expectations"),
    [
        ("/", ["status=DEAD"]),
        ("/", ["status=ALIVE", "scheduler.status=unhealthy"]),
        ("/", ["triggerer.status=healthy"]),
        ("/", ["beans.1.actors=x"]),
        ("/", ["beans.0.actors.*.state=STOPPED"]),
        ("/text", ["status=ALIVE"]),
        ("/error", []),
    ],
)
def test_a_server_is_not_well_else(server: str, page: str, expectations: list[str]) -> None:
    done = healthcheck(f"{server}{page}", *expectations)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{server}{page}: ")


def test_a_server_is_not_well_that_is_not_there() -> None:
    assert healthcheck("http://127.0.0.1:9").returncode == 1


def make_secrets(folder: Path, *given: str) -> subprocess.CompletedProcess[str]:
    program = DOCKER / "airflow" / "make_secrets.py"
    return subprocess.run(
        [sys.executable, program, folder],
        env={**os.environ, **dict(each.split("=") for each in given)},
        capture_output=True,
        text=True,
        check=False,
    )


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_secrets_are_made_once_and_are_nobody_else_s(tmp_path: Path) -> None:
    assert make_secrets(tmp_path).returncode == 0
    made = contents(tmp_path)
    for folder in tmp_path.iterdir():
        of_others = folder.name in ("postgres", "redis")
        modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        assert modes == {0o444 if of_others else 0o600}
    assert len(base64.urlsafe_b64decode(made["fernet_key"])) == 32
    assert json.loads(made["passwords.json"]) == {"admin": made["admin_password"]}
    assert f":{made['postgres_password']}@" in made["database_url"]
    assert f":{made['redis_password']}@" in made["broker_url"]
    connections = json.loads(made["connections.json"])
    assert connections["mondrian_ops_catalogue"]["password"] == made["catalogue_password"]
    assert connections["mondrian_ops_catalogue_key"]["password"] == made["catalogue_key"]
    assert len(bytes.fromhex(made["catalogue_key"])) == 32
    assert len(set(made.values())) == len(made)

    assert make_secrets(tmp_path).returncode == 0
    assert contents(tmp_path) == made


def test_secrets_that_are_given_are_taken(tmp_path: Path) -> None:
    make_secrets(tmp_path, "POSTGRES_PASSWORD=a/b@c", "AIRFLOW_ADMIN_PASSWORD=first")
    assert "airflow:a%2Fb%40c@postgres" in contents(tmp_path)["database_url"]

    make_secrets(tmp_path, "POSTGRES_PASSWORD=a/b@c", "AIRFLOW_ADMIN_PASSWORD=second")
    assert json.loads(contents(tmp_path)["passwords.json"]) == {"admin": "second"}


@pytest.mark.parametrize("variable", ["POSTGRES_PASSWORD", "AIRFLOW_FERNET_KEY", "CATALOGUE_KEY"])
def test_what_the_database_was_made_with_cannot_change(tmp_path: Path, variable: str) -> None:
    make_secrets(tmp_path)
    made = contents(tmp_path)
    done = make_secrets(tmp_path, f"{variable}=another")
    assert done.returncode == 1
    assert variable in done.stderr
    assert "another" not in done.stderr
    assert contents(tmp_path) == made
