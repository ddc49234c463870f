"""The private working files of one run: beside the output, mode 0700, removed after the run."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from typing import IO, TYPE_CHECKING, Any, cast

from mondrian_ops.errors import MondrianOpsError, StorageError
from mondrian_ops.late_methods import dataclass
from mondrian_ops.publish import table_folders
from mondrian_ops.publish.publication import publication_of
from mondrian_ops.publish.work_paths import output_of
from mondrian_ops.stores import private_folders
from mondrian_ops.stores.access_policy import check_writing
from mondrian_ops.stores.documents import json_value
from mondrian_ops.stores.files import (
    exists,
    make_directory,
    make_private,
    names_in,
    new_file,
    open_stream,
    read_file,
    remove_file,
    remove_tree,
    write_file,
)
from mondrian_ops.stores.locations import (
    is_local,
    is_of_table,
    joined,
    local_path,
    name_of,
    parent_of,
    shown,
)
from mondrian_ops.stores.shared_folders import by_handle
from mondrian_ops.stores.store import store_of

if TYPE_CHECKING:
    import pyarrow as pa

    from mondrian_ops.job.job import Job

_log = logging.getLogger(__name__)

FREQUENCIES = "frequencies.arrow"
"""The combinations of codes in the rows, with counts, for the tasks that recode."""
FRAGMENTS = "fragments"
"""The directory of the scattered rows."""
ROWS = "rows.parquet"
"""The rows of a source of many small files."""
_JOB = "job.json"
ATTEMPT = "attempt"
_OWNER = "owner.json"
_OWNER_BYTES = 4096
_PART_KEY = "part-key"
_REPLACES = "replaces.json"
_RELEASE = "release"
_KEPT = "kept"
_PERSONS = "persons-"
_ALWAYS = {ATTEMPT, _OWNER, _PART_KEY, FRAGMENTS, _RELEASE, _KEPT, _JOB, _REPLACES, FREQUENCIES}
"""Some names of working files, of which a removal that was cut short leaves one."""

_STARTED: set[str] = set()  # the attempts that this process started
_HELD: dict[str, int] = {}  # directories that this process holds, with the handle of the lock


def may_publish(path: str, token: str) -> bool:
    """Whether the attempt with this token has, or may have, a release in its working files.

    Once it has none, it never has one again.
    """
    work = WorkDir(path)
    try:
        if not work.has_release:
            return False
    except FileNotFoundError:
        return False
    except (PermissionError, StorageError):  # another user's, or a link: nobody knows
        return True
    try:
        return read_file(work.path(ATTEMPT)) == token.encode("ascii")
    except (FileNotFoundError, PermissionError):  # being removed, or another user's
        return True


def _held_name(fragment_id: int) -> str:
    return f"held-{fragment_id:05d}.arrow"


@dataclass(frozen=True)
class Owner:
    """Which run in Airflow working files belong to.

    Attributes:
        run: ``DAG_ID/RUN_ID``, by which :func:`work_path` names the directory.
        task: the id of the task that made them.
    """

    run: str
    task: str


class WorkDir:
    """The working directory of one run, which its tasks share.

    Raises JobError if the access policy does not let jobs write at ``path``. Every method that
    reads or writes a file raises :class:`StorageError` if the directory has vanished.

    With an ``attempt`` at the run it writes only while the directory belongs to that attempt, so
    that a stale task does not mix its files with those of its successor.
    """

    def __init__(self, path: str, attempt: str | None = None) -> None:
        check_writing(path)
        self.root = path
        self._store = store_of(path)
        self._attempt = attempt

    @classmethod
    def attach(cls, path: str) -> WorkDir:
        """The working directory with the attempt that owns it now; what was kept is put back."""
        directory = cls(path, cls(path).token)
        with suppress(FileNotFoundError):
            directory._store.move(directory.path(_KEPT), directory.staging)
        return directory

    def create(self, owner: Owner | None = None) -> None:
        """Make the directory, readable by this user only, and remove an earlier attempt's files.

        Without an ``owner`` this process holds it until it is removed, or the process ends.

        Raises StorageError if the files that are there are those of another task of the run, or no
        working files of this user.
        """
        before = self.owner
        if owner is not None and before is not None and before.task != owner.task:
            raise StorageError(
                f"output: the task {before.task} of this run has working files for the same output "
                f"({shown(self.root)}); give each task an output of its own"
            )
        try:
            self._refuse_others()
            self.remove()
            make_private(self.root)
        except (PermissionError, NotADirectoryError, FileExistsError, FileNotFoundError):
            raise StorageError(
                f"{shown(self.root)}: cannot be created; let this process write beside `output`"
            ) from None
        if owner is None:
            self._hold()
        else:
            write_file(self.path(_OWNER), json.dumps(asdict(owner)).encode())
        for name in (FRAGMENTS, _RELEASE):
            make_directory(self.path(name))
        self._attempt = uuid.uuid4().hex
        _STARTED.add(self._attempt)
        write_file(self.path(_PART_KEY), secrets.token_bytes(32))
        write_file(self.path(ATTEMPT), self._attempt.encode())
        if self._of_table:
            make_directory(self.parts)

    def _refuse_others(self) -> None:
        """Raise StorageError if somebody has given another directory of this user the name."""
        if not is_local(self.root):
            return
        with suppress(FileNotFoundError):
            names = names_in(self.root)
            if any(not name.startswith(".") for name in names) and _ALWAYS.isdisjoint(names):
                raise StorageError(
                    f"{shown(self.root)}: holds no working files of a run, and would be deleted; "
                    "move it elsewhere"
                )

    @property
    def owner(self) -> Owner | None:
        """The run in Airflow that the files belong to; None if they do not tell of one."""
        try:
            with open_stream(self.path(_OWNER)) as file:
                owner = Owner(**json_value(file.read(_OWNER_BYTES)))
            f"{owner.run:s}{owner.task:s}".encode()
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return None
        except (StorageError, ValueError, TypeError):  # nothing that we wrote
            return None
        return owner

    def remove(self) -> None:
        """Remove the directory and all files in it; a missing one is no error."""
        self._withdraw()
        remove_tree(self.root)
        if (handle := _HELD.pop(self.root, None)) is not None:
            os.close(handle)

    def _hold(self) -> None:
        """Lock the directory; a store or file system without locks gets none."""
        handle = self._store.hold(self.root)
        if handle is not None:
            _HELD[self.root] = handle

    @property
    def is_held(self) -> bool:
        """Whether a living process holds the directory, as far as its file system tells."""
        return self._store.is_held(self.root)

    @property
    def is_begun(self) -> bool:
        """Whether an attempt at a run has made the directory."""
        try:
            return bool(read_file(self.path(ATTEMPT)))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return False

    @property
    def has_release(self) -> bool:
        """Whether the release is still here, finished or not: neither published nor discarded."""
        return not {_RELEASE, _KEPT}.isdisjoint(names_in(self.root))

    def keep(self) -> None:
        """Keep the files for a repair: :meth:`attach` puts the release back where it was.

        Until then, a stale attempt fails instead of publishing it.
        """
        with suppress(FileNotFoundError):
            self._store.move(self.staging, self.path(_KEPT))

    def give_up(self) -> None:
        """Remove the directory, unless it belongs to an attempt that another process started."""
        with suppress(FileNotFoundError):
            if read_file(self.path(ATTEMPT)).decode("ascii") not in _STARTED:
                return
        self.remove()

    def _withdraw(self) -> None:
        """Rename the release first, so that a stale attempt fails instead of publishing half."""
        token = ""
        with suppress(FileNotFoundError, NotADirectoryError):
            if self._of_table and self.has_release:  # kept for a repair, perhaps
                token = read_file(self.path(ATTEMPT)).decode("ascii")
        with suppress(FileNotFoundError, NotADirectoryError):
            self._store.move(self.staging, f"{self.staging}.{uuid.uuid4().hex[:8]}")
        if token:
            self._withdraw_from_table(token)

    def _withdraw_from_table(self, token: str) -> None:
        """Remove what an attempt has left in its table, unless it is published.

        Where the catalog is out of reach it stays until the next run into the table: the rows in
        these working files have to go.
        """
        target = output_of(self.root)
        try:
            if not publication_of(target).unstage(target, token):
                remove_tree(table_folders.of_attempt(parent_of(self.root), token))
        except (OSError, MondrianOpsError) as error:
            _log.warning("%s: a release that is not published stays there: %s", target, error)

    def remove_fragments(self) -> None:
        """Remove copied and scattered rows and the counts, which nobody needs after the check.

        The files of :meth:`write_persons` stay, because the check may be repeated.
        """
        remove_tree(self.path(FRAGMENTS))
        remove_file(self.path(FREQUENCIES))
        remove_file(self.path(ROWS))

    def path(self, *parts: str) -> str:
        """The path of a working file."""
        return joined(self.root, *parts)

    def note_replaced(self, token: str | None, **maker: str | None) -> None:
        """Note the token of the output's release when the run began, and who makes the new one."""
        self.write_json(_REPLACES, {"token": token, **maker})

    @property
    def replaced(self) -> str | None:
        """The token of the output's release when the run began; None if there was none."""
        token: str | None = self.read_json(_REPLACES)["token"]
        return token

    @property
    def maker(self) -> dict[str, str | None]:
        """Who makes the release and, as Airflow says, who asked for it, and how its run began.

        ``made_by``: a DAG, or None for the command line and Python; ``requested_by``; ``run_type``.
        """
        noted = self.read_json(_REPLACES)
        return {key: noted.get(key) for key in ("made_by", "requested_by", "run_type")}

    def note_job(self, job: Job) -> None:
        """Note the job of the run, which all its tasks take from here."""
        self.write_json(_JOB, {"job": job.to_dict(), "base_dir": job.base_dir})

    @property
    def job(self) -> Job:
        """The job of the run, as it was when the run began."""
        from mondrian_ops.job.job import Job

        noted = self.read_json(_JOB)
        job = Job.from_dict(noted["job"], paths_required=False)
        return replace(job, base_dir=cast("str | None", noted["base_dir"]))

    @property
    def staging(self) -> str:
        """The directory that holds the release until it is published."""
        return self.path(_RELEASE)

    @property
    def parts(self) -> str:
        """The directory of the parts: :attr:`staging`, or where the files of a table lie."""
        if not self._of_table:
            return self.staging
        return table_folders.of_attempt(parent_of(self.root), self.token)

    @property
    def _of_table(self) -> bool:
        """Whether the release becomes a table."""
        return name_of(parent_of(self.root)) == table_folders.FOLDER and is_of_table(
            output_of(self.root)
        )

    @property
    def token(self) -> str:
        """A text that identifies this attempt at this run; for :func:`publish`."""
        with self.vanished_as_error():
            token = read_file(self.path(ATTEMPT)).decode("ascii")
        if self._attempt not in (None, token):
            raise StorageError(
                f"{shown(self.root)}: belongs to a later attempt at this run; this attempt is "
                "obsolete and writes nothing more"
            )
        return token

    def check_attempt(self) -> None:
        """Raise StorageError if the directory belongs to another attempt than this one."""
        if self._attempt is not None:
            self.token  # noqa: B018 - raises

    def staged(self) -> set[str]:
        """The names in :attr:`staging` and :attr:`parts`, without unfinished files."""
        with self.vanished_as_error():
            names = {*names_in(self.staging), *(names_in(self.parts) if self._of_table else ())}
            return {name for name in names if not name.startswith(".")}

    def part_path(self, fragment_id: int) -> str:
        """The path of a fragment's part of the release.

        The name is the same for every try at the fragment, so that there is one part of it. It
        differs from run to run, so that a reader that listed the directory before a publication
        finds the file gone instead of reading half of either release. It is made with a key that
        is never published: neither names nor their order tell which part is of which fragment.
        """
        (path,) = self.part_paths([fragment_id])
        return path

    def part_paths(self, fragment_ids: Iterable[int]) -> list[str]:
        """The :meth:`part_path` of each fragment; the key is read once."""
        key = self.read_bytes(_PART_KEY)
        self.check_attempt()  # after reading: a later attempt has another key
        folder = self.parts

        def path(fragment_id: int) -> str:
            name = hashlib.blake2b(str(fragment_id).encode(), key=key, digest_size=8).hexdigest()
            return joined(folder, f"part-{name}.parquet")

        return [path(fragment_id) for fragment_id in fragment_ids]

    def is_written(self, path: str) -> bool:
        """Whether a part of the release is there."""
        return exists(path)

    def write_persons(
        self, digest: str, persons: pa.ChunkedArray, signatures: pa.Array | None = None
    ) -> None:
        """Write the person of each row of a part, for the check; the file is not published.

        ``signatures``: those of the persons, where a series protects them against subtraction.

        ``digest`` is that of the part. Each try at a fragment writes its rows in another order, so
        the persons of a stale try must not be read with the rows of another.
        """
        import pyarrow as pa

        columns = {"person": persons} | ({} if signatures is None else {"signature": signatures})
        self.write_arrow(f"{_PERSONS}{digest}.arrow", pa.table(columns))

    def read_persons(self, digest: str) -> pa.ChunkedArray:
        """The persons that :meth:`write_persons` wrote."""
        return self.read_arrow(f"{_PERSONS}{digest}.arrow")["person"]

    def read_signatures(self, digest: str) -> pa.ChunkedArray:
        """The signatures that :meth:`write_persons` wrote; raises KeyError where it wrote none."""
        return self.read_arrow(f"{_PERSONS}{digest}.arrow")["signature"]

    def write_held(self, fragment_id: int, rows: pa.Table) -> None:
        """Write the rows of a fragment that wait for the next night of a series."""
        self.write_arrow(_held_name(fragment_id), rows)

    def read_held(self, fragment_id: int) -> pa.Table:
        """The rows that :meth:`write_held` wrote."""
        return self.read_arrow(_held_name(fragment_id))

    def spill(self) -> IO[bytes]:
        """A private file without a name, to be written and read; it ends with the process.

        It lies on the disk of the working files, or among this machine's temporary files where they
        are in a store.
        """
        if not is_local(self.root):
            return tempfile.TemporaryFile()
        with self.vanished_as_error():
            handle = private_folders.open_handle(
                local_path(self.root), os.O_RDONLY | os.O_DIRECTORY
            )
            try:
                # The dot: tempfile opens no link, as which the path of a handle counts.
                return tempfile.TemporaryFile(dir=f"{by_handle(handle)}/.")
            finally:
                os.close(handle)

    def write_json(self, name: str, value: object) -> None:
        """Write a JSON file as a whole or not at all."""
        self.write_bytes(name, json.dumps(value, allow_nan=False).encode())

    def read_json(self, name: str) -> Any:
        """The value that :meth:`write_json` wrote."""
        with self.vanished_as_error():
            return json_value(self.read_bytes(name))

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a file as a whole or not at all."""
        self.check_attempt()
        with self.vanished_as_error():
            write_file(self.path(name), content)

    def read_bytes(self, name: str) -> bytes:
        """The content that :meth:`write_bytes` wrote."""
        with self.vanished_as_error():
            return read_file(self.path(name))

    def write_arrow(self, name: str, table: pa.Table) -> None:
        """Write a table as an Arrow IPC stream, as a whole or not at all."""
        import pyarrow.ipc as ipc

        self.check_attempt()
        with (
            self.vanished_as_error(),
            new_file(self.path(name)) as sink,
            ipc.new_stream(sink, table.schema) as stream,
        ):
            stream.write_table(table)

    def read_arrow(self, name: str) -> pa.Table:
        """The table that :meth:`write_arrow` wrote; a local file is mapped into memory."""
        import pyarrow.ipc as ipc

        path = self.path(name)
        with self.vanished_as_error():
            return ipc.open_stream(self._store.arrow_source(path)).read_all()

    @contextmanager
    def vanished_as_error(self) -> Iterator[None]:
        """Raise StorageError if a working file is missing or damaged."""
        try:
            yield
        except (FileNotFoundError, json.JSONDecodeError):
            raise self._vanished() from None
        except OSError as error:
            if error.errno is not None:  # the machine's own error: a retry may cure it
                raise
            raise self._vanished() from None
        except ValueError as error:
            if not _is_of_arrow(error):
                raise
            raise self._vanished() from None

    def _vanished(self) -> StorageError:
        return StorageError(
            f"{shown(self.root)}: working files of this run vanished or are damaged, or `output` "
            "is not on storage that all workers share; check both, then run again from the "
            "partition task"
        )


def _is_of_arrow(error: ValueError) -> bool:
    """Whether Arrow raised it, for a truncated file or one of another format."""
    import pyarrow as pa

    return isinstance(error, pa.ArrowInvalid)
