"""What Spark's executors do: the steps of the phases, Arrow batches in and Arrow batches out.

Between the steps there are messages: ``number`` is the Spark partition that one is for, ``part``
orders the messages of a partition, ``kind`` tells what ``content`` is, an Arrow IPC stream or JSON.
Rows of the dataset travel in whole tables, so that their Arrow types stay what they were and no
row is ever taken apart by the JVM. It sees pieces of messages, for of each it makes several copies.
An error that is final travels as a message of its own.
"""

from __future__ import annotations

from mondrian_ops.engines import shipping

shipping.bootstrap()

import json  # noqa: E402 - what follows is imported from the unpacked package
from collections.abc import Callable, Iterable, Iterator  # noqa: E402
from functools import lru_cache  # noqa: E402
from typing import Any, NamedTuple  # noqa: E402

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

from mondrian_ops import storage  # noqa: E402
from mondrian_ops.algorithms import planning  # noqa: E402
from mondrian_ops.algorithms.planning import LeafCounts  # noqa: E402
from mondrian_ops.algorithms.recoding import choose_recoding, first_phase  # noqa: E402
from mondrian_ops.algorithms.specialization import Level  # noqa: E402
from mondrian_ops.core import errors  # noqa: E402
from mondrian_ops.core.entities import LeafEntities  # noqa: E402
from mondrian_ops.core.profile import PartialProfile, Profiler  # noqa: E402
from mondrian_ops.engines import fragment  # noqa: E402
from mondrian_ops.engines.counting import Counting  # noqa: E402
from mondrian_ops.engines.handover import Fragment  # noqa: E402
from mondrian_ops.engines.profiling import Profiling  # noqa: E402
from mondrian_ops.engines.run import Run, RunLocation  # noqa: E402
from mondrian_ops.storage import Split  # noqa: E402

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
_ROW_BITS = 44  # of a message's part, for the number of its first row


class Message(NamedTuple):
    """What one step tells the next; one of several pieces has no twin but in its content."""

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

    def __init__(self, work: Work, location: str) -> None:
        self._work = work
        self._location = location

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Answer the messages of one Spark partition, a batch for each piece of an answer."""
        try:
            with errors.values_withheld():
                for answer in self._work(_run(self._location), messages_of(batches)):
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
    """The messages whose pieces come, in any order.

    :raises MondrianOpsError: the one that a message holds.
    :raises RuntimeError: of a message in several pieces one is missing, or there twice; a task done
        again brings it.
    """
    incomplete: dict[tuple[int, int, str], dict[int, bytes]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            number, part, kind, piece, pieces, content = row.values()
            arrived = incomplete.setdefault((number, part, kind), {})
            if piece in arrived:
                raise RuntimeError(
                    f"piece {piece} of message {(number, part, kind)} is there twice"
                )
            arrived[piece] = content
            if len(arrived) == pieces:
                del incomplete[number, part, kind]
                message = Message(number, part, kind, b"".join(arrived[at] for at in range(pieces)))
                _raise_error(message)
                yield message
    if incomplete:
        raise RuntimeError(f"messages {sorted(incomplete)} came without some of their pieces")


def _raise_error(message: Message) -> None:
    if message.kind.startswith(_ERROR):
        kind: type[Exception] = getattr(errors, message.kind.removeprefix(_ERROR))
        raise kind(message.content.decode())


@lru_cache(maxsize=1)
def _run(location: str) -> Run:
    """The run, kept for the next task of this worker."""
    return RunLocation.from_json(location).enter()


# Phase one: profile the splits, make a draft of all of them, count them


def survey(run: Run, splits: Iterable[Message]) -> Iterator[Message]:
    """What each split holds, and the rows of it that are in the sample and in the pilot."""
    for message in splits:
        split = Split.from_json(message.value)
        profiling = Profiling(run.dataset, split.first_row)
        batches = run.dataset.source.batches(profiling.columns, split=split, dictionaries=True)
        for batch in batches:
            profiling.take(*profiling.look(batch))
        yield of_table(0, message.number, "survey", profiling.profiler.so_far().to_table())
        for name, draw in profiling.draws.items():
            if draw.taken:
                yield of_table(0, message.number, name, pa.Table.from_batches(draw.taken))


def draft(run: Run, surveys: Iterable[Message]) -> Iterator[Message]:
    """Decide on all that the splits hold; the draft goes to the working files."""
    dataset = run.dataset
    profiler = Profiler(dataset.job, dataset.source.schema, dataset.hierarchies)
    drawn: dict[str, list[Message]] = {"sample": [], "pilot": []}
    for message in surveys:
        if message.kind == "survey":  # together they can be far more than what they come to
            profiler.merge(PartialProfile.from_table(message.table))
        else:
            drawn[message.kind].append(message)
    if not drawn["pilot"]:
        return  # a partition without work: there is one that has it
    sample, pilot = (
        pa.concat_tables([each.table for each in sorted(drawn[kind], key=lambda each: each.part)])
        for kind in ("sample", "pilot")
    )
    run.save_draft(
        planning.draft(
            dataset.job, profiler.finish(), dataset.hierarchies, sample, pilot, dataset.slots
        )
    )
    if profiler.combinations is not None:
        run.save_frequencies(run.anonymizer.frequencies(profiler.combinations))
    yield of_value(0, "draft", run.draft.sample_rows)


def count(run: Run, splits: Iterable[Message]) -> Iterator[Message]:
    """What each split holds in each leaf of the plan."""
    for message in splits:
        yield from _counted(run, Counting(run.anonymizer, run.draft.plan), message, None)


def scatter(run: Run, splits: Iterable[Message]) -> Iterator[Message]:
    """As `count`; the rows of each leaf go to a file of the split's own."""
    for message in splits:
        with storage.FragmentWriter(run.work, f"{message.number:06d}") as writer:
            counting = Counting(run.anonymizer, run.draft.plan, run.columns)
            yield from _counted(run, counting, message, writer)


