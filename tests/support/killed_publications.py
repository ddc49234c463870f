"""Publications by a process of their own, which is killed with a request to the store."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess

from servers.s3 import Request
from servers.stores import ObjectFolder

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["pytest", "pyarrow.fs", "pyarrow.parquet", __name__])


class Killer:
    """Kills a process with its n-th wanted request, which is then carried out."""

    def __init__(
        self, process: ForkServerProcess, number: int, is_wanted: Callable[[Request], bool]
    ) -> None:
        self.process = process
        self.left = number
        self.is_wanted = is_wanted
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> None:
        if not self.is_wanted(request):
            return
        with self._lock:
            self.left -= 1
            if self.left == 0:
                self.process.kill()
                wait([self.process.sentinel])


def changes(request: Request) -> bool:
    """Whether a request may change something; for the locks of Azure, see test_azure.py."""
    return request.method not in ("GET", "HEAD") and "x-ms-lease-action" not in request.headers


def publish_and_kill(
    folder: ObjectFolder, token: str, number: int, is_wanted: Callable[[Request], bool] = changes
) -> int:
    """Publish in a process that is killed with its n-th wanted request; its exit code."""
    work = (dict(os.environ), folder.url("staging"), folder.url("out"), token)
    process = _FORKING.Process(target=_publish, args=work)
    folder.server.watch = Killer(process, number, is_wanted)
    process.start()
    try:
        process.join()
    finally:
        folder.server.watch = None
        folder.server.settle()
        folder.end_locks()
    assert process.exitcode is not None
    return process.exitcode


def _publish(environment: Mapping[str, str], staging: str, output: str, token: str) -> None:
    from mondrian_ops.publish import publish

    os.environ.update(environment)
    publish(staging, output, token)
