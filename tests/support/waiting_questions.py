"""Airflow's part in an approval, without an Airflow: it shows a question, and has an answer.

As Airflow does, it keeps the first question of a task of a run, whatever the task asks later, and
forgets the answer when the task asks again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import CreateHITLDetailPayload

from mondrian_ops.operators import airflow_record, questions
from mondrian_ops.operators.airflow_record import AirflowRecord, Answer, Change

AT = datetime(2025, 6, 1, 12, tzinfo=UTC)


class Airflow:
    """``asked``: what the tasks asked, in order; ``shown``: the question that people see.

    ``changes``: who has changed the run, as Airflow's log has it.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.sent: list[Any] = []
        self.shown: CreateHITLDetailPayload | None = None
        self.answer: Answer | None = None
        self.changes: list[Change] = []
        self.is_away = False

    def send(self, msg: Any) -> Any:
        """What a task says to its supervisor."""
        if not isinstance(msg, CreateHITLDetailPayload):
            self.sent.append(msg)
            return None
        self.asked.append(msg.model_dump())
        self.shown, self.answer = self.shown or msg, None
        return self.shown

    def answered(
        self, option: str, user: str = "1", name: str | None = "ada", **more: Any
    ) -> dict[str, Any]:
        """A person answers, or nobody does in time; the event with which the task is resumed."""
        at = AT.isoformat(timespec="seconds")
        self.answer = None if name is None else Answer((option,), user, name, at)
        who = {"id": user, "name": name} if name else None  # nobody: Airflow did
        return {"chosen_options": [option], "responded_at": AT, "responded_by_user": who, **more}

    def changed(self, by: str, event: str = "clear_dag_run", at: datetime = AT) -> None:
        """Somebody clears the run, or changes a task of it."""
        self.changes.append(Change(by, at, event))

    def record(self, _entry_id: str, _password: str) -> AirflowRecord:
        """What the API server tells a task."""
        if self.is_away:
            raise OSError("approval: Airflow's API server cannot be asked")
        return AirflowRecord(self.answer, tuple(self.changes))


def installed(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    """An Airflow that the tasks of this process talk to."""
    airflow = Airflow()
    comms = SimpleNamespace(send=airflow.send)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", comms, raising=False)
    monkeypatch.setattr(questions, "airflow_record", airflow.record)
    monkeypatch.setattr(airflow_record, "PATIENCE_S", 0.0)
    return airflow
