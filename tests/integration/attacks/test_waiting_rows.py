"""Rows that wait come out another night, through an input that has weaker policies, or none.

The policies that a row arrived under go with it: the night that publishes it has to meet them all,
whoever runs it, and whatever its own input is.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskAwaitingInput

from mondrian_ops import pipeline, publish, stores
from mondrian_ops.datasets.people import people
from mondrian_ops.errors import ApprovalError, JobError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.series.waiting import arrivals_in
from nights import silent
from task_runs import TaskRun
from tiers import one_in
from waiting_questions import Airflow, installed

STRICT = {"min_k": 50, "min_l": 2}


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clinic]:
    """A clinic whose patients are held to a policy, and whose visitors are not."""
    for option in ("INPUTS", "OUTPUTS"):
        monkeypatch.setenv(f"AIRFLOW__MONDRIAN_OPS__ALLOWED_{option}", str(tmp_path))
    catalogue = os.environ["MONDRIAN_OPS_CATALOGUE"]
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE", catalogue)
    yield Clinic(tmp_path, monkeypatch)
    stores.use_policy(None)
    stores.use_policies(None)


class Clinic:
    """A series of two nights: the first night's patients wait, and the second has visitors."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch, self._nights = folder, patch, 0
        self.decree(STRICT)

    def decree(self, *policies: dict[str, Any] | None, unmatched: str = "allow") -> None:
        """Have these policies hold for the inputs ``patients``, ``visitors``; None: no policy."""
        inputs = [str(self.folder / name) for name in ("patients", "visitors")]
        held = [
            {"name": Path(place).name, "inputs": [place], **policy}
            for place, policy in zip(inputs, policies, strict=False)
            if policy is not None
        ]
        file = self.folder / "policies.json"
        file.write_text(json.dumps({"unmatched": unmatched, "policies": held}))
        self._patch.setenv("AIRFLOW__MONDRIAN_OPS__POLICIES", str(file))

    def begin_again(self) -> None:
        """The next night is the first one once more."""
        self._nights = 0

    def without_policies(self) -> None:
        self._patch.delenv("AIRFLOW__MONDRIAN_OPS__POLICIES")

    def options(self, whose: str, rows: int, **changes: Any) -> dict[str, Any]:
        """The job of the next night, which has a drop of so many people."""
        self._nights += 1
        day = f"2025-01-{self._nights:02d}"
        drop = self.folder / whose / f"{day}.parquet"
        drop.parent.mkdir(exist_ok=True)
        table = people(rows, self._nights).select(["age", "zip", "sex", "diagnosis"])
        whose_rows = table.append_column("came", pa.array([whose] * rows))
        pq.write_table(whose_rows, drop)
        return {
            "input": str(drop),
            "output": str(self.folder / "out" / day),
            "k": 50,
            "l": 2,
            "quasi_identifiers": ["age", "zip=prefix", "sex"],
            "sensitive": ["diagnosis"],
            "series": {"hold_nights": 9},
            **changes,
        }

    def job(self, whose: str, rows: int, **changes: Any) -> Job:
        return publish.check_job(stores.load_job(self.options(whose, rows, **changes)))

    def night(self, whose: str, rows: int, **changes: Any) -> dict[str, Any]:
        return pipeline.run(self.job(whose, rows, **changes), silent)

    def published(self) -> list[Path]:
        return list((self.folder / "out").glob("2025-*"))


def weaker(**changes: Any) -> dict[str, Any]:
    return {"k": 2, "l": None, **changes}


def test_rows_that_arrived_under_a_policy_are_published_under_it(clinic: Clinic) -> None:
    assert clinic.night("patients", 30)["outcome"]["state"] == "held"
    with pytest.raises(JobError) as caught:
        clinic.night("visitors", 100, **weaker())
    assert str(caught.value) == (
        "k: is 2, and the policy 'patients' requires min_k: 50; set 50 or more; rows that wait "
        "since 2025-01-01 came under this policy. "
        "l: is not set, and the policy 'patients' requires min_l: 2; set 2 or more; rows that wait "
        "since 2025-01-01 came under this policy"
    )
    assert clinic.published() == []
    report = clinic.night("visitors", 100)
    assert report["rows"]["published"] == 130
    assert report["policies"] == ["patients"]


