"""What was asked about releases that wait for an approval, and what was decided: signed.

A release that waits has one row, under its id. The catalogue's key signs the row as a whole: the
run and its task, the attempt, the digest of the files, the question, and the answer. Who may change
Airflow's tasks, their state or their XComs, but has not the key, can forge none of them.

A question is asked, then decided, and its decision is used once; or it is closed, when its run ends
without a publication.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from mondrian_ops.catalogue.secret_key import signature
from mondrian_ops.catalogue.tables import approval
from mondrian_ops.errors import ApprovalError

ASKED, DECIDED, USED, CLOSED = "asked", "decided", "used", "closed"
"""The states of a question. ``used``: its decision was carried out."""


class Instance(NamedTuple):
    """The task instance that asks, by the names that Airflow gives it."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int


class Asked(NamedTuple):
    """A question about a release, in values that JSON can hold.

    ``release``: what waits: its job, working files, attempt and the digest of its files, as
    :class:`mondrian_ops.operators.approval.Parked` has them. ``question``: the digest of the text.
    ``decision``: what was decided, as :class:`mondrian_ops.operators.approval.Decision` has it.
    """

    instance: Instance
    release: Mapping[str, Any]
    question: str
    state: str = ASKED
    decision: tuple[str, ...] | None = None

    def to_json(self) -> str:
        """The text that is signed."""
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> Asked:
        """The inverse of :meth:`to_json`."""
        given = json.loads(text)
        decision = given["decision"]
        return cls(
            Instance(*given["instance"]),
            given["release"],
            given["question"],
            given["state"],
            None if decision is None else tuple(decision),
        )

    def password(self, key: bytes) -> str:
        """What opens Airflow's record of this question; only who has the key can compute it."""
        return signature(key, "password", *self.instance, self.release["token"])


def keep(connection: sa.Connection, key: bytes, entry_id: str, asked: Asked, time: str) -> None:
    """Keep a question, signed, in place of an earlier one about the release with this id."""
    content = asked.to_json()
    connection.execute(approval.delete().where(approval.c.release == entry_id))
    values = {
        "release": entry_id,
        "time": time,
        "content": content,
        "signature": _signature(key, entry_id, content),
        "verifier": _verifier(asked.password(key)),
    }
    connection.execute(approval.insert().values(values))


def find(connection: sa.Connection, key: bytes, entry_id: str) -> Asked | None:
    """The last question about a release; None where there was none.

    Raises ApprovalError where it does not carry the signature of this key.
    """
    found = sa.select(approval.c.content, approval.c.signature)
    row = connection.execute(found.where(approval.c.release == entry_id)).one_or_none()
    if row is None:
        return None
    if not hmac.compare_digest(row.signature, _signature(key, entry_id, row.content)):
        raise ApprovalError(
            "approval: what the catalogue has about the question does not carry the catalogue's "
            "signature, so somebody has changed it; nothing is published; find out who may write "
            "to the catalogue, and trigger a new run"
        )
    return Asked.from_json(row.content)


def opened(connection: sa.Connection, entry_id: str, password: str) -> Instance | None:
    """The task instance that asks about a release, for whoever has the :meth:`Asked.password`.

    None for a wrong password, and where there is no question. Needs no key.
    """
    found = sa.select(approval.c.content, approval.c.verifier)
    row = connection.execute(found.where(approval.c.release == entry_id)).one_or_none()
    known = row.verifier if row is not None else _verifier("")
    is_right = hmac.compare_digest(known, _verifier(password))
    return Asked.from_json(row.content).instance if row is not None and is_right else None


def _signature(key: bytes, entry_id: str, content: str) -> str:
    return signature(key, "signature", entry_id, content)


def _verifier(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()
