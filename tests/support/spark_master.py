"""The REST server of a standalone Spark master, as far as Airflow's Spark provider asks it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


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

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer({"driverState": master.status()})

        def do_POST(self) -> None:
            master.killed.append(self.path.rpartition("/")[2])
            self.answer({})

        def answer(self, value: dict[str, str]) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"success": True, **value}).encode())

        def log_message(self, *_arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    master = SparkMaster(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield master
    finally:
        server.shutdown()
        server.server_close()
