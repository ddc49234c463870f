"""Hold a drop to the contract of its dataset: the columns of the last release.

A dataset is what outputs have in common but for their dates. The nights of a series, and jobs with
a ``schema``, are held to it: when their rows are read, and again in the transaction that notes the
intention to publish. Those transactions take turns, so of two drops that differ from each other one
sees the contract of the other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mondrian_ops import catalogue, publish, series, stores, tables
from mondrian_ops.data.contract import (
    Change,
    Column,
    Contract,
    changes,
    completed,
    contract_of,
    decided,
    named_types,
)
from mondrian_ops.errors import InputError, PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.pipeline.report_builder import Report
from mondrian_ops.report.outcome import now

if TYPE_CHECKING:
    import sqlalchemy as sa

    from mondrian_ops.catalogue.contracts import Noted, Refused
    from mondrian_ops.catalogue.publication import Intention
    from mondrian_ops.engines.handover import RunState
    from mondrian_ops.engines.run import Dataset

_MAX_NAMES = 20

_log = logging.getLogger(__name__)


def known_types(job: Job) -> dict[str, str]:
    """The types of the last release of the job's dataset, which columns of CSV files keep."""
    if not job.has_contract:
        return {}
    last, _ = state_of(str(job.output))
    return {} if last is None else named_types(last.columns)


class _Compared(NamedTuple):
    """A drop beside the contract of its dataset, which it may be the first to have."""

    columns: Contract
    last: Noted | None
    changes: list[Change]

    @property
    def newly_left_out(self) -> list[str]:
        """The columns that the last release did not leave out, for they were not there."""
        known = self.columns if self.last is None else self.last.columns
        return [
            name
            for name, each in self.columns.items()
            if name not in known and not each.is_published
        ]


def held(dataset: Dataset, work: publish.WorkDir) -> Dataset:
    """The dataset with its contract, after it was compared with that of the last release.

    Raises PrivacyError where it differs and nobody has accepted that; StorageError where no
    catalogue is given; OSError where it cannot be reached.
    """
    from mondrian_ops.catalogue import contracts

    job, source = dataset.job, dataset.source
    columns = contract_of(job, source.schema, dataset.hierarchies, source.index, source.declared)
    name = series.name_of_series(str(job.output))
    _settle(name)
    with catalogue.current().reading() as connection:
        last = contracts.last(connection, name, work.root)
    for empty in _empty(source, columns, {} if last is None else last.columns):
        columns[empty] = columns[empty].without_values
    with catalogue.current().reading() as connection:
        compared = _compared(connection, job, work, columns)
        accepted = contracts.accepted(connection, name, compared.changes)
    if compared.changes and accepted is None and job.schema != "evolve":
        places = _places(job, source, compared)
        with catalogue.current().writing() as connection:
            error = _refusal(connection, job, compared, places)
        raise error
    contract = {
        "columns": {name: asdict(each) for name, each in compared.columns.items()},
        "changes": [each.to_json() for each in compared.changes],
        "accepted": accepted and {"id": accepted.id, "by": accepted.by, "at": accepted.at},
        "newly_left_out": compared.newly_left_out,
    }
    return replace(dataset, contract=contract)


def state_of(output: str) -> tuple[Noted | None, list[Refused]]:
    """The contract of a dataset, and the changes that refused drops of it and are not released.

    ``output``: that of any night of the dataset.
    """
    from mondrian_ops.catalogue import contracts

    name = series.name_of_series(output)
    _settle(name)
    with catalogue.current().reading() as connection:
        return contracts.last(connection, name), contracts.open_changes(connection, name)


def accept(change_id: str, by: str, *, output: str = "", below: str = "") -> Refused:
    """Accept a change that refused a drop, for one release; once is enough.

    ``by``: who accepts it. ``output``: that of any night of the dataset; or ``below``: the location
    of the releases of which it may be any. Raises StorageError where the change is not known there.
    """
    from mondrian_ops.catalogue import contracts

    dataset = series.name_of_series(output) if output else None
    with catalogue.current().writing() as connection:
        accepted = contracts.accept(connection, dataset, change_id, by, now())
        if below and not accepted.output.startswith(series.place_of(below).rstrip("/") + "/"):
            raise contracts.unknown(change_id)
    _log.info(
        "contract: the change %s of %s was accepted by %s, %s: %s",
        change_id,
        stores.shown(accepted.output),
        accepted.by,
        accepted.at,
        Change.text_of(accepted.changes),
    )
    return accepted


def _empty(source: tables.Table, columns: Contract, last: Contract) -> Sequence[str]:
    """The columns without any value; a column of texts is only looked at if it was none before."""
    if source.empty is not None:
        return source.empty
    texts = [name for name, each in columns.items() if each.type == "text"]
    return [
        name
        for name in texts
        if (name not in last or last[name].type not in ("text", ""))
        and all(batch.column(0).null_count == batch.num_rows for batch in source.batches([name]))
    ]


def _settle(name: str) -> None:
    """Find out what became of publishers that were killed."""
    from mondrian_ops.catalogue import contracts, publication

    opened = catalogue.current()
    with opened.reading() as connection:
        pending = publication.pending(connection, contracts.SCOPE + name)
    for intention in pending:
        publication.settle(opened, intention)


def _compared(
    connection: sa.Connection, job: Job, work: publish.WorkDir, columns: Contract
) -> _Compared:
    """The columns beside those of the last release, and of that of the night before."""
    from mondrian_ops.catalogue import contracts

    name, label = series.name_of_series(str(job.output)), series.label_of(str(job.output))
    last = contracts.last(connection, name, work.root)
    if last is None:
        return _Compared(columns, None, [])
    earlier = contracts.before(connection, name, label, work.root)
    differing = changes(columns, last.columns, earlier and earlier.columns)
    kept = completed(columns, last.columns, earlier and earlier.columns)
    return _Compared(kept, last, differing)


