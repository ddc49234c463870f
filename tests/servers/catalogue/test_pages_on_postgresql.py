"""The catalogue in a PostgreSQL: made by several at once, listed, away, backed up.

What imports Airflow is imported late: of several processes one alone does so to collect tests.
"""

from __future__ import annotations

import logging
import random
import runpy
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import psycopg2
import pytest
from fastapi.testclient import TestClient

from mondrian_ops import stores
from mondrian_ops.catalogue import Catalogue, Place
from mondrian_ops.catalogue.database import PATIENCE_S
from mondrian_ops.errors import StorageError
from mondrian_ops.web.release_list import SORTS, Choice
from releases import entry, entry_id, keep, keep_entry, report_of
from servers.postgres import new_database

pytestmark = pytest.mark.postgres

CHECKOUT = Path(__file__).resolve().parents[3]
READABLE = "mondrian_ops.web.reader.readable_dags"
PLACES = ("out/People_1", "out/a%b", "s3://x/éé")
JOB = {"input": "in.csv", "output": "out/people", "k": 2, "quasi_identifiers": ["age"]}


@pytest.fixture
def opened(database, tmp_path) -> Catalogue:
    return Catalogue(Place.of(database.url, str(tmp_path / "catalogue.key")))


@pytest.fixture
def connected(database, monkeypatch, tmp_path) -> None:
    """Airflow's configuration names the database by a connection."""
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE_CONN_ID", "a_catalogue")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE_KEY", str(tmp_path / "catalogue.key"))
    url = database.url.replace("postgresql+psycopg2", "postgres")
    monkeypatch.setenv("AIRFLOW_CONN_A_CATALOGUE", url)


@pytest.fixture
def client(connected, monkeypatch) -> TestClient:
    """Somebody who may read everything, at the pages that Airflow serves."""
    from airflow.api_fastapi.core_api.security import get_user

    from mondrian_ops import airflow_plugin

    monkeypatch.setattr(READABLE, lambda _user, dag_ids: set(dag_ids))
    airflow_plugin._catalogue.cache_clear()
    app = airflow_plugin._pages.__wrapped__()
    app.dependency_overrides[get_user] = lambda: None
    return TestClient(app)


def listed(opened: Catalogue, **keys) -> list[int]:
    from mondrian_ops.web.reader import Reader

    looking = Reader(lambda: opened, None)
    with looking.opened():
        return [int(row.id, 16) for row in looking.page(Choice(**keys)).rows]


def recorded(name: str) -> str:
    """Record a release as `wrap_up` does; the id of its page, empty if it was not recorded."""
    from mondrian_ops.operators.release_records import record

    context = {
        "dag_run": SimpleNamespace(dag_id="a_dag", run_id=name),
        "ti": SimpleNamespace(task_id="wrap_up", map_index=-1),
    }
    return record(context, stores.load_job(JOB), report_of()).rpartition("/")[2]


def test_several_may_make_it_at_once(database, tmp_path):
    ready = threading.Barrier(4)

    def make(number: int) -> None:
        of = Catalogue(Place.of(database.url, str(tmp_path / "catalogue.key")))
        ready.wait()
        keep_entry(of, entry(number))
        assert of.key

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(make, range(4)))
    with Catalogue(Place.of(database.url)).reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM release").scalar() == 4
        assert connection.exec_driver_sql("SELECT count(*) FROM secret_key").scalar() == 1


def test_a_key_is_not_made_for_it(database):
    with pytest.raises(StorageError, match="openssl rand -hex 32"):
        _ = Catalogue(Place.of(database.url)).key


def test_its_list_is_that_of_sqlite_and_of_brute_force(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(READABLE, lambda _user, dag_ids: set(dag_ids) - {"hidden"})
    small, drawn = Catalogue(Place.of(str(tmp_path / "small.db"))), random.Random(1)
    entries = [
        entry(
            number,
            dataset=f"{drawn.choice(PLACES)}/2025-01-{number:02}",
            dag_id=drawn.choice(["a", "b", "hidden"]),
            state=drawn.choice(["published", "refused"]),
            GCP=drawn.choice([None, 0.1, 0.2, 0.3]),
            k=drawn.choice([2, 5, 10]),
        )
        for number in range(1, 32)
    ]
    for each in entries:
        keep_entry(opened, each)
        keep_entry(small, each)
    for sort in ("time", "gcp", "k"):
        for order in ("asc", "desc"):
            for dataset, state in (("", ""), ("people_", "published"), ("A%", ""), ("ÉÉ/*", "")):
                keys = {"sort": sort, "order": order, "dataset": dataset, "state": state}
                expected = brute_force(entries, **keys)
                assert listed(small, **keys) == listed(opened, **keys) == expected


def brute_force(entries, sort, order, dataset, state) -> list[int]:
    column = SORTS[sort]
    chosen = [
        each
        for each in sorted(entries, key=lambda each: each["time"], reverse=True)
        if each["dag_id"] != "hidden"
        and (dataset.casefold() in f"{each['dataset']}\n{each['dataset'][:-10]}*".casefold())
        and state in ("", each["state"])
    ]
    with_figure = [each for each in chosen if each.get(column) is not None]
    without = [each for each in chosen if each.get(column) is None]
    if column == "time":
        with_figure = with_figure[:: 1 if order == "desc" else -1]
    else:
        with_figure.sort(key=lambda each: each[column], reverse=order == "desc")
    return [int(each["id"], 16) for each in with_figure + without]


def test_the_pages_say_that_it_is_away_and_show_it_when_it_is_back(opened, client, database):
    keep(opened, 1)
    assert client.get(f"/releases/{entry_id(1)}").status_code == 200
    database.cut_off()
    for path in ("/releases", f"/releases/{entry_id(1)}"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert "The catalogue of releases cannot be read" in answer.text
        assert "Traceback" not in answer.text
        assert database.name not in answer.text
    database.back()
    assert "1 release." in client.get("/releases").text


def test_a_task_waits_for_one_that_is_away_for_a_minute(
    connected, database, client, monkeypatch, caplog
):
    """Here for two seconds. A retry makes good what outlasts the patience."""
    first = recorded("first")
    database.cut_off()
    with caplog.at_level(logging.WARNING):
        assert recorded("lost") == ""
    assert "the pages do not show this run" in caplog.text
    monkeypatch.setattr("mondrian_ops.catalogue.database.PATIENCE_S", PATIENCE_S)
    back = threading.Timer(2.0, database.back)
    back.start()
    second = recorded("second")
    back.join()
    assert "trying for 90 s" in caplog.text
    assert first
    assert second
    assert recorded("lost")
    assert "3 releases" in client.get("/releases").text


def test_the_platform_s_user_of_it_sees_nothing_of_airflow(postgres_url):
    """As docker/airflow/initialize.py prepares it, also for the second time."""
    airflow = new_database(postgres_url, "of_airflow")
    program = runpy.run_path(str(CHECKOUT / "docker" / "airflow" / "initialize.py"))
    for password in ("first", "second"):
        program["make_database"](airflow.replace("+psycopg2", ""), password)
    server = airflow.rpartition("/")[0].replace("airflow@", "mondrian_ops@")
    keep_entry(Catalogue(Place.of(f"{server}/mondrian_ops")), entry(1))
    with pytest.raises(psycopg2.OperationalError, match="permission denied for database"):
        psycopg2.connect(f"{server}/of_airflow".replace("+psycopg2", ""))
