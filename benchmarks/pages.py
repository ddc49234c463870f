"""How long the pages take to list ten thousand releases, from SQLite and from PostgreSQL.

The PostgreSQL is that of the tests, on the same machine. Neither is asked before: each page opens a
connection of its own, as it does in Airflow's API server.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

from benchmarks import required
from benchmarks.context import Context
from benchmarks.measure import median_seconds
from benchmarks.tables import Table, seconds, verdict

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

    from mondrian_ops.catalogue import Catalogue

RELEASES = 10_000
_FIRST = datetime(2025, 1, 1, tzinfo=UTC)
_PAGES = {
    "first page": "",
    "last page": "?page=200",
    "by loss": "?sort=gcp",
    "by name": "?dataset=customers-7",
}


def listed(context: Context) -> Iterator[Table]:
    """Seconds for a page of the list, of every release and of some."""
    from servers.needs import NEEDS
    from servers.postgres import postgres_server

    count = min(RELEASES, context.rows)
    rows = [_row("SQLite", str(context.scratch / "catalogue.db"), count, context)]
    if not NEEDS["postgres"]():
        with postgres_server(context.scratch) as url:
            rows.append(_row("PostgreSQL", url, count, context))
    yield Table(
        f"Listing {count:,} releases",
        ("catalogue in", "required", *_PAGES, ""),
        rows,
        note="A page of 50 releases as HTML, with the loss and the drift of its ten datasets, "
        "without Airflow's own check of who asks; by name: the releases of one dataset. Each page "
        "opens a connection of its own. PostgreSQL is the server of the tests, on the same "
        f"machine. Median of {context.rounds}.",
    )


def _row(place: str, location: str, count: int, context: Context) -> tuple[str, ...]:
    from mondrian_ops.catalogue import Catalogue, Place, releases

    catalogue = Catalogue(Place.of(location))
    context.say(f"recording {count:,} releases in {place}")
    with catalogue.writing() as connection:
        for number in range(count):
            releases.keep(connection, _entry(number), {})
    taken = []
    with _client(catalogue) as client:
        for query in _PAGES.values():
            address = f"/releases{query}"
            client.get(address).raise_for_status()
            taken.append(
                median_seconds(lambda a=address: client.get(a).raise_for_status(), context.rounds)
            )
    met = verdict(max(taken) <= required.LIST_S) if count == RELEASES else ""
    return place, f"≤ {seconds(required.LIST_S)}", *map(seconds, taken), met


@contextmanager
def _client(catalogue: Catalogue) -> Iterator[TestClient]:
    """Somebody who may read everything."""
    from airflow.api_fastapi.core_api.security import get_user
    from fastapi.testclient import TestClient

    from mondrian_ops.web import reader
    from mondrian_ops.web.pages import create

    app = create(lambda: catalogue)
    app.dependency_overrides[get_user] = lambda: mock.Mock()
    logging.disable(logging.INFO)  # a line for each request
    with mock.patch.object(reader, "readable_dags", lambda _user, dag_ids: set(dag_ids)):
        yield TestClient(app)
    logging.disable(logging.NOTSET)


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
