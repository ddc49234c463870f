"""Commits to a table of Iceberg, in the words of the catalogs' protocol; again after others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from mondrian_ops.stores.locations import shown

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableUpdate

T = TypeVar("T")

MAIN = "main"
_TRIES = 12
_PAUSE_S = 0.05  # after the first try; then twice, three times, … as long


def commit(
    table: Table,
    updates: Iterable[Mapping[str, Any] | TableUpdate],
    refs: Mapping[str, int | None],
    *requirements: Mapping[str, Any],
) -> None:
    """Commit all ``updates`` or none.

    ``refs``: the snapshot that each of some branches must still name; None: there is no branch.

    Raises CommitFailedException where that, or a requirement, is not so, or somebody else commits.
    """
    from pydantic import TypeAdapter
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.table.update import TableRequirement, TableUpdate

    changes: Any = TypeAdapter(tuple[TableUpdate, ...])
    conditions: Any = TypeAdapter(tuple[TableRequirement, ...])
    required = [
        {"type": "assert-table-uuid", "uuid": str(table.metadata.table_uuid)},
        *(
            {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": number}
            for ref, number in refs.items()
        ),
        *requirements,
    ]
    checked = changes.validate_python(tuple(updates)), conditions.validate_python(tuple(required))
    seen = table.metadata_location
    try:
        table._do_commit(*checked)
    except ValueError as error:  # of PyIceberg's own catalogs, whose table has a newer snapshot
        if table.refresh().metadata_location == seen:
            raise
        raise CommitFailedException("somebody else has committed meanwhile") from error


def retried(target: str, attempt: Callable[[], T]) -> T:
    """What ``attempt`` returns, which is called again where somebody else committed meanwhile.

    Raises OSError where that does not end.
    """
    from pyiceberg.exceptions import CommitFailedException

    for number in range(1, _TRIES + 1):
        try:
            return attempt()
        except CommitFailedException:
            time.sleep(_PAUSE_S * number)
    raise OSError(f"{shown(target)}: others commit to the table all the time; run again")