@pytest.mark.parametrize(
    "policies", one_in(2, [[None], [{"min_k": 2}]]), ids=["taken away", "less strict than then"]
)
def test_they_keep_the_policies_of_their_night(
    clinic: Clinic, policies: list[dict[str, Any] | None]
) -> None:
    clinic.night("patients", 30)
    clinic.decree(*policies)
    with pytest.raises(JobError, match="k: is 2, and the policy 'patients' requires min_k: 50"):
        clinic.night("visitors", 100, **weaker())
    assert clinic.published() == []


def test_whoever_runs_the_next_night_without_policies_does_not_lose_them(clinic: Clinic) -> None:
    """A command line whose environment names no policies has the same catalogue."""
    clinic.night("patients", 30)
    clinic.without_policies()
    with pytest.raises(JobError, match="k: is 2, and the policy 'patients' requires min_k: 50"):
        clinic.night("visitors", 100, **weaker())
    assert clinic.published() == []
    assert clinic.night("visitors", 100)["policies"] == ["patients"]


def test_a_policy_that_became_stricter_since_then_holds_too(clinic: Clinic) -> None:
    clinic.night("patients", 30)
    clinic.decree({"min_k": 60})
    with pytest.raises(JobError, match=r"min_k: 60; set 60 or more; rows that wait since 2025-01-"):
        clinic.night("visitors", 100)
    assert clinic.night("visitors", 100, k=60)["policies"] == ["patients"]


@pytest.mark.servers
def test_rows_that_wait_for_many_nights_keep_their_policies(clinic: Clinic) -> None:
    clinic.night("patients", 30)
    clinic.decree(None, {"min_l": 2})
    assert clinic.night("visitors", 10)["outcome"]["state"] == "held"
    clinic.decree(None, None)
    with pytest.raises(JobError) as caught:
        clinic.night("visitors", 100, **weaker())
    assert "the policy 'patients' requires min_k: 50" in str(caught.value)
    assert "the policy 'visitors' requires min_l: 2" in str(caught.value)
    assert clinic.night("visitors", 100)["policies"] == ["patients", "visitors"]


def test_a_width_is_kept_with_them(clinic: Clinic) -> None:
    """Ages are told to five years, so they are a sensitive column here."""
    clinic.decree({"min_k": 50, "min_l": 2, "l_width": {"age": "5"}})
    ages = {"quasi_identifiers": ["zip=prefix", "sex"], "sensitive": ["age"]}
    assert clinic.night("patients", 30, **ages, l_width={"age": "6"})["outcome"]["state"] == "held"
    clinic.decree(None, None)
    for width in ({}, {"age": "4"}):
        with pytest.raises(JobError, match=r"^l_width\.age: .* requires l_width of age: 5; set 5"):
            clinic.night("visitors", 100, **ages, l_width=width)
    assert clinic.night("visitors", 100, **ages, l_width={"age": "5"})["policies"] == ["patients"]


ROLES = {"came": "identifier"}


@pytest.mark.parametrize("tonight", [False, True], ids=["of their night", "of tonight's input"])
def test_a_column_that_only_they_have_keeps_to_every_policy(clinic: Clinic, tonight: bool) -> None:
    """Tonight's drop lacks the column, which neither job names."""
    publish = {"unlisted": "publish", "schema": "evolve", "k": 50}
    clinic.decree()
    options = clinic.options("patients", 30, **publish)
    if not tonight:  # the policy lets nobody deliver it otherwise
        clinic.decree({"roles": ROLES})
        options |= {"unlisted": "drop"}
    clinic_run(options)
    clinic.decree(None, {"roles": ROLES} if tonight else None)
    options = clinic.options("visitors", 100, **publish)
    drop = Path(options["input"])
    pq.write_table(pq.read_table(drop).drop_columns(["came"]), drop)
    if tonight:
        with pytest.raises(JobError, match="unlisted: publishes a column as it is, and the policy"):
            clinic_run(options)
        assert clinic.published() == []
    else:  # it was never kept with them
        clinic_run(options)
        assert "came" not in pq.read_table(options["output"]).column_names


def clinic_run(options: dict[str, Any]) -> dict[str, Any]:
    return pipeline.run(publish.check_job(stores.load_job(options)), silent)


# Whoever may write to the catalogue's database, but has not its key


def change(*statements: str) -> None:
    with sqlite3.connect(os.environ["MONDRIAN_OPS_CATALOGUE"]) as database:
        for statement in statements:
            database.execute(statement)


