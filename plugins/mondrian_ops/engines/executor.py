"""The steps of the phases as Spark's executors do them: Arrow batches in, Arrow batches out.

Steps exchange messages. ``number`` is the Spark partition that a message goes to, ``part`` orders
the messages of a partition, ``kind`` tells what ``content`` is, an Arrow IPC stream or JSON. Rows
travel as whole tables, which keep their Arrow types and which the JVM does not take apart. Messages
are sent in pieces because the JVM copies each several times. A final error travels as a message.
"""

from __future__ import annotations

from mondrian_ops.engines import shipping

shipping.bootstrap()

import json  # noqa: E402 - what follows is imported from the unpacked package
from collections.abc import Callable, Iterable, Iterator  # noqa: E402
from functools import lru_cache  # noqa: E402
from operator import attrgetter  # noqa: E402
from typing import Any, NamedTuple  # noqa: E402

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

from mondrian_ops import errors  # noqa: E402
from mondrian_ops.cut.algorithms.tds import Level  # noqa: E402
from mondrian_ops.cut.anonymizer import ClassMaker  # noqa: E402
from mondrian_ops.cut.planning import LeafCounts  # noqa: E402
from mondrian_ops.cut.recoding_search import choose_recoding, two_phase  # noqa: E402
from mondrian_ops.data.disclosing_columns import Followed  # noqa: E402
from mondrian_ops.data.person_rows import PersonRows  # noqa: E402
from mondrian_ops.data.persons import LeafPersons  # noqa: E402
from mondrian_ops.data.profile import PartialProfile, Profiler  # noqa: E402
from mondrian_ops.engines import fragment  # noqa: E402
from mondrian_ops.engines.handover import Fragment  # noqa: E402
from mondrian_ops.engines.release_check import ReleaseCheck  # noqa: E402
from mondrian_ops.engines.run import Run, RunLocation  # noqa: E402
from mondrian_ops.engines.scan import Counting, Profiling, count_rows, make_draft  # noqa: E402
from mondrian_ops.lean_imports import limit_pyarrow  # noqa: E402
from mondrian_ops.tables import Split  # noqa: E402
from mondrian_ops.verify.shares import ROW_BITS  # noqa: E402

PIECES = "number int, part long, kind string, piece int, pieces int, content binary"
_SCHEMA = pa.schema(
    [
        ("number", pa.int32()),
        ("part", pa.int64()),
        ("kind", pa.string()),
        ("piece", pa.int32()),
        ("pieces", pa.int32()),
        ("content", pa.binary()),
    ]
)
_PIECE_BYTES = 4 << 20
_ERROR = "error:"
_FOLLOWED = "followed:"
_PERSON_ROWS = "person rows"
_PART = attrgetter("part")


class Message(NamedTuple):
    """A message from one step to the next; ``number``, ``part`` and ``kind`` identify it."""

    number: int
    part: int
    kind: str
    content: bytes

    @property
    def value(self) -> Any:
        """The content as JSON."""
        return json.loads(self.content)

    @property
    def table(self) -> pa.Table:
        """The content as a table."""
        return pa.ipc.open_stream(self.content).read_all()


def of_table(number: int, part: int, kind: str, table: pa.Table) -> Message:
    """A message that holds a table."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return Message(number, part, kind, sink.getvalue().to_pybytes())


def of_value(number: int, kind: str, value: Any) -> Message:
    """A message that holds a JSON value."""
    return Message(number, 0, kind, json.dumps(value, allow_nan=False).encode())


Work = Callable[[Run, Iterable[Message]], Iterator[Message]]
Batches = Iterable[pa.RecordBatch]


class Step:
    """A step as `mapInArrow` takes it; ``location`` is the JSON text of a :class:`RunLocation`."""

    def __init__(self, work: Work, location: str, class_maker: ClassMaker | None = None) -> None:
        self._work = work
        self._location = location
        self._class_maker = class_maker

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Answer the messages of one Spark partition: a batch for each piece of an answer."""
        limit_pyarrow()  # one Python process of several on the machine
        try:
            with errors.values_withheld():
                run = _run(self._location)
                run.class_maker = self._class_maker
                for answer in self._work(run, messages_of(batches)):
                    yield from pieces_of(answer)
        except errors.MondrianOpsError as error:
            kind = _ERROR + type(error).__name__
            yield from pieces_of(Message(0, 0, kind, str(error).encode()))


