"""The private working files of one run: beside the output, mode 0700, gone when the run is over."""

from __future__ import annotations

import hashlib
import json
import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mondrian_ops.core.errors import StorageError
from mondrian_ops.storage.allowed import check_writing
from mondrian_ops.storage.documents import json_value
from mondrian_ops.storage.files import (
    NewFile,
    make_private,
    names_in,
    new_file,
    read_file,
    remove_file,
    remove_tree,
    write_file,
)
from mondrian_ops.storage.locations import (
    check_path,
    filesystem,
    is_local,
    joined,
    local_path,
    name_of,
    parent_of,
    shown,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FREQUENCIES",
    "FragmentWriter",
    "WorkDir",
    "is_work_path",
    "may_publish",
    "read_fragment",
    "work_path",
]

FLUSH_BYTES = 1 << 20
# Arrow takes longer to count the bytes of a table than to gather it: one table stands for some.
_MEASURED_ONE_IN = 16

_BEGUN: set[str] = set()  # the attempts of this process

FREQUENCIES = "frequencies.arrow"
"""The combinations of codes that rows have, where they were counted for tasks to come."""

_ATTEMPT = "attempt"
_PART_KEY = "part-key"
_REPLACES = "replaces.json"
_RELEASE = "release"
_FRAGMENTS = "fragments"
_PERSONS = "persons-"


def work_path(output: str, run_id: str) -> str:
    """The working directory of a run: hidden, beside the output and so on its file system.

    Raises JobError where the output's path can be none, or is too long for that.
    """
    check_path("output", output, len(f".{_ending(run_id)}"))
    if is_local(output):
        target = Path(local_path(output)).resolve()
        return str(target.with_name(f".{target.name}{_ending(run_id)}"))
    return joined(parent_of(output), f".{name_of(output)}{_ending(run_id)}")


def is_work_path(path: str, run_id: str) -> bool:
    """Whether :func:`work_path` may have made it, for some output of the run."""
    name = name_of(path)
    return name.startswith(".") and name.endswith(_ending(run_id))


def may_publish(path: str, token: str) -> bool:
    """Whether the attempt of this token has, or may have, a release in its working files.

    Once it has none, it never has one again.
    """
    work = WorkDir(path)
    try:
        names_in(work.staging)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True
    try:
        return read_file(work.path(_ATTEMPT)) == token.encode("ascii")
    except (FileNotFoundError, PermissionError):  # they are being removed, or somebody else's
        return True


def _ending(run_id: str) -> str:
    return f".mondrian_ops-{hashlib.sha256(run_id.encode()).hexdigest()[:12]}"