def _places(job: Job, source: tables.Table, compared: _Compared) -> list[str]:
    """Where files without declared types have the first value that is none of its column's."""
    before = {} if compared.last is None else named_types(compared.last.columns)
    found = []
    for change in compared.changes:
        now = change.after
        if source.empty is None or now is None or now.type != "text":
            continue
        if (kind := before.get(change.name, "text")) == "text":
            continue
        types = {**job.types, change.name: kind}
        try:
            tables.open_table(source.url, [change.name], False, True, types, job.csv)
        except InputError as error:
            if error.where:
                found.append(
                    f"{error.where} has the first value of {change.name!r} that is no {kind}"
                )
    return found


def _refusal(
    connection: sa.Connection, job: Job, compared: _Compared, places: Sequence[str] = ()
) -> PrivacyError:
    """The error of a drop that differs, whose changes a person may now accept."""
    from mondrian_ops.catalogue import contracts

    output = series.output_of(job)
    name = series.name_of_series(output)
    change_id = contracts.refuse(connection, name, compared.changes, output, now())
    last = "" if compared.last is None else f" ({stores.shown(compared.last.output)})"
    missing = ""
    if places:
        missing = (
            f" ({'; '.join(places)}; list a text that stands for a missing value in csv.missing)"
        )
    return PrivacyError(
        "schema: the drop is refused and not published, because its columns are not those of the "
        f"last release of the dataset{last}: {Change.text_of(compared.changes)}{missing}; deliver "
        "it as before; or, if this is right, accept the change with `python -m mondrian_ops "
        f"contract accept {stores.shown(str(job.output))} {change_id}` and run again, or trigger "
        f"mondrian_nightly with accept: {change_id}"
    )


def settled(contract: Mapping[str, Any], state: RunState) -> Mapping[str, Any]:
    """The contract of a drop with what its values decided, which the next ones keep."""
    columns = {name: Column(**each) for name, each in contract["columns"].items()}
    columns = decided(columns, state.generalizations, state.grids)
    return {**contract, "columns": {name: asdict(each) for name, each in columns.items()}}


def note(contract: Mapping[str, Any], report: Report) -> None:
    """Add to the report how the release differs from the last one, and who accepted that."""
    if differing := [Change.from_json(each) for each in contract["changes"]]:
        text, accepted = Change.text_of(differing), contract["accepted"]
        by = (
            "schema: evolve in the job allows it"
            if accepted is None
            else f"accepted by {accepted['by']}, {accepted['at']}"
        )
        report["contract"] = {"changes": contract["changes"], "accepted": accepted}
        report["notes"].append(f"the columns changed since the last release ({by}): {text}")
    if names := contract["newly_left_out"]:
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        listed = ", ".join(map(repr, names[:_MAX_NAMES]))
        report["notes"].append(
            f"columns that the last release did not have, and that are left out: {listed}{more}"
        )


@contextmanager
def recorded(job: Job, work: publish.WorkDir, contract: Mapping[str, Any]) -> Iterator[None]:
    """Make the contract of the release that of its dataset around the block, which publishes it.

    Raises PrivacyError, before the block, where another drop was released meanwhile from which this
    one differs.
    """
    from mondrian_ops.catalogue import publication

    noted = partial(_noted, job, work, contract)
    intention = _intention(job, work, contract)
    with publication.publishing(catalogue.current(), intention, noted):
        yield


def confirm(job: Job, work: publish.WorkDir, contract: Mapping[str, Any]) -> None:
    """Confirm the publication of an attempt that was killed after it published."""
    from mondrian_ops.catalogue import contracts, publication

    scope = contracts.SCOPE + series.name_of_series(str(job.output))
    noted = partial(_noted, job, work, contract)
    publication.confirm(catalogue.current(), scope, work.token, noted)


def _intention(job: Job, work: publish.WorkDir, contract: Mapping[str, Any]) -> Intention:
    from mondrian_ops.catalogue import contracts

    name = series.name_of_series(str(job.output))
    columns = {name: Column(**each) for name, each in contract["columns"].items()}
    _settle(name)
    with catalogue.current().writing() as connection:
        contracts.take_back(connection, name, work.token)
        compared = _compared(connection, job, work, columns)
        is_shown = contract["changes"] == [each.to_json() for each in compared.changes]
        accepted = contracts.accepted(connection, name, compared.changes) if is_shown else None
        if not compared.changes or job.schema == "evolve" or accepted is not None:
            used = None if accepted is None else accepted.id
            return _noted(job, work, contract, connection, used)
        error = _refusal(connection, job, compared)
    raise error


def _noted(
    job: Job,
    work: publish.WorkDir,
    contract: Mapping[str, Any],
    connection: sa.Connection,
    accepted: str | None = None,
) -> Intention:
    """Note the intention to publish, with the contract of the release.

    ``accepted``: the id of the change that it needs.
    """
    from mondrian_ops.catalogue import contracts, publication

    output = series.output_of(job)
    name = series.name_of_series(output)
    intention = publication.intend(
        connection,
        contracts.SCOPE + name,
        token=work.token,
        work=work.root,
        output=output,
        time=now(),
    )
    columns = {name: Column(**each) for name, each in contract["columns"].items()}
    contracts.note(connection, intention, name, series.label_of(output), columns, accepted)
    return intention