def pieces_of(message: Message) -> Iterator[pa.RecordBatch]:
    """The message in pieces, a row of a batch each."""
    number, part, kind, content = message
    pieces = max(1, -(-len(content) // _PIECE_BYTES))
    for piece in range(pieces):
        cut_out = content[piece * _PIECE_BYTES : (piece + 1) * _PIECE_BYTES]
        row = (number, part, kind, piece, pieces, cut_out)
        yield pa.RecordBatch.from_pylist([dict(zip(_SCHEMA.names, row, strict=True))], _SCHEMA)


def messages_of(batches: Batches) -> Iterator[Message]:
    """Join pieces, which may come in any order, to messages.

    Raises the MondrianOpsError that a message holds, and OSError where a piece is missing or
    comes twice, which Spark cures by doing the task again.
    """
    incomplete: dict[tuple[int, int, str], dict[int, bytes]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            number, part, kind, piece, pieces, content = row.values()
            arrived = incomplete.setdefault((number, part, kind), {})
            if piece in arrived:
                raise OSError(f"piece {piece} of message {(number, part, kind)} came twice")
            arrived[piece] = content
            if len(arrived) == pieces:
                del incomplete[number, part, kind]
                message = Message(number, part, kind, b"".join(arrived[at] for at in range(pieces)))
                _raise_error(message)
                yield message
    if incomplete:
        raise OSError(f"messages {sorted(incomplete)} came without some of their pieces")


def _raise_error(message: Message) -> None:
    """Raise the error that a message holds, if it holds one."""
    if message.kind.startswith(_ERROR):
        kind: type[Exception] = getattr(errors, message.kind.removeprefix(_ERROR))
        raise kind(message.content.decode())


@lru_cache(maxsize=1)
def _run(location: str) -> Run:
    """The run, kept for the next task of this worker."""
    return RunLocation.from_json(location).enter()


# Phase one: profile the splits, make a draft of all of them, count them


def profile(run: Run, splits: Iterable[Message]) -> Iterator[Message]:
    """The profile of each split, and its rows in the sample and in the pilot."""
    for message in splits:
        split = Split.from_json(message.value)
        profiling = Profiling(run.dataset, split.first_row)
        source = run.dataset.source
        profiling.scan(source.batches(profiling.columns, split=split, dictionaries=True))
        yield of_table(0, message.number, "profile", profiling.profiler.so_far().to_table())
        for name, rows in profiling.samples.items():
            if rows.taken:
                yield of_table(0, message.number, name, pa.Table.from_batches(rows.taken))


def draft(run: Run, profiles: Iterable[Message]) -> Iterator[Message]:
    """Decide on the profiles and samples of all splits, and save the draft."""
    dataset = run.dataset
    profiler = Profiler(
        dataset.job, dataset.source.schema, dataset.hierarchies, dataset.source.pointed
    )
    sampled: dict[str, list[Message]] = {"sample": [], "pilot": []}
    for message in profiles:
        if message.kind == "profile":  # merged as they come: together they can be far larger
            profiler.merge(PartialProfile.from_table(message.table))
        else:
            sampled[message.kind].append(message)
    if not sampled["pilot"]:
        return  # an empty Spark partition beside the one that has all messages
    sample, pilot = (_joined(messages) for messages in sampled.values())
    frequencies = make_draft(run, profiler, sample, pilot)
    if frequencies is not None:
        run.save_frequencies(frequencies)
    yield of_value(0, "draft", run.draft.sample_rows)


def _joined(messages: Iterable[Message]) -> pa.Table:
    """The tables of messages, by part."""
    return pa.concat_tables([message.table for message in sorted(messages, key=_PART)])


def count(run: Run, splits: Iterable[Message]) -> Iterator[Message]:
    """The counts of each split by leaf of the plan."""
    for message in splits:
        counts = count_rows(run, False, Split.from_json(message.value))
        yield from messages_of_counts(message.number, counts)


def scatter(run: Run, splits: Iterable[Message]) -> Iterator[Message]:
    """As `count`; the rows of each leaf go to a file of the split's own."""
    for message in splits:
        split, writer = Split.from_json(message.value), f"{message.number:06d}"
        counts = count_rows(run, True, split, writer)
        yield from messages_of_counts(message.number, counts)


def total(run: Run, counted: Iterable[Message]) -> Iterator[Message]:
    """The counts of all splits, added up here so that the driver receives one message."""
    counts = Counting(run.anonymizer, run.draft.plan).zeros()
    is_empty = True
    for message in counted:
        add_message(counts, message)
        is_empty = False
    if not is_empty:
        yield from messages_of_counts(0, counts)


def specialize(run: Run, chosen: Iterable[Message]) -> Iterator[Message]:
    """The level that the rows of each chosen part allow by themselves; levels are small."""
    for message in chosen:
        level = two_phase(run.anonymizer).first(run.frequencies, message.value)
        yield of_table(0, message.value, "level", level.to_table())


def recode(run: Run, levels: Iterable[Message]) -> Iterator[Message]:
    """Choose the recoding, from the levels of a first phase if there are any, and save it."""
    in_order = sorted(levels, key=_PART)
    if not in_order:
        return
    of_parts = [Level.from_table(each.table) for each in in_order if each.kind == "level"]
    run.save_recoding(choose_recoding(run.anonymizer, run.frequencies, of_parts))
    yield of_value(0, "recoding", len(of_parts))


def messages_of_counts(part: int, counts: LeafCounts) -> Iterator[Message]:
    """The counts of a part as messages, for `add_message`."""
    yield of_table(0, part, "counts", table_of_counts(counts))
    for rows in counts.person_rows:
        yield of_table(0, part, _PERSON_ROWS, rows.to_table())
    for name, followed in counts.followed.items():
        yield of_table(0, part, _FOLLOWED + name, followed.to_table())


def add_message(total: LeafCounts, message: Message) -> None:
    """Add what one of `messages_of_counts` has."""
    if message.kind == "counts":
        add_counts(total, message.table)
    elif message.kind == _PERSON_ROWS:
        for rows in total.person_rows:
            rows.add(PersonRows.from_table(message.table))
    else:
        name = message.kind.removeprefix(_FOLLOWED)
        total.add_followed({name: Followed.from_table(message.table)})


def table_of_counts(counts: LeafCounts) -> pa.Table:
    """The counts above 0. ``column`` -1 holds rows by leaf; 0 and more, sensitive values by code.

    ``column`` -2 lists the persons of each leaf as codes; -3 holds rows by cell, and -4 lists the
    persons of each cell.
    """
    tables = [_counted_table(-2, met.leaf, met.person, 1) for met in counts.persons]
    tables += [_counted_table(-4, met.leaf, met.person, 1) for met in counts.cell_persons]
    (cells,) = np.nonzero(counts.cells)
    tables.append(_counted_table(-3, cells, np.zeros_like(cells), counts.cells[cells]))
    for column, by_leaf in enumerate([counts.rows[:, None], *counts.sensitive], -1):
        leaf, code = np.nonzero(by_leaf)
        tables.append(_counted_table(column, leaf, code, by_leaf[leaf, code]))
    return pa.concat_tables(tables)


def _counted_table(column: int, leaf: Any, code: Any, count: Any) -> pa.Table:
    constant = np.zeros(len(leaf), np.int64)
    return pa.table(
        {"column": constant + column, "leaf": leaf, "code": code, "count": constant + count}
    )


def add_counts(total: LeafCounts, table: pa.Table) -> None:
    """Add what `table_of_counts` gave."""
    column, leaf, code, count_of = (each.to_numpy() for each in table.columns)
    for number, by_leaf in enumerate([total.rows[:, None], *total.sensitive], -1):
        here = column == number
        by_leaf[leaf[here], code[here]] += count_of[here]
    here = column == -3
    total.cells[leaf[here]] += count_of[here]
    in_leaves, in_cells = (
        [LeafPersons(met.enough, leaf[column == number], code[column == number]) for met in persons]
        for number, persons in ((-2, total.persons), (-4, total.cell_persons))
    )
    total.add_persons(in_leaves, in_cells)


# Phase two: fragments fetched from files, or routed here by Spark's shuffle


def anonymize(run: Run, chosen: Iterable[Message]) -> Iterator[Message]:
    """Fetch each fragment, anonymize it and write its part."""
    for message in chosen:
        summary = fragment.anonymize(run, Fragment.from_dict(message.value))
        yield of_value(0, "summary", summary.to_dict())


def route(run: Run, splits: Iterable[Message]) -> Iterator[Message]:
    """Send the rows of each split to the Spark partition with the number of their fragment.

    Parts are numbered by leaf, then by row, so that rows arrive in the order of scattered ones.
    """
    fragment_of = {
        leaf: number for number, leaves in enumerate(run.state.leaves) for leaf in leaves
    }
    counting = Counting(run.anonymizer, run.draft.plan, run.columns)
    for message in splits:
        split = Split.from_json(message.value)
        batches = counting.batches(run.dataset.source, split)
        for block in counting.blocks(batches, split.first_row):
            _, by_leaf = counting.count(block)
            for leaf, rows in by_leaf:
                part = leaf << ROW_BITS | block.first_row
                yield of_table(fragment_of[leaf], part, "rows", rows)


def release(run: Run, routed: Iterable[Message]) -> Iterator[Message]:
    """Anonymize the one fragment whose rows were routed to this Spark partition."""
    parts = list(routed)
    if parts:
        chosen = run.state.fragments[parts[0].number]
        yield of_value(0, "summary", fragment.anonymize(run, chosen, _joined(parts)).to_dict())


# Phase three: the release as written, part by part, then bucket by bucket. `check` is the name of
# the check in the working files.


def count_values(check: str, run: Run, parts: Iterable[Message]) -> Iterator[Message]:
    """The sensitive values of each part."""
    for message in parts:
        for table in ReleaseCheck.load(run.work, check).values(run.work, message.value):
            yield of_table(0, message.value, "values", table)


def add_values(check: str, run: Run, values: Iterable[Message]) -> Iterator[Message]:
    """Add up the sensitive values of all parts, and save them; how many parts have some.

    Raises OSError, which a retry may cure, if those of a part came twice.
    """
    in_order = sorted(values, key=_PART)
    if not in_order:
        return
    if len({message.part for message in in_order}) < len(in_order):
        raise OSError("the values of a part came twice")
    tables = (message.table for message in in_order)
    run.work.write_arrow(_values_name(check), ReleaseCheck.load(run.work, check).total(tables))
    yield of_value(0, "values", {"parts_with_values": len(in_order)})


def count_parts(check: str, run: Run, parts: Iterable[Message]) -> Iterator[Message]:
    """Send the classes of each part to their buckets, and its head to the bucket after these."""
    for message in parts:
        loaded = ReleaseCheck.load(run.work, check)
        labels = run.labels if loaded.measures_losses else {}
        for bucket, table in loaded.count(run.work, message.value, labels):
            yield of_table(bucket, message.value, "counts", table)


def join_parts(check: str, run: Run, counted: Iterable[Message]) -> Iterator[Message]:
    """Measure the classes of a bucket, or join the heads of all parts."""
    in_order = sorted(counted, key=_PART)
    if not in_order:
        return
    loaded, bucket = ReleaseCheck.load(run.work, check), in_order[0].number
    tables = ((message.part, message.table) for message in in_order)
    if bucket == loaded.buckets:
        yield of_value(bucket, "heads", loaded.join_heads(tables))
        return
    needs_values = loaded.job.compares_with_whole
    values = run.work.read_arrow(_values_name(check)) if needs_values else None
    yield of_value(bucket, "classes", loaded.join_shares(bucket, tables, values))


def _values_name(check: str) -> str:
    return f"{check}-values.arrow"