class WorkDir:
    """The working directory of one run, shared by its tasks.

    It has to be where something may be written: else JobError is raised. Every method that needs it
    there raises :class:`StorageError` when it has vanished. One that
    knows its ``attempt`` at the run writes nothing into the working files of another: a task that
    was given up for dead, but goes on, would mix its files with its successor's.
    """

    def __init__(self, path: str, attempt: str | None = None) -> None:
        check_writing(path)
        self.root = path
        self._attempt = attempt

    @classmethod
    def entered(cls, path: str) -> WorkDir:
        """The working directory of the attempt that it now belongs to."""
        return cls(path, cls(path).token)

    def create(self) -> None:
        """Start afresh: what an earlier attempt left is removed. Nobody else may look in."""
        try:
            self.remove()
            make_private(self.root)
        except (PermissionError, NotADirectoryError, FileExistsError, FileNotFoundError):
            raise StorageError(
                f"{shown(self.root)}: cannot be made; let this process write beside `output`"
            ) from None
        for name in (_FRAGMENTS, _RELEASE):
            store, path = filesystem(self.path(name))
            store.create_dir(path, recursive=False)
        self._attempt = uuid.uuid4().hex
        _BEGUN.add(self._attempt)
        write_file(self.path(_PART_KEY), secrets.token_bytes(32))
        write_file(self.path(_ATTEMPT), self._attempt.encode())

    def remove(self) -> None:
        """Remove it with all it holds; what is not there needs no removing."""
        self._withdraw()
        remove_tree(self.root)

    def give_up(self) -> None:
        """Remove it, unless another process has made it anew meanwhile, or will."""
        with suppress(FileNotFoundError):
            if read_file(self.path(_ATTEMPT)).decode("ascii") not in _BEGUN:
                return
        self.remove()

    def _withdraw(self) -> None:
        """Move the release away in one step: who is late with it shall not publish half of it."""
        if is_local(self.root):
            with suppress(FileNotFoundError, NotADirectoryError):
                Path(self.staging).rename(f"{self.staging}.{uuid.uuid4().hex[:8]}")

    def remove_fragments(self) -> None:
        """Remove the rows that were scattered, or counted: nobody needs them once the release is
        checked. Whose rows they are stays, for the check may have to be done again."""
        remove_tree(self.path(_FRAGMENTS))
        remove_file(self.path(FREQUENCIES))

    def path(self, *parts: str) -> str:
        """The path of a working file."""
        return joined(self.root, *parts)

    def note_replaced(self, standing: str | None, made_by: str | None = None) -> None:
        """Note which release stood at the output when the run began, and who makes the new one."""
        self.write_json(_REPLACES, {"token": standing, "made_by": made_by})

    @property
    def replaced(self) -> str | None:
        """The token of the release that stood at the output when the run began, if one did."""
        token: str | None = self.read_json(_REPLACES)["token"]
        return token

    @property
    def made_by(self) -> str | None:
        """Who makes the release: a DAG, or None for the command line and Python."""
        maker: str | None = self.read_json(_REPLACES).get("made_by")
        return maker

    @property
    def staging(self) -> str:
        """The directory in which the release grows until it is published."""
        return self.path(_RELEASE)

    @property
    def token(self) -> str:
        """A text no other run, nor another attempt at this one, has; for :func:`publish`."""
        with self.there():
            token = read_file(self.path(_ATTEMPT)).decode("ascii")
        if self._attempt not in (None, token):
            raise StorageError(
                f"{shown(self.root)}: belongs to a later attempt at this run; this one is obsolete "
                "and writes nothing more"
            )
        return token

    def check_attempt(self) -> None:
        """Refuse to write into the working files of another attempt; a known one is needed."""
        if self._attempt is not None:
            self.token  # noqa: B018 - raises

    def staged(self) -> set[str]:
        """The names in :attr:`staging`, without those that are still being written."""
        with self.there():
            return {name for name in names_in(self.staging) if not name.startswith(".")}

    def part_path(self, fragment_id: int) -> str:
        """Where the release's part of a fragment goes.

        The name is the same for every try at the fragment, so that there is one part of it. It
        differs from run to run, so that a reader who listed the directory before a publication
        finds the file gone, rather than read half of either release. It is made with a key that is
        never published: neither the names nor their order tell which part is of which fragment.
        """
        key = self.read_bytes(_PART_KEY)
        self.check_attempt()  # after that: a later attempt has another key
        name = hashlib.blake2b(str(fragment_id).encode(), key=key, digest_size=8).hexdigest()
        return joined(self.staging, f"part-{name}.parquet")

    def write_persons(self, digest: str, persons: pa.ChunkedArray) -> None:
        """Keep whose row each one of a part is, for the check; it is not published.

        ``digest`` is that of the part: each try at a fragment writes its rows in another order, so
        one that ends late must not put its persons beside another's rows.
        """
        import pyarrow as pa

        self.write_arrow(_persons_name(digest), pa.table({"person": persons}))

    def read_persons(self, digest: str) -> pa.ChunkedArray:
        """What :meth:`write_persons` wrote."""
        return self.read_arrow(_persons_name(digest))["person"]

    def write_json(self, name: str, value: object) -> None:
        """Write a JSON file as a whole or not at all."""
        self.write_bytes(name, json.dumps(value, allow_nan=False).encode())

    def read_json(self, name: str) -> Any:
        """The value that :meth:`write_json` wrote."""
        with self.there():
            return json_value(self.read_bytes(name))

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a file as a whole or not at all."""
        self.check_attempt()
        with self.there():
            write_file(self.path(name), content)

    def read_bytes(self, name: str) -> bytes:
        """What :meth:`write_bytes` wrote."""
        with self.there():
            return read_file(self.path(name))

    def write_arrow(self, name: str, table: pa.Table) -> None:
        """Write a table as an Arrow IPC stream, as a whole or not at all."""
        import pyarrow.ipc as ipc

        self.check_attempt()
        with (
            self.there(),
            new_file(self.path(name)) as sink,
            ipc.new_stream(sink, table.schema) as stream,
        ):
            stream.write_table(table)

    def read_arrow(self, name: str) -> pa.Table:
        """The table that :meth:`write_arrow` wrote; if it lies here, mapped rather than copied."""
        import pyarrow as pa
        import pyarrow.ipc as ipc

        path = self.path(name)
        with self.there():
            source = pa.memory_map(path) if is_local(path) else pa.py_buffer(read_file(path))
            return ipc.open_stream(source).read_all()

    @contextmanager
    def there(self) -> Iterator[None]:
        """Turn what missing or truncated working files raise into a StorageError."""
        try:
            yield
        except (FileNotFoundError, json.JSONDecodeError):
            raise self._vanished() from None
        except OSError as error:
            if error.errno is not None:  # the machine's own error: a retry may cure it
                raise
            raise self._vanished() from None
        except ValueError as error:
            if not _is_arrows(error):
                raise
            raise self._vanished() from None

    def _vanished(self) -> StorageError:
        return StorageError(
            f"{shown(self.root)}: working files of this run vanished or are damaged, or `output` "
            "is not on storage that all workers share; see to that and run again from the "
            "partition task"
        )


def _is_arrows(error: ValueError) -> bool:
    """Whether Arrow raised it, of a file that is none of its own or truncated."""
    import pyarrow as pa

    return isinstance(error, pa.ArrowInvalid)


class FragmentWriter:
    """Routes rows to one private Arrow IPC stream per fragment.

    Small tables are gathered until a batch is worth writing; memory is bounded by
    ``FLUSH_BYTES`` per fragment. The files appear under their names only with :meth:`close`, so
    a killed scatter leaves nothing that could be taken for a fragment. Threads may share it.

    Several may scatter at once, each under a ``writer`` name of its own; the same one again
    replaces what it wrote before. Rows are read in the order of these names.
    """

    def __init__(self, work: WorkDir, writer: str = "") -> None:
        self._work = work
        self._writer = writer
        self._streams: dict[int, _Stream] = {}
        self._lock = Lock()

    def append(self, fragment_id: int, table: pa.Table) -> None:
        """Add rows to a fragment."""
        with self._work.there(), self._lock:
            stream = self._streams.get(fragment_id)
            if stream is None:
                name = f"{_fragment_prefix(fragment_id)}{self._writer}.arrow"
                stream = _Stream(self._work.path(_FRAGMENTS, name), table.schema)
                self._streams[fragment_id] = stream
            stream.append(table)

    def close(self) -> None:
        """Write what is gathered and put the files under their names; on failure, leave nothing."""
        try:
            with self._work.there(), self._lock:
                for stream in self._streams.values():
                    stream.close()
                self._work.check_attempt()
                for stream in self._streams.values():
                    stream.commit()
                self._streams.clear()
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Leave nothing of what was written."""
        for stream in self._streams.values():
            stream.abandon()

    def __enter__(self) -> FragmentWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


