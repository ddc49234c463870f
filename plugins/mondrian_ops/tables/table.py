"""What is read as one table of rows, in batches: the class of which each kind of table is one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mondrian_ops.data.column_types import declared_fields
from mondrian_ops.errors import InputError, JobError, did_you_mean
from mondrian_ops.late_methods import dataclass
from mondrian_ops.stores.locations import shown
from mondrian_ops.tables.batch_sizes import BATCH_ROWS, joined

if TYPE_CHECKING:
    from typing import Self

    import pyarrow.compute as pc

    from mondrian_ops.cut.plan import Order, Plan

_SMALL_PART_ROWS = 4096


@dataclass(frozen=True)
class Split:
    """Consecutive rows of a table that can be read on their own.

    Attributes:
        part: which of the table's parts.
        first_row: number of the first row, over the whole table.
        rows: how many rows.
        pieces: ``[start, stop)`` among the part's pieces; None for the whole part.
    """

    part: int
    first_row: int
    rows: int
    pieces: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """A small JSON value."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Split:
        """The split that :meth:`to_json` wrote."""
        pieces = value["pieces"]
        return cls(value["part"], value["first_row"], value["rows"], pieces and tuple(pieces))


@dataclass(frozen=True, kw_only=True)
class Table(ABC):
    """A table whose rows are read in batches, always in the same order.

    It consists of parts, such as files, and a part of pieces, such as row groups of Parquet; each
    can be read on its own. A kind of table has :meth:`read` and :meth:`changed`; one that an entry
    point names, chosen by the scheme of a job's ``input``, :meth:`open` as well. The other methods
    rest on these, and a kind that knows a faster way overrides them.

    Attributes:
        url: as the job gives it; empty for a table in memory.
        schema: columns and plain types, the same in every batch; no metadata.
        sizes: by part, the exact numbers of rows of its pieces; at least one part.
        index: columns that are a pandas index and no part of the data; not in ``schema``.
        declared: the columns whose type at their place is not plain, such as a UUID, in that type.
        types: by column, the type that the job names, or that was found where none is declared.
        empty: columns without any value, where types are found from values; None where the table
            declares its types.
        read_as: how the table is read, as a report shows it; at least its ``format``.
        copy: the same rows in one working file, without columns that the job does not need.
    """

    url: str
    schema: pa.Schema
    sizes: Sequence[tuple[int, ...]] = field(repr=False)
    index: tuple[str, ...] = ()
    declared: pa.Schema = field(default_factory=lambda: pa.schema([]), repr=False)
    types: Mapping[str, str] = field(default_factory=dict)
    empty: tuple[str, ...] | None = None
    read_as: Mapping[str, Any] = field(default_factory=dict)
    copy: Table | None = field(default=None, repr=False)

    @classmethod
    def open(cls, url: str) -> Self:
        """The table at a location with the scheme of the entry point that names this class.

        The access policy has allowed the location, as it stands there, before.

        Raises:
            InputError: there is no such table, or it cannot be reached.
        """
        raise InputError(f"{shown(url)}: a {cls.__name__} has no location; give the files")

    @abstractmethod
    def read(
        self,
        part: int,
        columns: Sequence[str],
        pieces: Sequence[int] | None,
        batch_rows: int,
        dictionaries: bool,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a part, in their order, a bounded number in memory at a time.

        Args:
            part: its number, from 0.
            columns: those to read, at least one, in this order and in their types in ``schema``.
            pieces: numbers of consecutive pieces of the part, from 0; None for all.
            batch_rows: the number of rows that suits the caller; larger batches are cut.
            dictionaries: whether text may come as dictionaries.

        Raises:
            InputError: the rows cannot be read.
        """

    @abstractmethod
    def changed(self, part: int | None = None) -> str | None:
        """The location that changed since the table was opened; None if its rows are the same.

        With ``part`` only that one is looked at; else additions and removals count, too.
        """

    def filtered(
        self,
        part: int,
        columns: Sequence[str],
        keep: pc.Expression | None,
        pieces: Sequence[int] | None,
        batch_rows: int,
        dictionaries: bool,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of :meth:`read` for which ``keep`` is true.

        ``keep`` may use other columns than ``columns``. Override it where rows can be skipped.
        """
        needed = [*columns]
        if keep is not None:  # its text names the columns of the filter
            needed += [name for name in self.schema.names if name in str(keep)]
            needed = list(dict.fromkeys(needed))
        needed = needed or self.schema.names[:1]  # to count the rows
        for batch in self.read(part, needed, pieces, batch_rows, dictionaries):
            rows = (batch if keep is None else batch.filter(keep)).select(columns)
            for first in range(0, rows.num_rows, batch_rows):
                yield rows.slice(first, batch_rows)

    def watch(self) -> Callable[[int, pa.RecordBatch], Any] | None:
        """What is called with each part and batch of one reading, and raises beyond a limit."""
        return None

    @property
    def locations(self) -> Sequence[str]:
        """The locations where the rows lie, to each of which policies are applied."""
        return [self.url]

    def rows_read(self, plan: Plan, orders: Mapping[str, Order]) -> Iterator[dict[int, int]]:
        """For each part, the rows that a reader of each leaf of a plan has to decode.

        Leaves that have none of the part's are left out. Without statistics, it is all rows.
        """
        yield from (dict.fromkeys(range(plan.leaves), sum(sizes)) for sizes in self.sizes)

    @cached_property
    def rows(self) -> int:
        """Exact number of rows."""
        return sum(map(sum, self.sizes))

    @property
    def pointed(self) -> list[str]:
        """The columns whose whole numbers are written ``70.0``."""
        return [name for name, kind in self.types.items() if kind == "float"]

    def batches(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's own name for it
        batch_rows: int = BATCH_ROWS,
        exact: pc.Expression | None = None,
        split: Split | None = None,
        parts: Sequence[int] | None = None,
        dictionaries: bool = False,
        lists: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """The rows, in the order of the parts, a bounded number in memory at a time.

        Args:
            columns: names to read, in this order; all of them when None.
            filter: rows to keep; Parquet row groups that cannot hold any are not read.
            batch_rows: the most rows of a batch.
            exact: a further filter, applied to the columns that were read, for conditions on NaN,
                which the statistics of row groups ignore.
            split: read only this part of the table.
            parts: read only these of the table's parts. Of parts that are named so, or by
                ``split``, each is asked whether it changed.
            lists: look at the whole table after the last batch, to notice a change. False where
                the caller uses :meth:`unchanged`.
            dictionaries: text may come as dictionaries from files that store it so: several times
                as fast for a caller that looks at each value once.

        Raises:
            InputError: a column is unknown, a file is damaged, the table changed meanwhile, or
                a value is beyond one of the limits ``parquet_page``, ``text`` and ``inflation``.
            JobError: the access policy does not let jobs read a file.
        """
        names = (self.schema if columns is None else self._select(columns)).names
        if self.rows < len(self.sizes) * _SMALL_PART_ROWS and len(self.sizes) > 1:
            dictionaries = False  # dictionaries of many small files take longer to unify
        chosen = parts if split is None else [split.part]
        pieces = None if split is None or split.pieces is None else range(*split.pieces)
        one_by_one = self._one_by_one(
            chosen, names, filter, pieces, batch_rows, exact, dictionaries
        )
        yield from joined(one_by_one, batch_rows)
        if chosen is None and lists:
            self.refuse_change()

    def _one_by_one(
        self,
        chosen: Sequence[int] | None,
        names: Sequence[str],
        keep: pc.Expression | None,
        pieces: Sequence[int] | None,
        batch_rows: int,
        exact: pc.Expression | None,
        dictionaries: bool,
    ) -> Iterator[pa.RecordBatch]:
        """The batches as they come from each part; see :meth:`batches`."""
        watch, part = self.watch(), None
        try:
            for part in range(len(self.sizes)) if chosen is None else chosen:
                for batch in self.filtered(part, names, keep, pieces, batch_rows, dictionaries):
                    if watch is not None:
                        watch(part, batch)
                    if exact is not None:
                        batch = batch.filter(exact)
                    if batch.num_rows:
                        yield batch
                if chosen is not None:
                    self.refuse_change(part)
        except JobError:  # forbidden, even if the table changed too
            raise
        except Exception:
            self.refuse_change(None if chosen is None else part)  # a change explains the error
            raise

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise InputError, as :meth:`refuse_change` does, if the table changes meanwhile.

        If the table changed, that is raised in place of any other error.
        """
        try:
            yield
        except Exception:
            self.refuse_change()
            raise
        self.refuse_change()

    def refuse_change(self, part: int | None = None) -> None:
        """Raise InputError, which names it, if something was added, removed or changed.

        Several tasks read the table one after the other, long after it was opened. ``part`` as for
        :meth:`changed`.
        """
        changed = self.changed(part)
        if changed is not None:
            raise InputError(
                f"{shown(changed)}: changed while it was read; run again from the "
                "partition task when its writer is done"
            )

    def splits(self, rows: int) -> list[Split]:
        """The table as consecutive splits of about ``rows`` rows, none of them empty.

        A split is some pieces of one part, or a part that is one piece, however long it is.
        """
        splits: list[Split] = []
        first_row = 0
        for part, sizes in enumerate(self.sizes):
            for first, last in _runs(sizes, rows):
                size = sum(sizes[first:last])
                if size:
                    pieces = None if len(sizes) == 1 else (first, last)
                    splits.append(Split(part, first_row, size, pieces))
                first_row += size
        return splits

    def to_json(self) -> dict[str, Any]:
        """A JSON value from which another process has the table, without inspecting it again.

        Fields that a kind of table adds have to be JSON values themselves.
        """
        value = {each.name: getattr(self, each.name) for each in fields(self)}
        of_pyarrow = {"schema": hex_of(self.schema), "declared": hex_of(self.declared)}
        return value | of_pyarrow | {"copy": None}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The table of :meth:`to_json`; a change since then is noticed when it is read."""
        decoded = {
            "schema": of_hex(value["schema"]),
            "declared": pa.schema(declared_fields(of_hex(value["declared"]))),
            "empty": None if value["empty"] is None else tuple(value["empty"]),
            "sizes": [tuple(sizes) for sizes in value["sizes"]],
            "index": tuple(value["index"]),
        }
        return cls(**{**value, **decoded})

    def _select(self, columns: Sequence[str]) -> pa.Schema:
        names = dict.fromkeys(self.schema.names)
        for name in columns:
            if name not in names:
                raise InputError(
                    f"{shown(self.url)}: no column {name!r}{did_you_mean(name, names)}; it has "
                    f"{', '.join(map(repr, list(names)[:20]))}"
                )
        return pa.schema([self.schema.field(name) for name in columns])


def hex_of(schema: pa.Schema) -> str:
    """A schema as text."""
    return bytes(schema.serialize().to_pybytes()).hex()


def of_hex(text: str) -> pa.Schema:
    """The schema that :func:`hex_of` wrote."""
    return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(text)))


def _runs(sizes: Sequence[int], wanted: int) -> Iterator[tuple[int, int]]:
    """``[start, stop)`` of consecutive ``sizes`` that sum to ``wanted`` at most, or of one."""
    first, gathered = 0, 0
    for number, size in enumerate(sizes):
        if number > first and gathered + size > wanted:
            yield first, number
            first, gathered = number, 0
        gathered += size
    if sizes:
        yield first, len(sizes)
