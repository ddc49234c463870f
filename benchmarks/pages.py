"""How long it takes to list ten thousand releases, kept on disk and on S3.

The index is as :meth:`ReportArchive.keep` leaves it, one release after the other. On S3 it is the
same files, behind the S3 server of the tests, which runs in this process and answers from memory.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from benchmarks import required
from benchmarks.context import Context
from benchmarks.measure import median_seconds
from benchmarks.tables import Table, seconds, verdict

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

RELEASES = 10_000
_FIRST = datetime(2025, 1, 1, tzinfo=UTC)


def listed(context: Context) -> Iterator[Table]:
    """Seconds to list every release, for a process that has read none of them, and one that has."""
    from mondrian_ops.storage import ReportArchive

    count = min(RELEASES, context.rows)
    local = ReportArchive(str(context.scratch / "reports"))
    context.say(f"keeping {count:,} releases")
    for number in range(count):
        local.keep(_entry(number), {})
    files = sorted((Path(local.url) / "index").iterdir())
    rows = [_row("disk", local.url, count, context)]
    with _on_s3(files) as url:
        rows.append(_row("S3", url, count, context))
    yield Table(
        f"Listing {count:,} releases",
        ("archive on", "required", "read anew", "", "read before", "the page, read before"),
        rows,
        note=f"An index of {len(files)} files, as the tasks leave it. Read anew: by a process that "
        "has read none of it; read before: as for every request after the first, which looks "
        "whether there is more. The page: the first of the list, as HTML, without Airflow's own "
        "check of who asks. S3 is the server of the tests, in the same process: no network, and a "
        f"share of its core. Median of {context.rounds}.",
    )


def _row(place: str, url: str, count: int, context: Context) -> tuple[str, ...]:
    from mondrian_ops.storage import ReportArchive

    def anew() -> None:
        listed = len(ReportArchive(url).entries())
        if listed != count:
            raise RuntimeError(f"{listed} of {count} releases are listed")

    known = ReportArchive(url)
    known.entries()
    taken = median_seconds(anew, context.rounds)
    again = median_seconds(known.entries, context.rounds)
    with _client(url) as client:
        client.get("/releases")
        page = median_seconds(lambda: client.get("/releases").raise_for_status(), context.rounds)
    met = verdict(taken <= required.LIST_S) if count == RELEASES else ""
    limit = f"≤ {seconds(required.LIST_S)}"
    return place, limit, seconds(taken), met, seconds(again), seconds(page)


@contextmanager
def _client(url: str) -> Iterator[TestClient]:
    """Somebody who may read everything."""
    from airflow.api_fastapi.core_api.security import get_user
    from fastapi.testclient import TestClient

    from mondrian_ops.storage import ReportArchive
    from mondrian_ops.web import reader
    from mondrian_ops.web.pages import create

    app = create(ReportArchive(url))
    app.dependency_overrides[get_user] = lambda: None
    logging.disable(logging.INFO)  # a line for each request
    with mock.patch.object(reader, "readable_dags", lambda _user, dag_ids: set(dag_ids)):
        yield TestClient(app)
    logging.disable(logging.NOTSET)


@contextmanager
def _on_s3(files: list[Path]) -> Iterator[str]:
    """An archive with these files of the index, in a bucket of its own."""
    from servers.s3 import S3
    from servers.stores import S3Folder

    with S3() as server, mock.patch.dict(os.environ, server.environment):
        bucket = S3Folder(server, "reports")
        for file in files:
            bucket.put(f"reports/index/{file.name}", file.read_bytes())
        yield bucket.url("reports")


def _entry(number: int) -> Mapping[str, Any]:
    """One night of one of ten datasets."""
    day = _FIRST + timedelta(days=number // 10, seconds=number % 10)
    dataset = f"customers-{number % 10}"
    return {
        "id": f"{number:032x}",
        "time": day.isoformat(timespec="microseconds"),
        "dataset": f"s3://releases/{dataset}/{day:%Y-%m-%d}",
        "input": f"s3://landing/{dataset}/{day:%Y-%m-%d}.parquet",
        "dag_id": "mondrian_nightly",
        "run_id": f"scheduled__{day.isoformat()}",
        "task_id": "anonymize.wrap_up",
        "map_index": number % 10,
        "state": "published",
        "reason": None,
        "k": 5,
        "l": 2,
        "t": None,
        "algorithm": "mondrian",
        "engine": "local",
        "achieved_k": 5,
        "achieved_l": 2,
        "achieved_t": None,
        "rows_input": 1_000_000 + number,
        "rows_published": 1_000_000 + number,
        "rows_suppressed": 0,
        "equivalence_classes": 149_857,
        "NCP": 1762376.6 + number,
        "GCP": 0.17623766,
        "LM": 0.17623766,
        "DP": 7_140_530,
        "risk": 0.2,
        "risk_avg": 0.149857,
        "duration_s": 12.345,
    }
