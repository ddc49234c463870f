"""A driver on the cluster, for a deferred task: its trigger, which runs in Airflow's triggerer.

The triggerer imports this module into its event loop, so it imports nothing heavy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

if TYPE_CHECKING:
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

LONGEST = timedelta(days=1)
"""How long a deferred task waits that has no ``execution_timeout``."""

LATER = timedelta(minutes=10)
"""How much later Airflow itself gives up, where no triggerer runs."""

TIMED_OUT, UNREACHABLE = "TIMED OUT", "UNREACHABLE"

_POLL_S = 10.0
_MISSES = 10


class DriverTrigger(BaseTrigger):
    """Wait until a driver is over, for at most until a moment; kill it if a person ends its task.

    Its arguments are names and a moment, which Airflow stores: it looks up the connection where it
    runs, and a triggerer that is restarted goes on with the same deadline.

    :param conn_id: the connection to Spark.
    :param driver_id: the id of the driver, as Airflow's Spark provider names it.
    :param until: the moment to give up at, in seconds since the epoch.
    :param poll_s: seconds between two looks at the driver.
    """

    def __init__(self, conn_id: str, driver_id: str, until: float, poll_s: float = _POLL_S) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.conn_id = conn_id
        self.driver_id = driver_id
        self.until = until
        self.poll_s = poll_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What makes this trigger anew in another process."""
        names = ("conn_id", "driver_id", "until", "poll_s")
        return f"{__name__}.DriverTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: the driver's id and its last status."""
        status = await self._last_status()
        event = {"driver_id": self.driver_id, "status": status}
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """Kill the driver: its task was cleared, or marked as failed or as a success."""
        await asyncio.to_thread(kill_driver, self.conn_id, self.driver_id)

    async def _last_status(self) -> str:
        misses = 0
        while time.time() < self.until:
            try:
                status, is_over = await asyncio.to_thread(self._look)
            except Exception as error:  # the cluster may be restarting
                misses += 1
                self.log.warning("%s: its status is unknown: %s", self.driver_id, error)
                if misses == _MISSES:
                    return UNREACHABLE
            else:
                misses = 0
                if is_over:
                    return status
            await asyncio.sleep(self.poll_s)
        return TIMED_OUT

    def _look(self) -> tuple[str, bool]:
        operator = _operator(self.conn_id, self.driver_id)
        status = operator.get_job_status(self.driver_id, {})
        return status, not operator.is_job_active(status)


def kill_driver(conn_id: str, driver_id: str) -> None:
    """Kill a driver, through the connection that it was submitted through."""
    _operator(conn_id, driver_id).on_kill()


def _operator(conn_id: str, driver_id: str) -> SparkSubmitOperator:
    """The provider's operator in the state in which it has submitted the driver."""
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

    namespace, _, pod = driver_id.rpartition(":")  # of Kubernetes only
    hook = SparkSubmitHook(
        conn_id=conn_id,
        conf={"spark.kubernetes.namespace": namespace} if namespace else {},
        track_driver_via_k8s_api=bool(namespace),
    )
    hook._driver_id = hook._yarn_application_id = driver_id
    hook._kubernetes_driver_pod = pod
    operator = SparkSubmitOperator(task_id="driver", conn_id=conn_id)
    operator._hook = hook
    return operator
