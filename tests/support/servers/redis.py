"""A Redis server, in memory only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_airflow import free_port
from servers.processes import Process, answers


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Run one; gives its URL."""
    port = free_port()
    options = {
        "--bind": "127.0.0.1",
        "--port": str(port),
        "--dir": str(folder),
        "--save": "",
        "--appendonly": "no",
    }
    command = ["redis-server", *(text for option in options.items() for text in option)]
    server = Process(command, folder / "redis.log")
    try:
        server.wait_for(lambda: answers(port))
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.stop()