class _Stream:
    """An Arrow IPC stream while it is written, under a temporary name."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        import pyarrow.ipc as ipc

        self._file = NewFile(path)
        self._writer = ipc.new_stream(self._file.sink, schema)
        self._gathered: list[pa.Table] = []
        self._bytes = 0.0
        self._row_bytes = 0.0

    def append(self, table: pa.Table) -> None:
        if len(self._gathered) % _MEASURED_ONE_IN == 0:
            self._row_bytes = table.nbytes / max(1, table.num_rows)
        self._gathered.append(table)
        self._bytes += self._row_bytes * table.num_rows
        if self._bytes >= FLUSH_BYTES:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def commit(self) -> None:
        self._file.commit()

    def abandon(self) -> None:
        self._file.abandon()

    def _flush(self) -> None:
        if self._gathered:
            import pyarrow as pa

            self._writer.write_table(pa.concat_tables(self._gathered).combine_chunks())
        self._gathered.clear()
        self._bytes = 0.0


def read_fragment(work: WorkDir, fragment_id: int) -> pa.Table:
    """The rows that every :class:`FragmentWriter` routed to the fragment, writer by writer.

    A fragment to which nobody routed a row is an empty table, with the columns of the others.

    Raises:
        StorageError: no fragment is there at all, or the files are damaged.
    """
    import pyarrow as pa

    with work.there():
        found = names_in(work.path(_FRAGMENTS))
        names = sorted(name for name in found if not name.startswith("."))
        own = [name for name in names if name.startswith(_fragment_prefix(fragment_id))]
        if not names:
            raise FileNotFoundError(work.path(_FRAGMENTS))
    if not own:
        return work.read_arrow(f"{_FRAGMENTS}/{names[0]}").schema.empty_table()
    return pa.concat_tables([work.read_arrow(f"{_FRAGMENTS}/{name}") for name in own])


def _persons_name(digest: str) -> str:
    return f"{_PERSONS}{digest}.arrow"


def _fragment_prefix(fragment_id: int) -> str:
    return f"{fragment_id:05d}-"
