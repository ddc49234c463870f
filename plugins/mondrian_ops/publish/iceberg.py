"""Publication as a table of Iceberg, by write, audit, publish.

The parts lie in the table's location from the start. A first commit makes a snapshot of the parts
alone, and a branch that names it; ``main`` stays as it is. The release is checked as a reader of
the branch finds it. A second commit lets ``main`` name the snapshot and removes the branch. A
reader sees the old release before that commit and the new one after it; two releases are never
merged.

A killed process leaves a branch and its parts. The next :meth:`IcebergPublication.recover` removes
them once their working files are gone. A table that was made for a first release stays without
rows: no catalog removes a table only if nobody has written to it. Files of metadata that no
snapshot names stay as well, until the table's own maintenance removes orphan files.

Catalogs have no locks. The commit that moves ``main`` says which snapshots ``main`` and the branch
had when the process read the table. The catalog refuses it if they have others now. Then the
process reads the table again, and goes on only if the release may replace what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mondrian_ops.errors import StorageError
from mondrian_ops.publish import table_folders
from mondrian_ops.publish.iceberg_commits import MAIN, commit, retried
from mondrian_ops.publish.publication import (
    Candidate,
    Progress,
    Publication,
    complete,
    publication_of,
)
from mondrian_ops.stores.access_policy import may_write
from mondrian_ops.stores.files import list_directory, names_in, read_file, remove_tree, write_file
from mondrian_ops.stores.locations import joined, parent_of, shown
from mondrian_ops.stores.private_folders import is_work_name
from mondrian_ops.tables.iceberg import catalog_errors, catalog_of

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

TOKEN = "mondrian_ops.token"  # noqa: S105 - the name of one
"""The key in the summary of a snapshot under which the token of its attempt is."""
_BRANCH = "mondrian_ops-"  # begins the name of a branch; the token of the attempt follows


class IcebergPublication(Publication):
    """By a commit to a branch, and another that lets ``main`` follow."""

    # What is there

    def beside(self, target: str) -> str:
        with _errors(target):
            return table_folders.beside(_location(target), target)

    def above(self, targets: str) -> str:
        """That of the tables of their namespace; raises StorageError where they have none."""
        namespace = targets.rpartition(".")[0]
        with _errors(targets):
            if namespace.count("/") < 3:
                raise StorageError(
                    f"output: {shown(targets)} names a namespace for each night; put the date "
                    "behind a namespace, as in iceberg://CATALOG/NAMESPACE.2026-11-01"
                )
            return parent_of(parent_of(_folder(_location(f"{namespace}.mondrian_waiting"))))

    def folder(self, target: str) -> str | None:
        with _errors(target):
            table = _table(target)
            token = None if table is None else _current(table)
            if table is None or token is None:
                return None
            return table_folders.of_attempt(_folder(table.location()), token)

    def token(self, target: str) -> str | None:
        with _errors(target):
            table = _table(target)
            return None if table is None else _current(table)

    def refuse_occupied(self, target: str) -> None:
        """Raise StorageError if the table has rows of others, or is divided into partitions.

        Also if there is none, and its place is that of a table that was renamed or dropped.
        """
        with _errors(target):
            table = _table(target)
            location = _location(target)
        if table is None:
            if _is_of_a_table(location):
                raise StorageError(
                    f"output: {shown(target)} is no table, but its place {shown(location)} holds "
                    "the files of one that was renamed or dropped; choose another name, or remove "
                    "that folder if no table needs it"
                )
            return
        snapshot = table.current_snapshot()
        rows = "0" if snapshot is None else _summary(snapshot).get("total-records")
        if rows != "0" and _current(table) is None:
            raise StorageError(
                f"output: {shown(target)} has rows that no release has put there, or whose release "
                "has expired from the table's history; a release would replace them; choose "
                "another table, or remove the rows yourself"
            )
        if not table.spec().is_unpartitioned():
            raise StorageError(
                f"output: {shown(target)} is partitioned, and a release is not; choose a table "
                "without partitions"
            )

    def refuse_unwritable(self, target: str) -> None:
        """As the store tells where the table's files lie; its catalog tells with the commit."""
        beside = self.beside(target)
        publication_of(beside).refuse_unwritable(beside)

    def recover(self, target: str, token: str = "") -> None:
        """Remove what attempts have left whose working files are gone."""
        with _errors(target):
            table = _table(target)
            location = _location(target)
        folder = _folder(location)
        if table is None and _is_of_a_table(location):  # whose files are not ours to remove
            return
        if not may_write(joined(folder, "any")):  # wherever the catalog says that the table lies
            return
        try:
            names = list(names_in(folder))
            alive = {token, *(_token_in(joined(folder, n)) for n in names if is_work_name(n))}
        except (FileNotFoundError, PermissionError, StorageError):  # none, or another user's
            return
        left = {name for name in names if table_folders.is_token(name)}
        if table is not None:
            branches = [ref for ref in table.refs() if ref.startswith(_BRANCH)]
            left -= {_summary(each).get(TOKEN) for each in table.snapshots()}
            left |= {ref.removeprefix(_BRANCH) for ref in branches}
        for each in filter(table_folders.is_token, left - alive):
            if not self.unstage(target, each):
                remove_tree(table_folders.of_attempt(folder, each))

    # Steps

    def stage(self, target: str, candidate: Candidate) -> None:
        """Commit the parts to a branch, and look whether its readers find them.

        Raises StorageError where a column has a type that the table cannot have, or readers would
        find something else; OSError where others commit all the time.
        """
        from mondrian_ops.publish import iceberg_snapshot as snapshots

        branch = _BRANCH + candidate.token

        def attempt() -> None:
            table = _table(target) or _made(target, candidate)
            _refuse_moved(table, target, candidate)
            if not snapshots.is_staged(table, branch, candidate):
                _drop(table, candidate.token)
                snapshots.stage(table.refresh(), target, branch, candidate)

        with _errors(target):
            retried(target, attempt)
            snapshots.audit(_there(target), target, branch, candidate)

    def unstage(self, target: str, token: str) -> bool:
        """Remove the branch and its snapshot; the parts stay.

        Returns whether the table still needs the parts.
        """

        def attempt() -> bool:
            table = _table(target)
            if table is None:
                return False
            _drop(table, token)
            return _has_files(table, token)

        with _errors(target):
            return retried(target, attempt)

    def publish(
        self,
        staging: str,
        target: str,
        token: str,
        refuse: Callable[[], None],
        progress: Progress,
    ) -> None:
        """Put the report beside the parts, and let ``main`` name the snapshot.

        ``refuse`` is asked again whenever somebody has committed meanwhile. Raises StorageError
        where the branch is gone, or somebody else has written to it.
        """
        refuse()
        folder = table_folders.of_attempt(parent_of(parent_of(staging)), token)
        for file in list_directory(staging, hidden=True):
            if not file.name.startswith("."):
                write_file(joined(folder, file.name), read_file(file.url))
        complete(staging, folder, token)

        def attempt() -> None:
            table = _there(target)
            if _current(table) != token:  # unless the answer to the commit was lost
                refuse()
                _move(table, target, token)

        with _errors(target):
            retried(target, attempt)
        remove_tree(staging)

    def place(self, staging: str, target: str, token: str, progress: Progress) -> None:
        self.publish(staging, target, token, lambda: None, progress)


