"""How many requests a release of many small parts takes to publish, and how long, by store.

The servers are those of the tests, on the same machine. What counts is the number of requests: a
request to a store elsewhere takes some ten milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from unittest import mock

from benchmarks.context import Context
from benchmarks.tables import Table, seconds

PARTS = (1_000, 10_000)

_PART = b"PAR1" * 256
_REPORT = b'{"job": {}, "equivalence_classes": 1}'
_WRITERS = 16


@dataclass
class _Place:
    """Where to publish, and the number of requests to its server so far."""

    name: str
    url: str
    requests: Callable[[], int]


def tables(context: Context) -> Iterator[Table]:
    """Requests and seconds of each step, by store and number of parts."""
    head = ("store", "parts", *_STEPS)
    rows = []
    with mock.patch.dict(os.environ):
        for make in (_local, _hdfs, _s3):
            with make(context) as place:
                for parts in context.parts:
                    context.say(f"publishing {parts:,} parts on {place.name}")
                    rows.append((place.name, f"{parts:,}", *_measured(place, parts)))
    yield Table(
        "Publishing releases of many parts",
        head,
        rows,
        note="Requests to the server and seconds; parts of 1 KiB. A first release; one that "
        "replaces it; one whose process ends after half of the copies, and its retry (only S3 "
        "copies); the removal of as many working files. HDFS and S3 are the servers of the tests, "
        "on the same machine. Arrow takes three requests to delete one object of an S3.",
    )


_STEPS = ("first", "replacing", "interrupted", "its retry", "working files removed")


def _measured(place: _Place, parts: int) -> Iterator[str]:
    from mondrian_ops import publish as publishing

    output, staging = f"{place.url}/{parts}/out", f"{place.url}/{parts}/staging"

    def publish(token: str, half: bool = False) -> None:
        def stop(copied: int, of: int) -> None:
            if half and copied * 2 >= of:
                raise InterruptedError

        publishing.publish(staging, output, token, progress=stop)

    _stage(staging, "1", parts)
    yield _told(place, lambda: publish("1"))
    _stage(staging, "2", parts)
    yield _told(place, lambda: publish("2"))
    if place.name == "S3":
        _stage(staging, "3", parts)
        yield _told(place, lambda: _interrupted(lambda: publish("3", half=True)))
        yield _told(place, lambda: publish("3"))
    else:
        yield from ("", "")
    _stage(staging, "4", parts)
    yield _told(place, publishing.WorkDir(staging).remove)


def _interrupted(publish: Callable[[], None]) -> None:
    try:
        publish()
    except InterruptedError:
        return
    raise AssertionError("was not interrupted")


def _told(place: _Place, step: Callable[[], object]) -> str:
    before, start = place.requests(), perf_counter()
    step()
    taken, asked = perf_counter() - start, place.requests() - before
    return seconds(taken) if place.name == "local" else f"{asked:,} in {seconds(taken)}"


def _stage(staging: str, run: str, parts: int) -> None:
    from mondrian_ops import stores

    store, path = stores.filesystem(staging)
    store.create_dir(path)

    def write(number: int) -> None:
        stores.write_file(f"{staging}/part-{run}-{number:06}.parquet", _PART)

    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(write, range(parts)))
    stores.write_file(f"{staging}/_report.json", _REPORT)


@contextmanager
def _local(context: Context) -> Iterator[_Place]:
    yield _Place("local", str(context.scratch / "local"), lambda: 0)


@contextmanager
def _s3(context: Context) -> Iterator[_Place]:
    from servers.s3 import S3
    from servers.stores import S3Folder

    with S3() as server:
        os.environ.update(server.environment)
        folder = S3Folder(server, "releases")
        yield _Place("S3", folder.url().rstrip("/"), lambda: len(server.requests))


@contextmanager
def _hdfs(context: Context) -> Iterator[_Place]:
    import requests

    from servers.hdfs import Hdfs
    from servers.stores import USER, HdfsFolder

    os.environ["HADOOP_USER_NAME"] = USER
    asked, request = [], requests.Session.request

    def counted(self: requests.Session, *arguments: Any, **options: Any) -> requests.Response:
        asked.append(arguments)
        return request(self, *arguments, **options)

    with (
        Hdfs(context.scratch / "hdfs") as server,
        mock.patch.object(requests.Session, "request", counted),
    ):
        yield _Place("HDFS", HdfsFolder(server, "/releases").url(), lambda: len(asked))
