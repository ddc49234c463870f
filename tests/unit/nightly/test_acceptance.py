"""A drop of the nightly DAG whose columns changed, and who accepts that in the form."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops import pipeline, stores
from mondrian_ops.errors import JobError, StorageError
from mondrian_ops.nightly.acceptance import accept_changes
from mondrian_ops.nightly.landing import Drop
from mondrian_ops.operators import PartitionOperator
from mondrian_ops.pipeline import contract
from recording_notifier import RecordingNotifier
from releases import recorded_releases
from task_contexts import read_job, task_context

ANN = SimpleNamespace(triggering_user_name="ann")


class Nightly:
    """The dataset `people` of a nightly DAG in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.releases = str(folder / "out")
        (folder / "jobs").mkdir()
        job = "k: 2\nquasi_identifiers: [age]\nunlisted: publish\n"
        (folder / "jobs" / "people.yaml").write_text(job)

    def job(self, day: int, more: str = "") -> dict[str, Any]:
        """The job of a drop as its tasks get it; ``more``: a further column."""
        file = self.folder / f"2025-06-{day:02d}.csv"
        extra = f",{more}" if more else ""
        file.write_text(f"age{extra}\n" + "".join(f"{n}{extra and ',7'}\n" for n in range(20, 30)))
        drop = Drop("people", date(2025, 6, day), (str(file),))
        return drop.job(self.folder / "jobs", self.releases)

    def partition(self, job: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
        task = PartitionOperator(task_id="partition", job=job, **options)
        return task.execute(task_context())

    @property
    def change(self) -> str:
        """The id of the change that waits."""
        (found,) = contract.state_of(f"{self.releases}/people/2025-06-01")[1]
        return found.id


@pytest.fixture
def nightly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nightly]:
    """One night is released."""
    for option in ("INPUTS", "OUTPUTS"):
        monkeypatch.setenv(f"AIRFLOW__MONDRIAN_OPS__ALLOWED_{option}", str(tmp_path))
    made = Nightly(tmp_path)
    pipeline.run(read_job(made.job(1)))
    yield made
    stores.use_policy(None)


def test_a_drop_that_differs_is_refused_recorded_and_notified(nightly: Nightly) -> None:
    notifier = RecordingNotifier()
    with pytest.raises(AirflowFailException, match="'ssn' is new") as caught:
        nightly.partition(nightly.job(2, "ssn"), on_refusal=notifier)
    assert nightly.change in str(caught.value)
    (entry,) = recorded_releases()
    assert entry["state"] == "refused"
    assert nightly.change in entry["reason"]
    assert nightly.partition(nightly.job(3))  # the next drop goes on


def test_who_triggers_the_dag_with_the_id_accepts_the_change(nightly: Nightly) -> None:
    job = nightly.job(2, "ssn")
    with pytest.raises(AirflowFailException):
        nightly.partition(job)
    change = nightly.change
    for _ in range(2):  # the task may be cleared
        accept_changes([f" {change} "], ANN, nightly.releases)
    assert nightly.partition(job)
    assert pipeline.run(read_job(job))["contract"]["accepted"]["by"] == "ann"
    accept_changes([change], ANN, nightly.releases)


def test_a_run_without_ids_accepts_nothing(nightly: Nightly) -> None:
    accept_changes([], SimpleNamespace(triggering_user_name=None), nightly.releases)


def test_nobody_accepts_what_has_no_name(nightly: Nightly) -> None:
    with pytest.raises(JobError, match=r"^accept: Airflow does not say who"):
        accept_changes(["1a"], SimpleNamespace(triggering_user_name=None), nightly.releases)


@pytest.mark.parametrize("below", ["elsewhere", "ou", "out/peopl"])
def test_the_form_accepts_no_change_of_other_releases(nightly: Nightly, below: str) -> None:
    job = nightly.job(2, "ssn")
    with pytest.raises(AirflowFailException):
        nightly.partition(job)
    with pytest.raises(StorageError, match=nightly.change):
        accept_changes([nightly.change], ANN, str(nightly.folder / below))
    with pytest.raises(AirflowFailException):
        nightly.partition(job)


def test_the_job_of_a_dataset_may_say_otherwise(nightly: Nightly) -> None:
    file = nightly.folder / "jobs" / "people.yaml"
    file.write_text(file.read_text() + "schema: evolve\n")
    assert nightly.partition(nightly.job(2, "ssn"))
