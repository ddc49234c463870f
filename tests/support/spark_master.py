"""The REST server of a standalone Spark master, as far as Airflow's Spark provider asks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from http_server import Request, http_server


class SparkMaster:
    """Tells one ``status`` after the other of any driver, the last one for ever."""

    def __init__(self, port: int) -> None:
        self.statuses = ["RUNNING"]
        self.killed: list[str] = []
        self.connection = {
            "conn_type": "spark",
            "host": "spark://127.0.0.1:7077",
            "password": "hush",
            "extra": json.dumps({"deploy-mode": "cluster", "rest-port": str(port)}),
        }

    def status(self) -> str:
        return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]


@contextmanager
def spark_master() -> Iterator[SparkMaster]:
    """A master that answers."""

    def answer(request: Request) -> tuple[int, str]:
        told = {"success": True}
        if request.method == "POST":
            master.killed.append(request.path.rpartition("/")[2])
        else:
            told["driverState"] = master.status()
        return 200, json.dumps(told)

    with http_server(answer) as port:
        master = SparkMaster(port)
        yield master
