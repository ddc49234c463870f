"""Azure's blobs as Microsoft's emulator Azurite serves them; it has no hierarchical namespace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_airflow import free_port
from servers.processes import Process, answers
from servers.proxy import Proxy

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that every Azurite has, and its published key."""


@contextmanager
def azure_server(folder: Path) -> Iterator[Proxy]:
    """Run one, in memory only, behind a proxy."""
    port = free_port()
    command = [
        "azurite-blob",
        "--inMemoryPersistence",
        "--skipApiVersionCheck",
        "--silent",
        "--disableTelemetry",
    ]
    server = Process([*command, "--blobPort", str(port)], folder / "azurite.log")
    try:
        server.wait_for(lambda: answers(port))
        with Proxy(port) as proxy:
            yield proxy
    finally:
        server.stop()


def connection_string(server: Proxy) -> str:
    """As Azure's portal gives one, and this project reads it."""
    return (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
        f"BlobEndpoint={server.endpoint}/{ACCOUNT};"
    )
