"""Claims hold a drop only as long as Airflow's records say that their run is at work on it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset

from mondrian_ops.nightly.claims import AirflowClaims
from mondrian_ops.nightly.night import Claim

DROP = Asset("mondrian_drop")


class Records:
    """What Airflow's database says of runs, their tasks and their XComs."""

    def __init__(self) -> None:
        self.runs: dict[str, str] = {}
        self.states: dict[str, dict[str, str | None]] = {}
        self.xcoms: dict[tuple[str, int], str] = {}
        self.kept: dict[str, str] = {}

    def get_dr_count(self, *, dag_id: str, run_ids: list[str], states: list[str]) -> int:
        assert dag_id == "nightly"
        return sum(self.runs.get(run) in states for run in run_ids)

    def get_task_states(self, *, dag_id: str, task_ids: list[str], run_ids: list[str]) -> Any:
        assert (dag_id, task_ids) == ("nightly", ["wrap_up"])
        return {run: self.states[run] for run in run_ids if run in self.states}

    def xcom_pull(self, *, task_ids: str, key: str, run_id: str, map_indexes: int) -> str | None:
        assert (task_ids, key) == ("wrap_up", "decision")
        return self.xcoms.get((run_id, map_indexes))

    def get(self, key: str) -> Any:
        return json.loads(self.kept.get(key, "null"))

    def set(self, key: str, value: Any) -> None:
        self.kept[key] = json.dumps(value)


@pytest.fixture
def records() -> Records:
    return Records()


def claims_of(records: Records, run_id: str = "this run") -> AirflowClaims:
    run = SimpleNamespace(dag_id="nightly", run_id=run_id)
    context: Any = {"dag_run": run, "ti": records, "asset_state_store": {DROP: records}}
    return AirflowClaims(context, DROP)


def test_claims_are_kept_by_data_set_and_day(records: Records) -> None:
    claims = {"2025-06-01": Claim("a run", 3, "abc", ""), "2025-06-02": Claim("b", 0, None, "t")}
    claims_of(records).keep("people", claims)
    assert claims_of(records).of("people") == claims
    assert claims_of(records).of("stays") == {}


@pytest.mark.parametrize(
    ("run", "state", "at_work"),
    [
        ("running", "awaiting_input", True),
        ("running", "running", True),
        ("running", "up_for_retry", True),
        ("running", None, True),
        ("queued", None, True),
        ("running", "success", False),
        ("running", "failed", False),
        ("running", "upstream_failed", False),
        ("running", "skipped", False),
        ("failed", "awaiting_input", False),  # marked failed by hand, or killed
        ("success", None, False),
    ],
)
def test_a_run_is_at_work_on_a_drop_until_that_is_published_or_the_run_is_over(
    records: Records, run: str, state: str | None, at_work: bool
) -> None:
    records.runs["other"] = run
    records.states["other"] = {"wrap_up_0": "success", "wrap_up_1": state}
    assert claims_of(records).is_at_work(Claim("other", 1, "abc", "")) is at_work


def test_before_its_tasks_are_mapped_a_run_is_at_work_on_all_its_drops(records: Records) -> None:
    records.runs = {"other": "running", "failing": "running", "starting": "running"}
    records.states = {"other": {"wrap_up": None}, "failing": {"wrap_up": "upstream_failed"}}
    claims = claims_of(records)
    assert claims.is_at_work(Claim("other", 5, "abc", ""))
    assert claims.is_at_work(Claim("starting", 0, "abc", ""))
    assert not claims.is_at_work(Claim("failing", 5, "abc", ""))


def test_a_run_that_was_deleted_and_this_run_hold_nothing(records: Records) -> None:
    records.runs["this run"] = "running"
    claims = claims_of(records)
    assert not claims.is_at_work(Claim("this run", 0, "abc", ""))
    assert not claims.is_at_work(Claim("deleted", 0, "abc", ""))
    assert not claims.is_rejected(Claim("deleted", 0, "abc", ""))


def test_only_a_steward_rejects_a_drop_for_good(records: Records) -> None:
    records.xcoms = {("other", 0): "rejected", ("other", 1): "expired", ("this run", 0): "rejected"}
    claims = claims_of(records)
    assert claims.is_rejected(Claim("other", 0, "abc", ""))
    assert not claims.is_rejected(Claim("other", 1, "abc", ""))
    assert not claims.is_rejected(Claim("other", 2, "abc", ""))
    assert not claims.is_rejected(Claim("this run", 0, "abc", ""))  # it was cleared