def total(run: Run, counted: Iterable[Message]) -> Iterator[Message]:
    """What all splits hold: nobody else has to see the counts of each."""
    counts = Counting(run.anonymizer, run.draft.plan).zeros()
    nothing = True
    for message in counted:
        add_counts(counts, message.table)
        nothing = False
    if nothing:
        return
    yield of_table(0, 0, "counts", table_of_counts(counts))


def specialize(run: Run, chosen: Iterable[Message]) -> Iterator[Message]:
    """What the rows of each chosen part by themselves allow; the levels are small."""
    for message in chosen:
        level = first_phase(run.anonymizer, run.frequencies, message.value)
        yield of_table(0, message.value, "level", level.to_table())


def recode(run: Run, levels: Iterable[Message]) -> Iterator[Message]:
    """Decide what the values of each column become; that goes to the working files, too."""
    in_order = sorted(levels, key=lambda message: message.part)
    if not in_order:
        return
    of_parts = [Level.from_table(each.table) for each in in_order if each.kind == "level"]
    run.save_recoding(choose_recoding(run.anonymizer, run.frequencies, of_parts))
    yield of_value(0, "recoding", len(of_parts))


def _counted(
    run: Run, counting: Counting, message: Message, writer: storage.FragmentWriter | None
) -> Iterator[Message]:
    counts = counting.zeros()
    for counted, routed in _split_counted(run, counting, message, writer is None):
        counts.add(counted)
        if writer is not None:
            for leaf, rows in routed:
                writer.append(leaf, rows)
    yield of_table(0, message.number, "counts", table_of_counts(counts))


def _split_counted(
    run: Run, counting: Counting, message: Message, dictionaries: bool
) -> Iterator[tuple[LeafCounts, list[tuple[int, pa.Table]]]]:
    source = run.dataset.source
    columns = counting.columns(source.schema.names)
    split = Split.from_json(message.value)
    for batch in source.batches(columns, split=split, dictionaries=dictionaries):
        yield counting.count(batch)


def table_of_counts(counts: LeafCounts) -> pa.Table:
    """Counts that are not 0: ``column`` -1 counts rows, others sensitive values by code.

    ``column`` -2 lists persons as codes. -3 counts rows in cells, -4 lists the persons in them.
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
        [
            LeafEntities(met.enough, leaf[column == number], code[column == number])
            for met in persons
        ]
        for number, persons in ((-2, total.persons), (-4, total.cell_persons))
    )
    total.meet(in_leaves, in_cells)


# Phase two: fragments that are fetched from files, or routed to by Spark's shuffle


def anonymize(run: Run, chosen: Iterable[Message]) -> Iterator[Message]:
    """Fetch each fragment, anonymize it and write its part."""
    for message in chosen:
        summary = fragment.anonymize(run, Fragment.from_dict(message.value))
        yield of_value(0, "summary", summary.to_dict())


def route(run: Run, splits: Iterable[Message]) -> Iterator[Message]:
    """The rows of each split for each fragment, batch by batch, for the Spark partition of that
    number. Leaf after leaf, as scattered rows are read."""
    fragment_of = {
        leaf: number for number, leaves in enumerate(run.state.leaves) for leaf in leaves
    }
    counting = Counting(run.anonymizer, run.draft.plan, run.columns)
    for message in splits:
        row = Split.from_json(message.value).first_row
        for counted, by_leaf in _split_counted(run, counting, message, False):
            for leaf, rows in by_leaf:
                yield of_table(fragment_of[leaf], leaf << _ROW_BITS | row, "rows", rows)
            row += int(counted.rows.sum())


def release(run: Run, routed: Iterable[Message]) -> Iterator[Message]:
    """Anonymize the one fragment whose rows were routed to this Spark partition."""
    parts = sorted(routed, key=lambda each: each.part)
    if not parts:
        return
    rows = pa.concat_tables([each.table for each in parts])
    summary = fragment.anonymize(run, run.state.fragments[parts[0].number], rows)
    yield of_value(0, "summary", summary.to_dict())