def test_kept_policies_cannot_be_weakened_in_the_database(clinic: Clinic) -> None:
    clinic.night("patients", 30)
    clinic.decree(None, None)
    change("UPDATE night SET policies = replace(policies, '50', '2')")
    with pytest.raises(StorageError) as caught:
        clinic.night("visitors", 100, **weaker())
    assert re.fullmatch(
        r"series: in .*/out/\* rows wait since 2025-01-01 whose policies do not carry the "
        r"catalogue's signature: .*; nothing is published; find out .* restore it .*",
        str(caught.value),
    )
    assert clinic.published() == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE night SET policies = NULL, signature = NULL",  # as a version that kept none
        "UPDATE night SET (policies, signature) = "
        "(SELECT policies, signature FROM night WHERE number = 2)",
        "UPDATE night SET input = replace(input, 'patients', 'visitors')",
        "UPDATE series SET name = replace(name, 'out', 'mine')",
    ],
)
def test_nor_taken_from_another_night_or_removed(clinic: Clinic, statement: str) -> None:
    clinic.night("patients", 30)
    clinic.decree(None, None)
    clinic.night("visitors", 10)
    change(statement)
    output = str(clinic.folder / ("mine" if "mine" in statement else "out") / "2025-01-03")
    with pytest.raises(StorageError, match="do not carry the catalogue's signature"):
        clinic.night("visitors", 100, output=output, **weaker())
    assert clinic.published() == []


def test_nor_put_back_as_they_were_in_an_earlier_try_of_the_night(clinic: Clinic) -> None:
    """Which the key has signed: the night was run before the policy was there."""
    clinic.decree(None, None)
    clinic.night("patients", 30)
    change("CREATE TABLE older AS SELECT policies, signature, label, input FROM night")
    change("DELETE FROM waiting", "DELETE FROM night", "DELETE FROM series")
    clinic.begin_again()
    clinic.decree(STRICT)
    clinic.night("patients", 30)
    change("UPDATE night SET (policies, signature, label, input) = (SELECT * FROM older)")
    clinic.decree(None, None)
    with pytest.raises(
        StorageError, match="another arrival than their file: somebody has put back"
    ):
        clinic.night("visitors", 100, **weaker())
    assert clinic.published() == []


@pytest.mark.servers
def test_signatures_stay_with_rows_that_wait_for_many_nights(clinic: Clinic) -> None:
    clinic.night("patients", 30)
    clinic.night("visitors", 10)
    (file,) = clinic.folder.rglob(".mondrian_waiting/*/*.parquet")
    with sqlite3.connect(os.environ["MONDRIAN_OPS_CATALOGUE"]) as database:
        signed = dict(database.execute("SELECT number, signature FROM night").fetchall())
    assert arrivals_in(str(file)) == signed
    assert clinic.night("visitors", 100)["rows"]["published"] == 140


@pytest.mark.parametrize(
    "statement",
    ["UPDATE night SET number = -1 WHERE number = 1", "DELETE FROM night WHERE number = 1"],
)
def test_nor_hidden_with_their_night(clinic: Clinic, statement: str) -> None:
    clinic.night("patients", 30)
    clinic.decree(None, None)
    clinic.night("visitors", 10)
    change(statement)
    with pytest.raises(StorageError, match=r"rows wait since night 1 .* the catalogue lacks"):
        clinic.night("visitors", 100, **weaker())
    assert clinic.published() == []


def test_nor_do_the_rows_become_those_of_a_night_without_policies(clinic: Clinic) -> None:
    clinic.night("patients", 30)
    clinic.decree(None, None)
    clinic.night("visitors", 10)
    change("UPDATE waiting SET rows = 40 WHERE origin = 2", "DELETE FROM waiting WHERE origin = 1")
    with pytest.raises(StorageError, match="not those that the catalogue knows of"):
        clinic.night("visitors", 100, **weaker())
    assert clinic.published() == []


def test_nor_those_of_another_series(clinic: Clinic) -> None:
    """My own series has a night without policies, of as many rows, whose file becomes theirs."""
    clinic.night("patients", 30)
    clinic.decree(None, None)
    output = str(clinic.folder / "mine" / "2025-01-01")
    assert clinic.night("visitors", 30, output=output)["outcome"]["state"] == "held"
    change("UPDATE waiting SET file = (SELECT max(file) FROM waiting WHERE file LIKE '%/out/%')")
    with pytest.raises(StorageError, match="not in the directory of this series' waiting rows"):
        clinic.night("visitors", 100, output=output.replace("-01-01", "-01-02"), **weaker())
    assert not list((clinic.folder / "mine").glob("2025-*"))


