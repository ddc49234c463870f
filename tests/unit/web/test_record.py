"""What the API server tells a task of Airflow's tables: who answered, and who changed the run."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from sqlalchemy.orm import scoped_session, sessionmaker

from mondrian_ops.catalogue import Catalogue, Place, approvals
from mondrian_ops.catalogue.approvals import Asked, Instance
from mondrian_ops.links import RECORD_HEADER
from mondrian_ops.web.record import create, recorded

BEGAN = datetime(2025, 6, 1, 10, tzinfo=UTC)
ID = "0" * 32
TI = uuid.UUID(int=7)
OURS = Instance("a_dag", "a_run", "group.wrap_up", 2)
ANSWER = {"chosen": ["Approve"], "user": "2", "name": "grace", "at": "2025-06-01T12:00:00+00:00"}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Airflow's tables, in a database of their own; and those that are filled, by name."""
    from airflow import models
    from airflow.models.dagrun import DagRun
    from airflow.models.hitl import HITLDetail
    from airflow.models.log import Log
    from airflow.models.taskinstance import TaskInstance

    models.import_all_models()
    engine = sa.create_engine(f"sqlite:///{tmp_path_factory.mktemp('airflow')}/airflow.db")
    made = {each.__name__: each.__table__ for each in (DagRun, TaskInstance, HITLDetail, Log)}
    for table in made.values():
        table.create(engine)
    return engine, made


@pytest.fixture
def tables(database, monkeypatch):
    """Fill one of the tables; there is a run with two instances of its task."""
    from airflow import settings

    engine, made = database
    monkeypatch.setattr(settings, "Session", scoped_session(sessionmaker(engine)))
    with engine.begin() as connection:
        for table in made.values():
            connection.execute(table.delete())
        connection.execute(made["DagRun"].insert().values({**RUN, "id": 1}))
        for number, index in enumerate((2, 3)):
            instance = {"id": uuid.UUID(int=7 + number), "map_index": index}
            connection.execute(made["TaskInstance"].insert().values({**INSTANCE, **instance}))

    def add(name, **values):
        with engine.begin() as connection:
            connection.execute(made[name].insert().values(values))

    def change(name, **values):
        with engine.begin() as connection:
            connection.execute(made[name].update().values(values))

    def remove(name):
        with engine.begin() as connection:
            connection.execute(made[name].delete())

    add.change, add.remove = change, remove
    return add


RUN = {
    "dag_id": "a_dag", "run_id": "a_run", "run_type": "manual", "created_at": BEGAN,
    "run_after": BEGAN - timedelta(hours=3), "state": "running", "triggered_by": "UI",
    "log_template_id": None,
}  # fmt: skip
INSTANCE = {
    "dag_id": "a_dag", "run_id": "a_run", "task_id": "group.wrap_up", "map_index": 2,
    "try_number": 1, "pool": "p", "pool_slots": 1, "executor_config": {},
}  # fmt: skip


def ask(tables, ti=TI, **answered):
    shown = {"options": ["Approve", "Reject"], "subject": "s", "params": {}, "params_input": {}}
    tables("HITLDetail", ti_id=ti, created_at=BEGAN, **shown, **answered)


RESPONSE = {
    "responded_at": datetime(2025, 6, 1, 12, 0, 0, 500, tzinfo=UTC),
    "responded_by": {"id": "2", "name": "grace"},
    "chosen_options": ["Approve"],
}


def test_a_person_s_answer_is_told(tables):
    ask(tables, **RESPONSE)
    assert recorded(OURS) == {"answer": ANSWER, "changes": []}


@pytest.mark.parametrize("without", ["question", "answer", "person"])
def test_what_no_person_answered_is_none(tables, without):
    """Airflow answers by itself when nobody does in time."""
    if without == "answer":
        ask(tables)
    if without == "person":
        ask(tables, **{**RESPONSE, "responded_by": None})
    assert recorded(OURS)["answer"] is None


