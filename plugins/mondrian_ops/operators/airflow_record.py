"""What Airflow itself has recorded of a question and of its run; asked of the API server.

A task reaches Airflow's database by the execution API only, which tells neither who answered a
question nor who has cleared a task. So the plugin in the API server reads both
(:mod:`mondrian_ops.web.record`), for whoever has the password of the question: whoever has the
catalogue's key.
"""

from __future__ import annotations

import ssl
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.sdk import conf

from mondrian_ops.errors import ApprovalError
from mondrian_ops.hooks import settings
from mondrian_ops.links import RECORD, RECORD_HEADER

if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENCE_S = 90.0
"""How long to try to reach an API server that is away, such as one that is restarted."""

_PAUSE_S = 2.0
_TIMEOUT_S = 20.0


class Answer(NamedTuple):
    """A person's answer: what was chosen, the user's id and name, and when, in ISO 8601, UTC."""

    chosen: tuple[str, ...]
    user: str
    name: str
    at: str


class Change(NamedTuple):
    """Somebody cleared or changed the run, or a task of it; ``event`` is Airflow's name of it."""

    by: str
    at: datetime
    event: str


class AirflowRecord(NamedTuple):
    """The answer to a question, if there is one, and who changed its run."""

    answer: Answer | None
    changes: tuple[Change, ...]

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> AirflowRecord:
        """From what the API server tells."""
        answer = told["answer"]
        return cls(
            answer
            and Answer(tuple(answer["chosen"]), answer["user"], answer["name"], answer["at"]),
            tuple(
                Change(each["by"], datetime.fromisoformat(each["at"]), each["event"])
                for each in told["changes"]
            ),
        )

    def changed_by(self, until: datetime | None = None) -> frozenset[str]:
        """Who changed the run, until the second of a moment, by name without case."""
        return frozenset(
            change.by.casefold()
            for change in self.changes
            if until is None or change.at.astimezone(UTC).replace(microsecond=0) <= until
        )


def airflow_record(entry_id: str, password: str) -> AirflowRecord:
    """What Airflow has recorded of the question about a release with this id.

    Raises ApprovalError where the API server does not know the question; OSError where it cannot
    be reached.
    """
    import httpx

    url, until = f"{_api_server()}{RECORD}/{entry_id}", time.monotonic() + PATIENCE_S
    while True:
        try:
            answer = httpx.get(
                url, headers={RECORD_HEADER: password}, timeout=_TIMEOUT_S, verify=_certificates()
            )
            problem = f"answered {answer.status_code}"
            if answer.status_code < 500:
                break
        except httpx.TransportError as error:
            problem = f"{type(error).__name__}: {error}"
        if time.monotonic() >= until:
            raise OSError(
                f"approval: Airflow's API server, which knows who answered and who has changed the "
                f"run, cannot be asked at {url} ({problem}); repair it, or set [mondrian_ops] "
                "api_url to where tasks reach it"
            )
        time.sleep(_PAUSE_S)
    # Airflow answers addresses that it does not know with the page of its UI.
    is_told = answer.headers.get("Content-Type", "").startswith("application/json")
    if answer.status_code != httpx.codes.OK or not is_told:
        raise ApprovalError(
            f"approval: Airflow's API server at {url} {problem} when it was asked who answered; "
            "see that it has the plugin mondrian_ops and the same catalogue as the tasks, or set "
            "[mondrian_ops] api_url to where tasks reach it"
        )
    return AirflowRecord.of(answer.json())


def _api_server() -> str:
    """Where tasks reach the API server: by default beside the execution API."""
    given = settings.api_url() or conf.get("core", "execution_api_server_url", fallback=None)
    if not given:
        base = conf.get("api", "base_url", fallback="") or ""
        given = base if "://" in base else f"http://localhost:8080{base}"
    return str(given).rstrip("/").removesuffix("/execution").rstrip("/")


def _certificates() -> ssl.SSLContext | bool:
    """What the API server's certificate is checked with, as Airflow's own client does."""
    own = conf.get("api", "ssl_cert", fallback=None)
    if not own:
        return True
    context = ssl.create_default_context()
    context.load_verify_locations(own)
    return context
