"""Who has taken which drop, by Airflow's own records.

A claim is in the state store of an Asset, in Airflow's database. It holds a drop only as long as
the run and the task instance that it names are at work by the same database, so a run that was
killed, deleted or marked failed holds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mondrian_ops.nightly.night import Claim
from mondrian_ops.operators.approval import DECISION

if TYPE_CHECKING:
    from airflow.sdk import Asset

_PUBLISHING = "wrap_up"
_ACTIVE = ["queued", "running"]
_OVER = {"success", "failed", "skipped", "upstream_failed", "removed"}


class AirflowClaims:
    """The claims of the DAG that a task belongs to, as it sees them.

    :param asset: one of the task's inlets, in whose state store they are.
    """

    def __init__(self, context: Mapping[str, Any], asset: Asset) -> None:
        run = context["dag_run"]
        self.run_id = str(run.run_id)
        self._dag_id = run.dag_id
        self._ti: Any = context["ti"]
        self._store: Any = context["asset_state_store"][asset]
        self._states = lru_cache(None)(self._states_now)

    def of(self, dataset: str) -> dict[str, Claim]:
        """The claims of a dataset, by day."""
        kept = self._store.get(dataset) or {}
        return {day: Claim(*claim) for day, claim in kept.items()}

    def keep(self, dataset: str, claims: Mapping[str, Claim]) -> None:
        """Replace the claims of a dataset."""
        self._store.set(dataset, {day: list(claim) for day, claim in claims.items()})

    def is_at_work(self, claim: Claim) -> bool:
        """Whether another run is still at work on the drop, or waits for an approval."""
        if claim.run == self.run_id:
            return False
        states = self._states(claim.run)
        if states is None:
            return False
        # Until it is expanded, the mapped task has one instance for all drops.
        state = states.get(f"{_PUBLISHING}_{claim.number}", states.get(_PUBLISHING))
        return state not in _OVER

    def is_rejected(self, claim: Claim) -> bool:
        """Whether somebody rejected the release of the drop."""
        if claim.run == self.run_id:  # it was cleared, so that it asks again
            return False
        decision = self._ti.xcom_pull(
            task_ids=_PUBLISHING, key=DECISION, run_id=claim.run, map_indexes=claim.number
        )
        return bool(decision == "rejected")

    def _states_now(self, run_id: str) -> Mapping[str, str | None] | None:
        """The states of the tasks that publish; None if the run is over or deleted."""
        if not self._ti.get_dr_count(dag_id=self._dag_id, run_ids=[run_id], states=_ACTIVE):
            return None
        states: Mapping[str, Mapping[str, str | None]] = self._ti.get_task_states(
            dag_id=self._dag_id, task_ids=[_PUBLISHING], run_ids=[run_id]
        )
        return states.get(run_id, {})
