"""What travels between the steps on a cluster, and the limits that executors are held to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.samples import table
from hypothesis_profiles import examples
from limited_runs import limited_run
from mondrian_ops import errors, publish, stores
from mondrian_ops.cut.planning import LeafCounts
from mondrian_ops.data.disclosing_columns import Watch
from mondrian_ops.data.person_rows import PersonRows
from mondrian_ops.data.persons import LeafPersons
from mondrian_ops.engines import executor
from mondrian_ops.engines.executor import Message, Step
from mondrian_ops.engines.run import RunLocation
from mondrian_ops.errors import JobError
from mondrian_ops.job import limits as resource_limits


@st.composite
def leaf_counts(draw: st.DrawFn) -> LeafCounts:
    leaves = draw(st.integers(1, 5))
    numbers = st.sampled_from([0, 0, 1, 7, 2**40])

    def drawn(*shape: int) -> np.ndarray:
        size = int(np.prod(shape))
        values = draw(st.lists(numbers, min_size=size, max_size=size))
        return np.array(values, np.int64).reshape(shape)

    widths = draw(st.lists(st.integers(1, 4), max_size=3))
    cells = draw(st.integers(0, 9))
    counts_persons = draw(st.booleans())

    def persons(leaves: int) -> list[LeafPersons]:
        if not counts_persons or not leaves:
            return []
        pairs = draw(st.sets(st.tuples(st.integers(0, leaves - 1), st.integers(-9, 9)), max_size=9))
        leaf, person = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
        return [LeafPersons.nobody(3).added([LeafPersons(3, leaf, person)])]

    return LeafCounts(
        drawn(leaves),
        [drawn(leaves, width) for width in widths],
        persons(leaves),
        drawn(cells),
        persons(cells),
    )


@given(leaf_counts(), st.integers(1, 3))
def test_counts_as_a_table(counts: LeafCounts, times: int) -> None:
    total = LeafCounts(
        np.zeros_like(counts.rows),
        [np.zeros_like(each) for each in counts.sensitive],
        [LeafPersons.nobody(3) for _ in counts.persons],
        np.zeros_like(counts.cells),
        [LeafPersons.nobody(3) for _ in counts.cell_persons],
    )
    message = executor.of_table(0, 0, "counts", executor.table_of_counts(counts))
    for _ in range(times):
        executor.add_counts(total, message.table)
    assert total.rows.tolist() == (times * counts.rows).tolist()
    for sums, expected in zip(total.sensitive, counts.sensitive, strict=True):
        assert sums.tolist() == (times * expected).tolist()
    assert total.cells.tolist() == (times * counts.cells).tolist()
    for met, as_sent in (
        (total.persons, counts.persons),
        (total.cell_persons, counts.cell_persons),
    ):
        assert [each.leaf.tolist() for each in met] == [each.leaf.tolist() for each in as_sent]
        assert [each.person.tolist() for each in met] == [each.person.tolist() for each in as_sent]


def test_values_that_are_followed_travel_with_the_counts() -> None:
    values = pa.array(["a", None, "c"])
    watch = Watch("c", values, [1, 1, 1], {"q": 0.5}, alone=True, fewer_than=2)
    rows = {"c": ["a", "b", None, "a"], "q": [1, 2, 3, 4], "who": ["x", "x", "y", "z"]}
    followed = watch.follow(pa.record_batch(rows), 7, "who")
    counts = LeafCounts(np.array([4]), [], followed={"c": followed})
    total = LeafCounts(np.array([0]), [])
    for part in range(2):
        for message in executor.messages_of_counts(part, counts):
            executor.add_message(total, message)
    assert total.rows.tolist() == [8]
    assert total.followed["c"].rows.tolist() == [4, 2, 0]
    assert sorted(total.followed["c"].kept["0"].to_pylist()) == [1, 1, 3, 3, 4, 4]
    assert np.bincount(total.followed["c"].persons.leaf).tolist() == [2, 1]


def test_rows_of_persons_travel_with_the_counts() -> None:
    total = LeafCounts(np.array([0]), [], person_rows=[PersonRows(1)])
    for part in range(2):
        rows = PersonRows.of(*np.array([[0, 0], [5, 5 + part], [7, 8]]), [np.array([1, 2])])
        counts = LeafCounts(np.array([2]), [], person_rows=[rows])
        for message in executor.messages_of_counts(part, counts):
            executor.add_message(total, message)
    assert total.rows.tolist() == [4]
    known = total.person_rows[0].within([0])
    assert (known.persons.tolist(), known.codes[0].tolist()) == ([0, 0, 0, 1], [1, 2, 1, 2])


def test_rows_of_every_type() -> None:
    sent = table()
    (piece,) = executor.pieces_of(executor.of_table(3, 2**40, "rows", sent))
    (arrived,) = executor.messages_of([piece])
    assert (arrived.number, arrived.part, arrived.kind) == (3, 2**40, "rows")
    assert arrived.table.schema.equals(sent.schema)
    assert texts(arrived.table) == texts(sent)


def texts(rows: pa.Table) -> str:
    """All values; NaN is not equal to NaN, and only pandas converts single nanoseconds."""
    numbers = rows["nanoseconds"].cast(pa.int64())
    return str(rows.drop(["nanoseconds"]).append_column("nanoseconds", numbers).to_pylist())


@examples(10)
@given(st.permutations(range(10)))
def test_large_messages_come_in_small_pieces_in_any_order(order: list[int]) -> None:
    sent = [
        Message(number, part, kind, bytes([number, part]) * (9 << 20 >> 1))
        for number, part, kind in ((0, 1, "sample"), (0, 2, "sample"), (0, 1, "profile"))
    ]
    sent.append(Message(0, 1, "counts", b""))
    pieces = [piece for message in sent for piece in executor.pieces_of(message)]
    assert len(pieces) == 10
    assert max(piece.nbytes for piece in pieces) < 5 << 20
    assert sorted(executor.messages_of(pieces[at] for at in order)) == sorted(sent)


@pytest.mark.parametrize(("arrived", "error"), [([0, 1], "without some"), ([0, 1, 1], "twice")])
def test_no_piece_is_missing_or_comes_twice(arrived: list[int], error: str) -> None:
    pieces = list(executor.pieces_of(Message(0, 1, "sample", bytes(9 << 20))))
    with pytest.raises(OSError, match=error):
        list(executor.messages_of(pieces[at] for at in arrived))


RUN = '{"attempt": "a", "storage": {}, "allowed": null, "limits": {}, "work": "/nowhere"}'


FINAL = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.MondrianOpsError)
]


@pytest.mark.parametrize("kind", FINAL)
def test_an_error_that_is_final_is_raised_where_it_arrives(
    kind: type[errors.MondrianOpsError],
) -> None:

    def work(_run: object, _messages: object) -> None:
        raise kind("column 'x': ö")

    (batch,) = Step(work, RUN)([])
    with pytest.raises(kind, match="column 'x': ö") as caught:
        list(executor.messages_of([batch]))
    assert type(caught.value) is kind
    (again,) = Step(lambda _run, messages: iter(messages), RUN)([batch])  # the step after it
    assert again.equals(batch)


def test_an_error_that_nobody_foresaw_is_left_to_spark() -> None:
    def work(_run: object, _messages: object) -> None:
        raise OSError(28, "no space left")

    with pytest.raises(OSError, match="no space left"):
        list(Step(work, RUN)([]))


def test_arrow_has_few_threads_in_a_process_of_spark() -> None:
    """Of which a machine has one for each core that Spark uses."""
    threads = pa.cpu_count()
    pa.set_cpu_count(64)
    try:
        list(Step(lambda _run, messages: iter(messages), RUN)([]))
        assert pa.cpu_count() <= 2
    finally:
        pa.set_cpu_count(threads)


def test_no_rows_of_a_dictionary_that_differs_from_batch_to_batch_are_lost() -> None:
    sent = pa.concat_tables(
        pa.table({"x": pa.array(words).dictionary_encode()}) for words in (["a"], ["b", "a"], ["c"])
    )
    assert executor.of_table(0, 0, "rows", sent).table["x"].to_pylist() == ["a", "b", "a", "c"]


@pytest.fixture
def run(tmp_path):
    """A run that has begun, in a folder that is all that is allowed."""
    with limited_run(tmp_path) as run:
        yield run


def test_executors_are_held_to_the_limits_of_the_task(run):
    limits = stores.current_policy()
    described = RunLocation.of(run).to_json()
    stores.use_policy(None)
    source = executor._run(described).dataset.source
    assert stores.current_policy() == limits
    assert next(source.batches()).num_rows == 4
    source.files[0] = "/etc/passwd"
    with pytest.raises(JobError, match=r"^input: /etc/passwd lies outside"):
        next(source.batches())


def test_a_task_without_limits_leaves_none_to_its_executors(run):
    limits = stores.current_policy()
    stores.use_policy(None)
    described = RunLocation.of(run).to_json()
    stores.use_policy(limits)
    executor._run(described)
    assert stores.current_policy() is None


def test_executors_have_the_sizes_that_the_task_allows(run):
    with resource_limits.changed(csv_line=100, inflation=7):
        described = RunLocation.of(run).to_json()
    source = executor._run(described).dataset.source
    assert resource_limits.in_use() == {"csv_line": 100, "inflation": 7}
    assert next(source.batches()).num_rows > 0
    resource_limits.use(None)
    executor._run.cache_clear()
    executor._run(RunLocation.of(run).to_json())
    assert resource_limits.in_use() == {}


def test_of_an_unforeseen_error_an_executor_tells_kind_and_place_only(run):
    def break_down(_run, _messages):
        raise ValueError("Mary, 34, HIV")
        yield

    step = executor.Step(break_down, RunLocation.of(run).to_json())
    with pytest.raises(RuntimeError, match=r"^ValueError at .*its message is withheld"):
        list(step([]))


def test_executors_of_an_attempt_that_was_given_up_write_nothing(tmp_path):
    with limited_run(tmp_path) as run:
        described = RunLocation.of(run).to_json()
        executor._run.cache_clear()
        late = executor._run(described).work
        late.write_bytes("x", b"x")
        publish.WorkDir(run.work.root).create()
        with pytest.raises(errors.StorageError, match="obsolete"):
            late.write_bytes("x", b"x")
