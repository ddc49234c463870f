"""The rows of a run's fragments, scattered into its working files."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from mondrian_ops.publish.workdir import FRAGMENTS, WorkDir
from mondrian_ops.stores.files import names_in
from mondrian_ops.stores.store import store_of

if TYPE_CHECKING:
    import pyarrow as pa

FLUSH_BYTES = 1 << 20
_GATHERED_BYTES = 32 << 20  # by all fragments together
# Counting the bytes of a table takes Arrow longer than gathering it, so one in so many is measured.
_MEASURED_ONE_IN = 16


class FragmentWriter:
    """Routes rows to one private Arrow IPC stream per fragment.

    Small tables are gathered until a batch is worth writing: ``FLUSH_BYTES``, or less where there
    are many fragments.
    The files appear under their names only with :meth:`close`, so a killed scatter leaves nothing
    that could pass for a fragment. Threads may share a writer.

    Several writers may scatter at once, each under a name of its own (``writer``); one that writes
    again under its name replaces what it wrote. Rows are read in the order of the writers' names.
    """

    def __init__(self, work: WorkDir, writer: str = "") -> None:
        self._work = work
        self._writer = writer
        self._streams: dict[int, _Stream] = {}
        self._lock = Lock()

    def append(self, fragment_id: int, table: pa.Table) -> None:
        """Add rows to a fragment."""
        with self._work.vanished_as_error(), self._lock:
            stream = self._streams.get(fragment_id)
            if stream is None:
                name = f"{_prefix(fragment_id)}{self._writer}.arrow"
                stream = _Stream(self._work.path(FRAGMENTS, name), table.schema)
                self._streams[fragment_id] = stream
            stream.append(table, min(FLUSH_BYTES, _GATHERED_BYTES // len(self._streams)))

    def close(self) -> None:
        """Write the gathered tables and name the files; on failure, leave nothing."""
        try:
            with self._work.vanished_as_error(), self._lock:
                for stream in self._streams.values():
                    stream.close()
                self._work.check_attempt()
                for stream in self._streams.values():
                    stream.file.commit()
                self._streams.clear()
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Drop what was written."""
        for stream in self._streams.values():
            stream.file.abandon()

    def __enter__(self) -> FragmentWriter:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()


class _Stream:
    """An Arrow IPC stream that is being written, under a temporary name."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        import pyarrow.ipc as ipc

        self.file = store_of(path).new_file(path)
        self._writer = ipc.new_stream(self.file.sink, schema)
        self._gathered: list[pa.Table] = []
        self._bytes = 0.0
        self._row_bytes = 0.0

    def append(self, table: pa.Table, worth_writing: int) -> None:
        if len(self._gathered) % _MEASURED_ONE_IN == 0:
            self._row_bytes = table.nbytes / max(1, table.num_rows)
        self._gathered.append(table)
        self._bytes += self._row_bytes * table.num_rows
        if self._bytes >= worth_writing:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._gathered:
            import pyarrow as pa

            self._writer.write_table(pa.concat_tables(self._gathered).combine_chunks())
        self._gathered.clear()
        self._bytes = 0.0


def read_fragment(work: WorkDir, fragment_id: int) -> pa.Table:
    """The rows that all writers routed to a fragment, writer by writer.

    A fragment without rows is an empty table, with the columns of the others.

    Raises:
        StorageError: there is no fragment at all, or the files are damaged.
    """
    import pyarrow as pa

    with work.vanished_as_error():
        names = sorted(n for n in names_in(work.path(FRAGMENTS)) if not n.startswith("."))
        if not names:
            raise FileNotFoundError(work.path(FRAGMENTS))
    own = [name for name in names if name.startswith(_prefix(fragment_id))]
    if not own:
        return work.read_arrow(f"{FRAGMENTS}/{names[0]}").schema.empty_table()
    return pa.concat_tables([work.read_arrow(f"{FRAGMENTS}/{name}") for name in own])


def _prefix(fragment_id: int) -> str:
    return f"{fragment_id:05d}-"
