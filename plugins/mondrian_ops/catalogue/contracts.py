"""The contracts of datasets, and the changes that wait for a person, were accepted, or were used.

A publication notes the contract that it was made by, so a dataset's contract is that of its last
publication, or intention to publish (:mod:`mondrian_ops.catalogue.publication`). A change that
refuses a drop gets an id. Somebody who accepts the id accepts this very change, for one
publication: an intention that is withdrawn gives the acceptance back.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import sqlalchemy as sa

from mondrian_ops.catalogue import publication as publications
from mondrian_ops.catalogue.publication import Intention
from mondrian_ops.catalogue.tables import contract, contract_change, publication
from mondrian_ops.data.contract import Change, Column, Contract
from mondrian_ops.errors import StorageError

SCOPE = "contract:"
"""What the scopes of intentions begin with; the dataset follows."""


class Noted(NamedTuple):
    """The contract of a publication: of the release ``output``, in the night ``label``."""

    output: str
    label: str
    columns: Contract


class Refused(NamedTuple):
    """A change that refused the drop whose release would be ``output``, at a ``time``.

    ``by`` and ``at``: who accepted it, and when; empty if nobody did.
    """

    id: str
    changes: Sequence[Change]
    output: str
    time: str
    by: str = ""
    at: str = ""


def last(connection: sa.Connection, dataset: str, work: str = "") -> Noted | None:
    """The contract of the last publication of a dataset.

    An intention counts, too, for its release may be out; but not one of the run ``work`` itself.
    """
    found = _contracts(dataset, work).order_by(contract.c.publication.desc())
    return _read(connection, found)


def before(connection: sa.Connection, dataset: str, label: str, work: str = "") -> Noted | None:
    """The contract of the night ``label``, or of the last night before it."""
    until = _contracts(dataset, work).where(contract.c.label <= label)
    return _read(connection, until.order_by(contract.c.label.desc(), contract.c.publication.desc()))


def of_output(connection: sa.Connection, dataset: str, output: str) -> Noted | None:
    """The contract of the release at an output."""
    there = _contracts(dataset).where(publication.c.output == output)
    return _read(connection, there.order_by(contract.c.publication.desc()))


def _contracts(dataset: str, work: str = "") -> sa.Select[Any]:
    columns = publication.c.output, contract.c.label, contract.c.columns
    counts = sa.or_(publication.c.published, publication.c.work != work)
    found = sa.select(*columns).join_from(contract, publication)
    return found.where(contract.c.dataset == dataset, counts)


def _read(connection: sa.Connection, found: sa.Select[Any]) -> Noted | None:
    row = connection.execute(found.limit(1)).first()
    if row is None:
        return None
    columns = {name: Column(**each) for name, each in json.loads(row.columns).items()}
    return Noted(row.output, row.label, columns)


def note(
    connection: sa.Connection,
    intention: Intention,
    dataset: str,
    label: str,
    columns: Contract,
    accepted: str | None = None,
) -> None:
    """Note the contract of an intention, which uses the change ``accepted``, if it needs one.

    When the intention is withdrawn, the contract goes, and the change may be used again. What
    refused other drops of the same release is over: whether it was accepted or not, another drop
    with such a change is to be shown to a person again.
    """
    if accepted is not None:
        mine = contract_change.update().where(contract_change.c.id == accepted)
        connection.execute(mine.values(publication=intention.id))
    named = json.dumps({name: asdict(column) for name, column in columns.items()})
    values = {"publication": intention.id, "dataset": dataset, "label": label, "columns": named}
    connection.execute(contract.insert().values(**values))
    over = contract_change.c.dataset == dataset, contract_change.c.output == intention.output
    unused = contract_change.c.publication.is_(None)
    connection.execute(contract_change.delete().where(*over, unused))


def refuse(
    connection: sa.Connection, dataset: str, changes: Sequence[Change], output: str, time: str
) -> str:
    """Note that these changes refuse a drop; returns the id by which a person accepts them."""
    known = connection.execute(_unused(dataset, changes)).first()
    if known is not None:
        mine = contract_change.update().where(contract_change.c.id == known.id)
        connection.execute(mine.values(output=output, time=time))
        return str(known.id)
    change_id = secrets.token_hex(4)
    named = json.dumps([each.to_json() for each in changes])
    added = {"id": change_id, "dataset": dataset, "digest": Change.digest_of(changes)}
    connection.execute(
        contract_change.insert().values(**added, changes=named, output=output, time=time)
    )
    return change_id


def accepted(connection: sa.Connection, dataset: str, changes: Sequence[Change]) -> Refused | None:
    """The acceptance of exactly these changes that no publication has used; None without one."""
    by_somebody = contract_change.c.accepted_by.is_not(None)
    row = connection.execute(_unused(dataset, changes).where(by_somebody)).first()
    return None if row is None else _refused(row)


def _unused(dataset: str, changes: Sequence[Change]) -> sa.Select[Any]:
    alike = contract_change.c.dataset == dataset, contract_change.c.publication.is_(None)
    digest = contract_change.c.digest == Change.digest_of(changes)
    return sa.select(contract_change).where(*alike, digest)


def take_back(connection: sa.Connection, dataset: str, token: str) -> None:
    """Withdraw what an earlier try of this attempt intended, and did not publish."""
    for intention in publications.pending(connection, SCOPE + dataset):
        if intention.token == token:
            publications.withdraw(connection, intention)


def open_changes(connection: sa.Connection, dataset: str) -> list[Refused]:
    """The changes of a dataset that no publication has used, the oldest first."""
    unused = contract_change.c.dataset == dataset, contract_change.c.publication.is_(None)
    found = sa.select(contract_change).where(*unused).order_by(contract_change.c.time)
    return [_refused(row) for row in connection.execute(found)]


def accept(
    connection: sa.Connection, dataset: str | None, change_id: str, by: str, at: str
) -> Refused:
    """Accept a change of a dataset, or of any; once is enough.

    Raises StorageError where there is none of this id: it was never refused, or is over.
    """
    found = sa.select(contract_change).where(contract_change.c.id == change_id)
    if dataset is not None:
        found = found.where(contract_change.c.dataset == dataset)
    row = connection.execute(found).first()
    if row is None:
        raise unknown(change_id)
    if row.accepted_by is None:
        mine = contract_change.update().where(contract_change.c.id == change_id)
        connection.execute(mine.values(accepted_by=by, accepted_at=at))
        return _refused(row)._replace(by=by, at=at)
    return _refused(row)


def unknown(change_id: str) -> StorageError:
    """The error of a change that is not there."""
    return StorageError(
        f"contract: no drop waits to be accepted with the id {change_id!r}: it was delivered again "
        "and released since, or is of another dataset; copy the id from the refusal"
    )


def _refused(row: sa.Row[Any]) -> Refused:
    changes = [Change.from_json(each) for each in json.loads(row.changes)]
    by, at = row.accepted_by or "", row.accepted_at or ""
    return Refused(row.id, changes, row.output, row.time, by, at)