def test_what_another_series_keeps_of_its_nights_is_not_asked(clinic: Clinic) -> None:
    """A later series has a night of the same number, under no policy."""
    clinic.night("patients", 30)
    clinic.decree(None, None)
    clinic.night("visitors", 30, output=str(clinic.folder / "mine" / "2025-01-02"))
    with pytest.raises(JobError, match="the policy 'patients' requires min_k: 50"):
        clinic.night("visitors", 100, **weaker())
    assert clinic.published() == []
    assert clinic.night("visitors", 100)["policies"] == ["patients"]


def test_nor_weakened_where_older_rows_wait_whose_policies_are_genuine(clinic: Clinic) -> None:
    clinic.night("visitors", 10)
    clinic.night("patients", 30)
    clinic.decree(None, None)
    change("UPDATE night SET policies = replace(policies, '50', '2') WHERE number = 2")
    with pytest.raises(StorageError, match="since 2025-01-02 whose policies do not carry"):
        clinic.night("visitors", 100, **weaker())
    assert clinic.published() == []


def test_rows_without_a_policy_are_signed_too(clinic: Clinic) -> None:
    clinic.without_policies()
    clinic.night("patients", 30)
    report = clinic.night("visitors", 100, **weaker())
    assert "policies" not in report
    assert report["rows"]["published"] == 130


def test_rows_that_came_without_a_policy_are_refused_where_every_input_needs_one(
    clinic: Clinic,
) -> None:
    clinic.without_policies()
    clinic.night("patients", 30)
    clinic.decree(None, {"min_k": 2}, unmatched="refuse")
    with pytest.raises(JobError, match=r"series: no policy matches .*/patients/2025-01-01.parquet"):
        clinic.night("visitors", 100, **weaker())


# Approvals


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    """The Airflow that asks people."""
    return installed(monkeypatch)


APPROVAL = {"required": True, "approvers": ["7=grace", "1=ada"], "four_eyes": True}


def asked_of_visitors(clinic: Clinic) -> tuple[TaskRun, dict[str, Any]]:
    """A night without policies that asks for an approval: the run, and what its task waits with."""
    clinic.without_policies()
    run = TaskRun(clinic.options("visitors", 100))
    run.partition()
    run.anonymize()
    with pytest.raises(TaskAwaitingInput) as caught:
        run.wrap_up()
    return run, dict(caught.value.kwargs or {})


def test_their_approval_is_asked_for_of_their_approvers(clinic: Clinic, airflow: Airflow) -> None:
    clinic.decree({"approval": APPROVAL})
    TaskRun(clinic.options("patients", 30)).whole()
    assert airflow.asked == []
    run, parked = asked_of_visitors(clinic)
    (question,) = airflow.asked
    assert [user["id"] for user in question["assigned_users"]] == ["7"]  # ada triggered the run
    assert clinic.published() == []
    answer = airflow.answered("Approve", "7", "grace")
    run.task("wrap_up").decided(run.context, **parked, event=answer)
    report = publish.report_of(run.job["output"])
    assert report is not None
    assert report["outcome"]["decided_by"] == "grace"
    assert report["policies"] == ["patients"]


def test_an_approval_of_somebody_else_does_not_count(clinic: Clinic, airflow: Airflow) -> None:
    clinic.decree({"approval": APPROVAL})
    TaskRun(clinic.options("patients", 30)).whole()
    run, parked = asked_of_visitors(clinic)
    answer = airflow.answered("Approve", "1", "ada")
    with pytest.raises(AirflowSkipException, match="wants four eyes"):
        run.task("wrap_up").decided(run.context, **parked, event=answer)
    assert clinic.published() == []