def test_the_answer_to_another_question_is_none(tables):
    ask(tables, ti=uuid.UUID(int=8), **RESPONSE)
    assert recorded(OURS)["answer"] is None
    assert recorded(OURS._replace(map_index=3))["answer"] == ANSWER


def test_nor_is_that_to_an_earlier_one(tables):
    ask(tables, **RESPONSE)
    assert recorded(OURS._replace(map_index=3))["answer"] is None


@pytest.mark.parametrize("column", ["dag_id", "run_id", "task_id", "map_index"])
def test_nor_is_that_of_another_dag_run_or_task(tables, column):
    for number, other in enumerate((1, 4) if column == "map_index" else ("a", "z"), start=9):
        tables("TaskInstance", **{**INSTANCE, "id": uuid.UUID(int=number), column: other})
        ask(tables, ti=uuid.UUID(int=number), **RESPONSE)
    assert recorded(OURS)["answer"] is None


def log(tables, event, by="grace", *, dag="a_dag", run="a_run", hours=1, **details):
    extra = None if details.get("method", "") is None else json.dumps({"method": "POST", **details})
    at = BEGAN + timedelta(hours=hours)
    tables("Log", event=event, owner=by, dag_id=dag, run_id=run, dttm=at, extra=extra)


CHANGES = {
    "clears the run": ("clear_dag_run", {}),
    "clears tasks": ("post_clear_task_instances", {"task_ids": ["partition"]}),
    "clears tasks of all runs": ("post_clear_task_instances", {"run": None}),
    "clears named runs": ("clear_dag_runs", {"dag": "~", "run": None, "dag_runs": ["a_run"]}),
    "clears unnamed runs": ("clear_dag_runs", {"dag": "~", "run": None}),
    "clears by partition": ("clear_dag_run_partitions", {"run": None}),
    "clears by partition of any DAG": ("clear_dag_run_partitions", {"dag": None, "run": ""}),
    "backfills": ("create_backfill", {"run": None}),
    "changes many runs": ("bulk_dag_runs", {"dag": "~", "run": "~", "actions": ["a_run"]}),
    "changes many when it begins": ("create_backfill", {"run": None, "hours": 0}),
    "marks a task": ("patch_task_instance", {"method": "PATCH", "new_state": "success"}),
    "marks a group": ("patch_task_group_instances", {"method": "PATCH", "new_state": "failed"}),
    "marks the run": ("patch_dag_run", {"method": "PATCH", "state": "failed"}),
    "changes an XCom": ("update_xcom_entry", {"method": "PATCH", "value": 1}),
    "removes an XCom": ("delete_xcom_entry", {"method": "DELETE"}),
    "uses a command": ("cli_task_clear", {"run": None, "method": None}),
}


@pytest.mark.parametrize(("event", "details"), CHANGES.values(), ids=CHANGES)
def test_whoever_changes_a_run_is_told(tables, event, details):
    log(tables, event, **details)
    at = (BEGAN + timedelta(hours=details.get("hours", 1))).isoformat()
    assert recorded(OURS)["changes"] == [{"by": "grace", "at": at, "event": event}]


NONE = {
    "answers": ("update_hitl_detail", {"method": "PATCH"}),
    "writes a note at the run": ("patch_dag_run", {"method": "PATCH", "note": "fine"}),
    "writes a note at a task": ("patch_task_instance", {"method": "PATCH", "note": "fine"}),
    "changes another run": ("clear_dag_run", {"run": "another"}),
    "changes another DAG": ("clear_dag_run", {"dag": "another"}),
    "clears other runs by name": ("clear_dag_runs", {"run": None, "dag_runs": ["b"]}),
    "looks what would be cleared": ("clear_dag_runs", {"run": None, "dry_run": True}),
    "clears before the run": ("post_clear_task_instances", {"run": None, "hours": -1}),
    "changes other runs by name": ("bulk_dag_runs", {"run": None, "actions": ["b"]}),
    "looks at the run": ("get_dag_run", {"method": "GET"}),
    "is nobody": ("clear_dag_run", {"by": None}),
    "uses a command that clears nothing": ("cli_dag_list", {"run": None, "method": None}),
    "pauses the DAG": ("patch_dag", {"run": None, "is_paused": True}),
    "owns the task that begins": ("running", {"method": None}),
}