def _table(target: str) -> Table | None:
    """The table as it is now; None if the catalog has none of the name."""
    from pyiceberg.exceptions import NoSuchTableError

    catalog, name = catalog_of(target)
    try:
        return catalog.load_table(name)
    except NoSuchTableError:
        return None


def _there(target: str) -> Table:
    table = _table(target)
    if table is None:
        raise StorageError(
            f"output: {shown(target)} is gone, and with it the release that was to be published; "
            "run again from the partition task"
        )
    return table


def _refuse_moved(table: Table, target: str, candidate: Candidate) -> None:
    """Raise StorageError if the table lies elsewhere than the parts, which it was asked about."""
    if _folder_of_parts(candidate) != _folder(table.location()):
        raise StorageError(
            f"output: {shown(target)} lies elsewhere than when the run began; run again from the "
            "partition task"
        )


def _folder_of_parts(candidate: Candidate) -> str:
    """The folder of releases in which the parts are."""
    return parent_of(parent_of(next(iter(candidate.rows))))


def _location(target: str) -> str:
    """Where the table lies, or would lie, which some catalogs answer differently each time."""
    from pyiceberg.schema import Schema

    table = _table(target)
    if table is not None:
        return table.location()
    catalog, name = catalog_of(target)
    return catalog.create_table_transaction(name, Schema()).table_metadata.location


def _is_of_a_table(location: str) -> bool:
    """Whether a table of any name has its metadata at the location."""
    try:
        return any(names_in(joined(parent_of(_folder(location)), "metadata")))
    except (FileNotFoundError, PermissionError, StorageError):
        return False


def _folder(location: str) -> str:
    """The folder of releases in a table's location, as the stores of this package name it."""
    scheme, mark, path = location.partition(":")
    if not mark or scheme == "file":
        location = path if mark else location
        location = location.removeprefix("//")
    elif scheme in ("s3a", "s3n"):
        location = f"s3:{path}"
    return joined(location, table_folders.FOLDER)


def _as_named(location: str, asked: str) -> str:
    """A location of this package with the scheme of one that the catalog has named."""
    scheme, mark, _ = asked.partition(":")
    if not mark or "/" in scheme:
        return location
    return f"{scheme}://{location.partition('://')[2] or location}"


def _made(target: str, candidate: Candidate) -> Table:
    """A table without rows for the first release, where the parts are."""
    from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

    from mondrian_ops.publish.iceberg_schema import first_schema

    catalog, name = catalog_of(target)
    location = _as_named(parent_of(_folder_of_parts(candidate)), _location(target))
    try:
        return catalog.create_table(name, first_schema(target, candidate), location=location)
    except TableAlreadyExistsError as error:
        raise CommitFailedException("another attempt has made it") from error