@pytest.mark.parametrize("approve", [None, lambda report: "ada"], ids=["nobody", "somebody"])
@pytest.mark.parametrize(
    ("approval", "message"),
    [({"required": True}, "require_approval: nobody"), (APPROVAL, "cannot tell users apart")],
)
def test_outside_airflow_nobody_approves_them_for_others(
    clinic: Clinic, approve: Any, approval: dict[str, Any], message: str
) -> None:
    clinic.decree({"approval": approval})
    TaskRun(clinic.options("patients", 30)).whole()
    clinic.without_policies()
    job = clinic.job("visitors", 100)
    if approve is not None and "approvers" not in approval:
        assert pipeline.run(job, silent, approve=approve)["outcome"]["decided_by"] == "ada"
        return
    with pytest.raises(ApprovalError, match=message):
        pipeline.run(job, silent, approve=approve)
    assert clinic.published() == []
    assert not [path for path in (clinic.folder / "out").iterdir() if "mondrian_ops" in path.name]


# Later tasks, and what is done again


def test_their_policies_hold_in_every_task_that_follows(clinic: Clinic) -> None:
    """They are read anew: one that became stricter meanwhile refuses the night."""
    TaskRun(clinic.options("patients", 30)).whole()
    run = TaskRun(clinic.options("visitors", 100))
    run.partition()
    clinic.decree({"min_k": 60})
    with pytest.raises(AirflowFailException, match=r"min_k: 60.* rows that wait since 2025-01-01"):
        run.anonymize()
    clinic.decree(STRICT)
    run.anonymize()
    clinic.decree({"min_k": 60})
    with pytest.raises(AirflowFailException, match=r"min_k: 60.* rows that wait since 2025-01-01"):
        run.wrap_up()
    assert clinic.published() == []
    clinic.decree(STRICT)
    run.wrap_up()


@pytest.mark.servers
def test_a_night_that_is_run_again_is_held_to_them_as_before(clinic: Clinic) -> None:
    clinic.night("patients", 30)
    options = clinic.options("visitors", 100, **weaker())
    for _ in range(2):
        with pytest.raises(JobError, match="k: is 2"):
            clinic_run(options)
    report = clinic_run({**options, "k": 50, "l": 2})
    assert report["rows"]["published"] == 130


@pytest.mark.servers
def test_a_run_of_an_earlier_version_begins_anew(clinic: Clinic) -> None:
    """Its working files do not say under which policies its rows came."""
    run = TaskRun(clinic.options("patients", 100))
    run.partition()
    run.anonymize()
    dataset = Path(run.fragments[0]["work"]) / "dataset.json"
    described = json.loads(dataset.read_text())
    del described["night"]["policies"]
    dataset.write_text(json.dumps(described))
    with pytest.raises(AirflowFailException, match="run again from the partition task"):
        run.wrap_up()
    assert clinic.published() == []


def test_what_undoes_the_work_is_refused_by_whoever_divides_the_rows(clinic: Clinic) -> None:
    """With Spark that is a driver, which has the working files and no policies."""
    clinic.decree({"dependencies": "refuse", "approval": {"required": True}})
    TaskRun(clinic.options("patients", 30)).whole()
    clinic.without_policies()
    run = TaskRun(clinic.options("visitors", 100))
    run.partition()
    work = Path(run.fragments[0]["work"])
    for described in ("dataset.json", "job.json"):
        job = json.loads((work / described).read_text())["job"]
        assert (job["dependencies"], job["require_approval"]) == ("refuse", True)


@pytest.mark.servers
def test_without_a_catalogue_no_row_waits(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nowhere to keep their policies, so such a night is refused before it reads them."""
    monkeypatch.delenv("MONDRIAN_OPS_CATALOGUE")
    with pytest.raises(StorageError, match="catalogue: nothing says where it is"):
        clinic.night("patients", 30)
    assert not list(clinic.folder.rglob(".mondrian_waiting"))


def test_another_catalogue_does_not_find_them(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its key names another directory, and no job may name the one that they lie in."""
    clinic.night("patients", 30)
    monkeypatch.setenv("MONDRIAN_OPS_CATALOGUE", str(tmp_path / "mine" / "catalogue.db"))
    monkeypatch.setenv("MONDRIAN_OPS_CATALOGUE_KEY", str(tmp_path / "mine" / "key"))
    report = clinic.night("visitors", 100, **weaker())
    assert report["rows"]["input"] == report["rows"]["published"] == 100
    (file,) = clinic.folder.rglob(".mondrian_waiting/*/*.parquet")
    with pytest.raises(JobError, match="has rows that wait for a night of their series"):
        clinic_run({**clinic.options("visitors", 100), "input": str(file)})