@pytest.mark.parametrize(("event", "details"), NONE.values(), ids=NONE)
def test_others_are_not(tables, event, details):
    log(tables, event, **details)
    assert recorded(OURS)["changes"] == []


def test_other_runs_do_not_tell_when_this_one_began(tables):
    number = 2
    for column in ("dag_id", "run_id"):
        for other in ("a", "z"):
            late = {column: other, "created_at": BEGAN + timedelta(hours=5)}
            tables("DagRun", **{**RUN, "id": number, **late})
            log(tables, "clear_dag_run", "eve", **{column[:3]: other})
            number += 1
    log(tables, "create_backfill", run=None)
    log(tables, "clear_dag_run", hours=2)
    assert [each["event"] for each in recorded(OURS)["changes"]] == [
        "create_backfill",
        "clear_dag_run",
    ]


def test_a_run_without_a_time_of_creation_began_when_it_might(tables):
    tables.change("DagRun", created_at=None)
    log(tables, "create_backfill", run=None, hours=-2)
    log(tables, "create_backfill", run=None, hours=-4)
    assert len(recorded(OURS)["changes"]) == 1


def test_of_a_run_that_is_gone_all_changes_count(tables):
    tables.remove("DagRun")
    log(tables, "create_backfill", run=None, hours=-1000)
    assert len(recorded(OURS)["changes"]) == 1


@pytest.mark.parametrize("extra", ["", "{", "[1]", "7"])
def test_an_entry_whose_details_cannot_be_read_tells_of_commands_only(tables, extra):
    for event in ("clear_dag_run", "cli_dag_clear"):
        at = BEGAN + timedelta(hours=1)
        entry = {"dag_id": "a_dag", "run_id": "", "dttm": at, "extra": extra}
        tables("Log", event=event, owner="grace", **entry)
        tables("Log", event=event, owner="grace", **{**entry, "dttm": None, "run_id": "a_run"})
    assert [each["event"] for each in recorded(OURS)["changes"]] == ["cli_dag_clear"]


KEY = b"k" * 32


@pytest.fixture
def client(tables, tmp_path):
    """Who asks the application over a catalogue with a question."""
    catalogue = Catalogue(Place.of(str(tmp_path / "catalogue.db")))
    asked = Asked(OURS, {"token": "a token"}, "a digest")
    with catalogue.writing() as connection:
        approvals.keep(connection, KEY, ID, asked, "2025")
    ask(tables, **RESPONSE)
    return TestClient(create(lambda: catalogue)), asked.password(KEY)


def test_only_who_has_the_password_of_a_question_is_told(client):
    client, password = client
    told = client.get(f"/{ID}", headers={RECORD_HEADER: password})
    assert (told.status_code, told.json()["answer"]) == (200, ANSWER)
    assert told.headers["cache-control"] == "no-store"
    refused = [
        client.get(f"/{ID}"),
        client.get(f"/{ID}", headers={RECORD_HEADER: ""}),
        client.get(f"/{ID}", headers={RECORD_HEADER: password[:-1]}),
        client.get(f"/{'1' * 32}", headers={RECORD_HEADER: password}),
        client.get("/", headers={RECORD_HEADER: password}),
        client.get("/docs"),
        client.get("/openapi.json"),
    ]
    assert {(each.status_code, each.text) for each in refused} == {(404, "{}")}


def test_other_methods_and_failures_tell_nothing(tmp_path, tables):
    def broken():
        raise OSError("catalogue: a password of the database")

    client = TestClient(create(broken), raise_server_exceptions=False)
    answer = client.get(f"/{ID}", headers={RECORD_HEADER: "x"})
    assert (answer.status_code, answer.text) == (503, "{}")
    assert client.post(f"/{ID}").text == "{}"
