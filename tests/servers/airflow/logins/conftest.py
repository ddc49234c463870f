"""An Airflow whose users log in, with a policy, StatsD looking on, a catalogue in PostgreSQL."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa

from mondrian_ops.catalogue import Place
from projects import (
    FAILING_DAGS,
    Project,
    airflow_of,
    copied,
    forking_with_imports,
    opened,
    running,
)
from releases import recorded_releases

PASSWORD = "a password of the tests"
USERS = {"ada": "admin", "grace": "admin", "bob": "user", "nora": ""}
"""Ada starts the runs of the tests; Nora may do nothing."""
KEY = "ab" * 32
POLICY = {
    "name": "patients",
    "min_k": 5,
    "approval": {"required": True, "approvers": ["ada", "grace"], "four_eyes": True},
}

StatsD = tuple[int, list[str]]


@dataclass(frozen=True)
class Watched(Project):
    """A project whose users log in, and whose Airflow tells a StatsD server what happens."""

    metrics: list[str]
    password: str

    @property
    def place(self) -> Place:
        """Where the catalogue is."""
        return Place.of(self.airflow.environment["TESTS_CATALOGUE"], key=KEY)

    def told(self, run_id: str) -> list[dict[str, Any]]:
        """What the notifiers were told of a run."""
        file = self.root / "told.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [told for told in map(json.loads, lines) if told["run_id"] == run_id]

    def entry(self, run_id: str, map_index: int = -1) -> dict[str, Any]:
        """What the catalogue says of a release."""
        entries = recorded_releases(self.place, run_id)
        (found,) = [each for each in entries if each["map_index"] == map_index]
        return found


@pytest.fixture(scope="package")
def statsd() -> Iterator[StatsD]:
    """A StatsD server; (its port, the lines that it was sent)."""
    lines: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        server.bind(("127.0.0.1", 0))

        def receive() -> None:
            while datagram := server.recv(65536):
                lines.extend(datagram.decode().splitlines())

        thread = threading.Thread(target=receive)
        thread.start()
        yield server.getsockname()[1], lines
        server.sendto(b"", server.getsockname())
        thread.join()


@pytest.fixture(scope="package")
def project(
    tmp_path_factory: pytest.TempPathFactory, airflow_database: Callable[[], str], statsd: StatsD
) -> Iterator[Watched]:
    """Nobody told this Airflow its address; to its catalogue a connection of its own leads."""
    root = forking_with_imports(copied(tmp_path_factory.mktemp("logins")))
    shutil.copy(FAILING_DAGS.with_name("approvals.py"), root / "dags")
    (root / "patients").mkdir()
    shutil.copy(root / "include" / "examples" / "people.csv", root / "patients")
    (root / "passwords.json").write_text(json.dumps(dict.fromkeys(USERS, PASSWORD)))
    policy = {**POLICY, "inputs": [str(root / "patients")]}
    (root / "policies.json").write_text(json.dumps({"unmatched": "allow", "policies": [policy]}))
    port, metrics = statsd
    settings = {
        **opened(root),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(root / "passwords.json"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(map(":".join, USERS.items())),
        "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
        "AIRFLOW__METRICS__STATSD_ON": "True",
        "AIRFLOW__METRICS__STATSD_PORT": str(port),
        "AIRFLOW__MONDRIAN_OPS__CATALOGUE_CONN_ID": "a_catalogue",
        "AIRFLOW__MONDRIAN_OPS__CATALOGUE_KEY_CONN_ID": "its_key",
        "AIRFLOW__MONDRIAN_OPS__POLICIES": str(root / "policies.json"),
        "AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "1",
        "TESTS_CATALOGUE": airflow_database(),
        "TOLD": str(root / "told.jsonl"),
    }
    airflow = airflow_of(root, airflow_database(), settings, login=("ada", PASSWORD))
    del airflow.environment["AIRFLOW__API__BASE_URL"]
    with running(airflow):
        for connection in connections_to(settings["TESTS_CATALOGUE"]):
            airflow.request("POST", "/api/v2/connections", connection)
        yield Watched(root, airflow, metrics, PASSWORD)


def connections_to(url: str) -> list[dict[str, Any]]:
    """As Airflow's API takes them."""
    database = sa.make_url(url)
    place = {
        "connection_id": "a_catalogue",
        "conn_type": "postgres",
        "host": database.host,
        "port": database.port,
        "login": database.username,
        "schema": database.database,
    }
    return [place, {"connection_id": "its_key", "conn_type": "generic", "password": KEY}]