def _summary(snapshot: Snapshot) -> dict[str, str]:
    return {} if snapshot.summary is None else dict(snapshot.summary.additional_properties)


def _current(table: Table) -> str | None:
    """The token of the release that ``main`` has; its files may have been compacted since."""
    from pyiceberg.table.snapshots import Operation

    snapshot = table.current_snapshot()
    while snapshot is not None and TOKEN not in _summary(snapshot):
        if snapshot.summary is None or snapshot.summary.operation is not Operation.REPLACE:
            return None
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    token = "" if snapshot is None else _summary(snapshot)[TOKEN]
    return token if table_folders.is_token(token) else None


def _has_files(table: Table, token: str) -> bool:
    """Whether a snapshot needs files of an attempt, perhaps after the attempt's own has expired.

    A compaction that skips large files, and rows that others append, leave the parts in place.
    """
    if any(_summary(each).get(TOKEN) == token for each in table.snapshots()):
        return True
    lists = (each.manifests(table.io) for each in table.snapshots())
    manifests = {each.manifest_path: each for listed in lists for each in listed}
    return any(
        token in entry.data_file.file_path.split("/")
        for manifest in manifests.values()
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    )


def _drop(table: Table, token: str) -> None:
    """Remove the branch of an attempt, and its snapshots that ``main`` does not need."""
    from pyiceberg.table.snapshots import ancestors_of

    branch = table.refs().get(_BRANCH + token)
    if branch is None:
        return
    mine = [each for each in table.snapshots() if _summary(each).get(TOKEN) == token]
    current = table.current_snapshot()
    history = {each.snapshot_id for each in ancestors_of(current, table.metadata)}
    gone = [each for each in mine if each.snapshot_id not in history]
    files = [path for each in gone for path in _own_files(table, each)]
    identifiers = [each.snapshot_id for each in gone]
    main = None if current is None else current.snapshot_id
    commit(
        table,
        [
            {"action": "remove-snapshot-ref", "ref-name": _BRANCH + token},
            {"action": "remove-snapshots", "snapshot-ids": identifiers},
        ],
        {MAIN: main, _BRANCH + token: branch.snapshot_id},
    )
    _delete(table, files)


def _own_files(table: Table, snapshot: Snapshot) -> Iterator[str]:
    """The files that describe a snapshot and no other one."""
    if not _is_own(table, snapshot.manifest_list):
        return
    yield snapshot.manifest_list
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id == snapshot.snapshot_id:
            yield manifest.manifest_path


def _delete(table: Table, paths: Iterable[str]) -> None:
    """Delete files that describe the table."""
    for path in paths:
        if _is_own(table, path):
            table.io.delete(path)


def _is_own(table: Table, path: str) -> bool:
    """Whether a file describes the table. Who may commit can write the name of any file there."""
    is_below = path.startswith(f"{table.location().rstrip('/')}/") and "/../" not in path
    return is_below and path.endswith((".avro", ".metadata.json", ".metadata.json.gz"))


def _move(table: Table, target: str, token: str) -> None:
    """Let ``main`` name the snapshot of a branch, and remove the branch."""
    branch = table.refs().get(_BRANCH + token)
    snapshot = None if branch is None else table.snapshot_by_id(branch.snapshot_id)
    if snapshot is None or _summary(snapshot).get(TOKEN) != token:
        raise StorageError(
            f"output: somebody has removed the branch {_BRANCH + token} of {shown(target)}, or "
            "written to it; nothing is published; run again from the partition task"
        )
    number = snapshot.snapshot_id
    main = table.refs().get(MAIN)
    kept = {} if main is None else main.model_dump(by_alias=True, exclude_none=True)
    updates = [
        {"action": "set-current-schema", "schema-id": snapshot.schema_id},
        {
            "action": "set-snapshot-ref",
            **kept,
            "ref-name": MAIN,
            "type": "branch",
            "snapshot-id": number,
        },
        {"action": "remove-snapshot-ref", "ref-name": _BRANCH + token},
    ]
    expected = None if main is None else main.snapshot_id
    commit(table, updates, {MAIN: expected, _BRANCH + token: number})


def _token_in(work: str) -> str:
    from mondrian_ops.publish.workdir import ATTEMPT

    try:
        return read_file(joined(work, ATTEMPT)).decode("ascii")
    except FileNotFoundError:
        return ""


@contextmanager
def _errors(target: str) -> Iterator[None]:
    """As for an input, with the remedies of an output."""
    with catalog_errors(target):
        import pyiceberg.exceptions as known

        try:
            yield
        except known.NoSuchNamespaceError:
            raise StorageError(
                f"output: {shown(target)} is in a namespace that the catalog has not; create it, "
                "or correct the name"
            ) from None
        except known.CommitStateUnknownException:
            raise OSError(
                f"{shown(target)}: the catalog does not tell whether it has committed; run again"
            ) from None
