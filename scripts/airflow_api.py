"""A client of Airflow's REST API: starts runs, follows them, reads the logs of their tasks.

Needs the standard library only.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

FINISHED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
START_S = 240
_OVER = frozenset({"success", "failed"})
_AGAIN_S = (0.5, 2, 5)
_PHASES = ("partition", "anonymize_fragment", "wrap_up", "clean_up")


class AirflowError(Exception):
    """Airflow did not start, answer or finish; the message names the logs."""


class AirflowApi:
    """An Airflow that answers at ``url``.

    :param logs: where a person finds the logs.
    """

    def __init__(self, url: str, logs: str = "Airflow's logs") -> None:
        self.url = url
        self._logs = logs
        self._token = ""
        # The server is local, so a proxy of the environment must not be used.
        self._http = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def log_in(self, username: str, password: str) -> None:
        """Use the API as this user from now on."""
        answer = self.request("POST", "/auth/token", {"username": username, "password": password})
        self._token = answer["access_token"]

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Call the REST API; returns the decoded answer, None if it is empty.

        A server error is retried: under load the server may find its database locked. Raises
        urllib.error.HTTPError for any other error.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(  # noqa: S310 - our own server, over http
            f"{self.url}{path}", data=data, method=method, headers=headers
        )
        for pause in _AGAIN_S:
            try:
                return self._answer(request)
            except urllib.error.HTTPError as error:
                if error.code < HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise
                time.sleep(pause)
        return self._answer(request)

    def _answer(self, request: urllib.request.Request) -> Any:
        with self._http.open(request, timeout=START_S) as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def unpause(self, dag_id: str) -> None:
        """Wait until the DAG is known and let its runs be scheduled."""
        self._wait_for_dag(dag_id)
        self.request("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})

    def pause(self, dag_id: str) -> None:
        """Wait until the DAG is known and keep its runs queued."""
        self._wait_for_dag(dag_id)
        self.request("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": True})

    def trigger(
        self,
        dag_id: str,
        conf: Mapping[str, Any] | None = None,
        logical_date: str | None = None,
    ) -> str:
        """Unpause a DAG and start a run of it; returns the run's id."""
        self.unpause(dag_id)
        return self.queue(dag_id, conf, logical_date)

    def queue(
        self,
        dag_id: str,
        conf: Mapping[str, Any] | None = None,
        logical_date: str | None = None,
    ) -> str:
        """Create a run of a DAG, which starts unless the DAG is paused; returns its id."""
        # A retried request has the same id, so that the run does not start twice.
        run_id = f"manual__{uuid.uuid4()}"
        body = {"dag_run_id": run_id, "logical_date": logical_date, "conf": conf or {}}
        try:
            self.request("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.CONFLICT:
                raise
        return run_id

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """The run as the API describes it."""
        run: dict[str, Any] = self.request("GET", _run_path(dag_id, run_id))
        return run

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """The task instances of a run."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances?limit=1000"
        instances: list[dict[str, Any]] = self.request("GET", path)["task_instances"]
        return instances

    def watch(
        self, dag_id: str, run_id: str, timeout: float = 600, every: float = 1
    ) -> Iterator[list[dict[str, Any]]]:
        """The task instances of a run, again and again until the run is over."""
        for state in self._states(dag_id, run_id, timeout, every):
            yield self.tasks(dag_id, run_id)
            if state in _OVER:
                return

    def finish(self, dag_id: str, run_id: str, timeout: float = 600) -> str:
        """Wait until a run is over; returns its state.

        Where it failed, the log of the first task that failed is printed: a test shows it.
        """
        states = self._states(dag_id, run_id, timeout, every=1)
        state = next(state for state in states if state in _OVER)
        if state == "failed":
            with suppress(urllib.error.HTTPError):
                print(self._first_failure(dag_id, run_id, self.tasks(dag_id, run_id)), flush=True)
        return state

    def _states(self, dag_id: str, run_id: str, timeout: float, every: float) -> Iterator[str]:
        """The state of a run, again and again; raises AirflowError after ``timeout`` seconds."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self.check_alive()
            yield str(self.run(dag_id, run_id)["state"])
            time.sleep(every)
        raise AirflowError(f"{dag_id}: not over after {timeout:.0f} s; see {self._logs}")

    def show(self, dag_id: str, run_id: str, timeout: float = 600) -> float:
        """Print how far a run is, until it has succeeded; returns how many seconds that took.

        Raises AirflowError if it fails, with the log of the task that failed.
        """
        started = time.monotonic()
        tasks: list[dict[str, Any]] = []
        shown = ""
        for tasks in self.watch(dag_id, run_id, timeout):
            states = progress(tasks)
            if states != shown:
                print(f"  {time.monotonic() - started:5.1f} s  {states}", flush=True)
                shown = states
        state = self.run(dag_id, run_id)["state"]
        if state != "success":
            raise AirflowError(f"the run {state}\n{self._first_failure(dag_id, run_id, tasks)}")
        return time.monotonic() - started

    def log_of(self, dag_id: str, run_id: str, task: Mapping[str, Any]) -> str:
        """The log of a task instance's last try."""
        path = (
            f"{_run_path(dag_id, run_id)}/taskInstances/{task['task_id']}/logs/"
            f"{max(1, task['try_number'])}?map_index={task['map_index']}"
        )
        lines = self.request("GET", path)["content"]
        return "\n".join(_log_line(line) for line in lines)

    def check_alive(self) -> None:
        """Raise AirflowError if this Airflow has ended; only subclasses can know."""

    def comes_true(self, condition: Callable[[], bool]) -> bool:
        """Whether a condition becomes true within :data:`START_S` seconds."""
        end = time.monotonic() + START_S
        while not condition():
            self.check_alive()
            if time.monotonic() > end:
                return False
            time.sleep(0.5)
        return True

    def _wait_for_dag(self, dag_id: str) -> None:
        if not self.comes_true(lambda: self._knows(dag_id)):
            errors = self._import_errors()
            raise AirflowError(f"{dag_id}: no such DAG after {START_S} s{errors}")

    def _knows(self, dag_id: str) -> bool:
        try:
            self.request("GET", f"/api/v2/dags/{dag_id}")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return False
        return True

    def _import_errors(self) -> str:
        errors = self.request("GET", "/api/v2/importErrors")["import_errors"]
        return "".join(f"\n{error['filename']}: {error['stack_trace']}" for error in errors)

    def _first_failure(self, dag_id: str, run_id: str, tasks: Sequence[Mapping[str, Any]]) -> str:
        """The end of the log of the first task that failed by itself."""
        for task in tasks:
            if task["state"] == "failed":
                return f"{task['task_id']}:\n{self.log_of(dag_id, run_id, task)[-3000:]}"
        return f"see {self._logs}"


def progress(tasks: Sequence[Mapping[str, Any]]) -> str:
    """The progress of each phase: ``partition done   anonymize_fragment 3 of 8``."""
    phases = []
    for phase in _PHASES:
        states = Counter(task["state"] for task in tasks if task["task_id"] == phase)
        done = sum(count for state, count in states.items() if state in FINISHED)
        total = states.total()
        if states["failed"] or states["upstream_failed"]:
            phases.append(f"{phase} failed")
        elif total and done == total:
            phases.append(f"{phase} done" if total == 1 else f"{phase} {done} of {total} done")
        elif done or states["running"]:
            phases.append(f"{phase} running" if total == 1 else f"{phase} {done} of {total}")
    return "   ".join(phases) or "queued"


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"


def _log_line(line: Any) -> str:
    if not isinstance(line, Mapping):
        return str(line)
    details = "".join(
        f"\n{error.get('exc_type')}: {error.get('exc_value')}"
        for error in line.get("error_detail") or ()
    )
    return f"{line.get('event', '')}{details}"
