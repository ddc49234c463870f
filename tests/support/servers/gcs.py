"""Google Cloud Storage, as its emulator on PyPI serves it: the protocol, not the limits."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_airflow import free_port
from servers.processes import Process, answers
from servers.proxy import Proxy


@contextmanager
def gcs_server(folder: Path) -> Iterator[Proxy]:
    """Run one, in memory only, behind a proxy."""
    port = free_port()
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--in-memory"]
    server = Process([*command, f"--port={port}", "--host=127.0.0.1"], folder / "gcs.log")
    try:
        server.wait_for(lambda: answers(port))
        with Proxy(port) as proxy:
            yield proxy
    finally:
        server.stop()
