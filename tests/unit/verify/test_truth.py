"""A part is compared with the rows that it publishes, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.verify import truth as release_truth
from mondrian_ops.verify.labels import labels_of_job
from mondrian_ops.verify.truth import PartTruth

AGES = [30, 20, None, 21, 31, 90]
ROWS = pa.table(
    {
        "age": pa.array(AGES, pa.int16()),
        "ill": pa.chunked_array([["a", "b"], ["c", "d", "e", None]]),
        "name": [f"n{at}" for at in range(6)],
    }
)
ORDER = np.array([1, 3, 0, 4, 2], np.int32)  # the last row is suppressed
LABELS = ["[20, 21]", "[20, 21]", "[30, 31]", "[30, 31]", None]


UNALIGNED = pa.Array.from_buffers(
    pa.int64(), 3, [None, pa.py_buffer(b"?" + np.array([5, 6, 7]).tobytes()).slice(1)]
)


def part_of(ages: Sequence[str | None] = LABELS, ills: Any = ("b", "d", "a", "e", "c")) -> pa.Table:
    return pa.table({"name": ["*"] * 5, "age": ages, "ill": pa.array(ills)})


def truth_of(rows: pa.Table = ROWS, **changes: Any) -> PartTruth:
    job = Job.from_dict({"k": 2, "quasi_identifiers": ["age"]}, paths_required=False)
    age = rows["age"].combine_chunks().drop_null().sort()
    labels = labels_of_job(job, {"age": age.type}, {"age": age}, {}, {})
    return replace(PartTruth(rows, ORDER, None, 1, labels, ["name"], "fragment 7"), **changes)


def check(truth: PartTruth, part: pa.Table, batch: int = 2, **options: Any) -> None:
    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch_of in part.select(columns).combine_chunks().to_batches(max_chunksize=batch):
            encoded = {
                name: column.dictionary_encode() if name in ("age", "sex") else column
                for name, column in zip(columns, batch_of.columns, strict=True)
            }
            yield pa.record_batch(encoded)

    return truth.check(part.column_names, read, **options)


@pytest.mark.parametrize("table", [1 << 22, 0])
@pytest.mark.parametrize("batch", [1, 2, 9])
@pytest.mark.parametrize("age", [pa.int16(), pa.float64(), pa.dictionary(pa.int8(), pa.int64())])
def test_a_true_part_passes(
    monkeypatch: pytest.MonkeyPatch, batch: int, table: int, age: pa.DataType
) -> None:
    monkeypatch.setattr(release_truth, "_TABLE", table)
    ages = pa.array(AGES, pa.int64())
    ages = ages.dictionary_encode().cast(age) if pa.types.is_dictionary(age) else ages.cast(age)
    truth = truth_of()
    truth = replace(truth, rows=ROWS.set_column(0, "age", ages))
    texts = [each if each is None else each.replace(".0", "") for each in LABELS]
    assert check(truth, part_of(texts), batch) is None
    wrong = part_of([*texts[:3], "[20, 21]", None])
    with pytest.raises(PrivacyError, match="column 'age': 1 published label"):
        check(truth, wrong, batch)


@pytest.mark.parametrize(
    ("part", "error"),
    [
        (part_of(["[20, 21]", "20", "[30, 31]", "[30, 31]", None]), "column 'age': 1 published"),
        (part_of(["[20, 21]", None, "[30, 31]", "[30, 31]", None]), "column 'age': 1 published"),
        (part_of([*LABELS[:4], "[20, 21]"]), "column 'age': 1 published"),
        (part_of(ills=["d", "b", "a", "e", "c"]), "column 'ill': some rows have values of other"),
        (part_of(ills=["b", "d", "a", "e", None]), "column 'ill': some rows"),
        (part_of().slice(0, 4), "column 'age' has 4 values, and 5 rows"),
        (
            pa.concat_tables([part_of(), part_of()]),
            "column 'age' has 6 values, and 5 rows were to be written",
        ),
        (part_of().set_column(0, "name", [["*", "*", "n0", "*", "*"]]), "column 'name' is publ"),
        (part_of().set_column(0, "name", [["*", "*", None, "*", "*"]]), "column 'name' is publ"),
        (part_of().append_column("more", [range(5)]), "column 'more' is not one of the source"),
    ],
)
def test_an_untrue_part_is_named_without_a_value(part: pa.Table, error: str) -> None:
    with pytest.raises(PrivacyError, match=error) as caught:
        check(truth_of(), part)
    assert str(caught.value).startswith("fragment 7 is not true to the source: ")
    assert "n0" not in str(caught.value) and "30" not in str(caught.value)


@pytest.mark.parametrize(
    ("order", "missing", "error"),
    [
        ([1, 3, 0, 4, 4], 1, "some rows of the source are published more than once"),
        ([1, 3, 0, 4, 6], 1, "it has rows that the source has not"),
        ([1, 3, 0, 4, 7], 1, "it has rows that the source has not"),
        ([1, 3, 0, 4, -1], 1, "it has rows that the source has not"),
        ([1, 3, 0, 4, 2], 0, "of 6 rows 5 are published"),
        ([1, 3, 0, 4, 2], 2, "of 6 rows 5 are published"),
        ([3, 1, 0, 4, 2], 1, "column 'ill': some rows have values of other rows"),
        ([2, 0, 3, 1, 4], 1, r"column 'age': \d published label"),
    ],
)
def test_a_wrong_order_cannot_pass(order: list[int], missing: int, error: str) -> None:
    with pytest.raises(PrivacyError, match=error):
        check(truth_of(order=np.array(order), missing_rows=missing), part_of())


def test_rows_that_are_made_up_are_nobodys() -> None:
    made_up = np.array([False, True, False, False, False])
    order = np.array([1, 5, 0, 4, 2])
    truth = truth_of(order=order, made_up=made_up, missing_rows=2)
    part = part_of(ills=["b", "x", "a", "e", "c"])
    persons = pa.chunked_array([["n1", None, "n0", "n4", "n2"]])
    assert check(truth, part, persons=("name", persons)) is None
    for wrong in (["n1", None, "n4", "n0", "n2"], ["n1", None, "n0", "n4", None]):
        with pytest.raises(PrivacyError, match="column 'name': some rows"):
            check(truth, part, persons=("name", pa.chunked_array([wrong])))
    with pytest.raises(PrivacyError, match="of 6 rows 4 are published"):
        check(replace(truth, missing_rows=1), part)


@pytest.mark.parametrize(
    ("source", "published"),
    [
        (pa.array([1.5, np.nan, None]), pa.array([1.5, np.nan, None])),
        (pa.array([1.5, np.nan, -0.0]), pa.array([1.5, -np.nan, 0.0])),
        (pa.array([8, 5, 6, 7], pa.int8())[1:], pa.array([5, 6, 7], pa.int8())),
        (pa.array([5, 6, 7], pa.time64("us")), pa.array([5, 6, 7], pa.time64("us"))),
        (pa.array([True, False, None]), pa.array([True, False, None])),
        (UNALIGNED, pa.array([5, 6, 7])),
        (pa.array([[np.nan], None, [2.0]]), pa.array([[np.nan], None, [2.0]])),
        (pa.array([5, 6, None], pa.duration("s")), pa.array([5, 6, None])),
        (pa.array([5, 6, None], pa.timestamp("s", "Asia/Tokyo")),
         pa.array([5000, 6000, None], pa.timestamp("ms", "UTC"))),
        (pa.array(["a", "b", None]).dictionary_encode(), pa.array(["a", "b", None])),
        (pa.array(["a", "b", None], pa.large_string()), pa.array(["a", "b", None])),
        (pa.array([{"a": 1}, {"a": None}, None]), pa.array([{"a": 1}, {"a": None}, None])),
    ],
)  # fmt: skip
def test_columns_are_compared_whatever_type_a_file_has(source: pa.Array, published: pa.Array):
    rows = pa.table({"age": pa.array([20, 21, 22], pa.int16()), "x": source})
    truth = truth_of(rows, order=np.array([2, 0, 1]), missing_rows=0)
    part = pa.table({"age": ["[20, 22]"] * 3, "x": published.take(pa.array([2, 0, 1]))})
    assert check(truth, part, 9) is None
    for wrong in ([0, 2, 1], [2, 1, 0], [2, 2, 1]):
        part = pa.table({"age": ["[20, 22]"] * 3, "x": published.take(pa.array(wrong))})
        with pytest.raises(PrivacyError, match="column 'x'"):
            check(truth, part, 9)


@pytest.mark.parametrize(
    "published", [pa.array(["x", "y", "z"]), pa.array([[0], [1], [2]]), pa.array([{"a": 0}] * 3)]
)
def test_a_column_of_another_kind_is_not_that_of_the_source(published: pa.Array) -> None:
    rows = pa.table({"age": pa.array([20, 21, 22], pa.int16()), "x": [0, 1, 2]})
    part = pa.table({"age": ["[20, 22]"] * 3, "x": published})
    with pytest.raises(PrivacyError, match="column 'x': some rows have values of other rows"):
        check(truth_of(rows, order=np.arange(3), missing_rows=0), part)


@pytest.mark.parametrize(
    ("source", "published"),
    [
        (pa.array([5, None, 7]), pa.array([5, 0, 7])),
        (pa.array([5, 0, 7]), pa.array([5, None, 7])),
        (pa.array([5, 6, 7, 8])[1:], pa.array([5, 6, 7])),
        (pa.array([6, 7, 8]), pa.array([6, 7, 9, 8])[:3]),
        (pa.array([1, 2, 3], pa.int32()), pa.array(np.array([1, 2, 3], "i4").view("f4"))),
    ],
    ids=["0 for missing", "missing for 0", "a slice", "of a slice", "the bytes of another type"],
)
def test_what_looks_alike_in_memory_is_not_the_same(source: pa.Array, published: pa.Array) -> None:
    rows = pa.table({"age": pa.array([20, 21, 22], pa.int16()), "x": source})
    part = pa.table({"age": ["[20, 22]"] * 3, "x": published})
    with pytest.raises(PrivacyError, match="column 'x': some rows have values of other rows"):
        check(truth_of(rows, order=np.arange(3), missing_rows=0), part, 9)


def with_bounds(bounds: pa.Array, hidden: list[bool], sexes: str = "ffffmm") -> pa.Table:
    columns = {"sex": list(sexes), "age_min": bounds, "age_max": bounds}
    return pa.table({**columns, "age_hidden": hidden})


@pytest.mark.parametrize("batch", [1, 2, 9])
def test_rows_without_bounds_are_missing_unless_they_are_hidden(batch: int) -> None:
    rows = pa.table({"age": pa.array([None, 20, 21, None, None, 30]), "sex": list("ffffmm")})
    truth = bounded(rows, [])
    check(truth, with_bounds(pa.nulls(6, pa.int64()), [True] * 6), batch)
    bounds = pa.array([None, None, None, None, None, 30])
    check(truth, with_bounds(bounds, [True] * 4 + [False] * 2), batch)
    with pytest.raises(PrivacyError, match="column 'age': 2 published"):  # 20 and 21
        check(truth, with_bounds(bounds, [False] * 6), batch)


def test_a_column_that_is_shorter_than_the_part_is_refused() -> None:
    part, truth = part_of(), truth_of()

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        rows = part.num_rows - (columns == ["ill"])
        yield from part.select(columns).slice(0, rows).to_batches()

    with pytest.raises(PrivacyError, match="column 'ill' has 4 values, and 5 rows were to be"):
        truth.check(part.column_names, read)


def test_numbers_that_are_all_missing() -> None:
    rows = ROWS.set_column(0, "age", pa.nulls(6, pa.int16()))
    truth = replace(truth_of(), rows=rows)
    assert check(truth, part_of([None] * 5)) is None
    with pytest.raises(PrivacyError, match="column 'age': 1 published"):
        check(truth, part_of([None, None, "20", None, None]))


@pytest.mark.parametrize("count", [(1 << 16) - 1, 1 << 16, (1 << 16) + 1])
def test_as_many_values_as_codes_have_numbers(count: int) -> None:
    rows = pa.table({"age": pa.array(np.arange(count) * 3)})
    order = np.arange(count)[::-1]
    truth = truth_of(rows, order=order, missing_rows=0, identifiers=[])
    labels = ["*"] * (count - 1)
    assert check(truth, pa.table({"age": [*labels, "0"]}), count) is None
    with pytest.raises(PrivacyError, match="column 'age': 1 published"):
        check(truth, pa.table({"age": [*labels, "3"]}), count)


def test_a_part_of_one_row_that_is_not_the_first_passes() -> None:
    truth = truth_of(order=np.array([3]), missing_rows=5)
    part = pa.table({"name": ["*"], "age": ["21"], "ill": ["d"]})
    assert check(truth, part) is None


def bounded(rows: pa.Table, boundaries: list[int], **changes: Any) -> PartTruth:
    """What is true of rows with ages, published as bounds, and sexes."""
    job = {"k": 2, "quasi_identifiers": ["sex", "age"], "interval_style": "bounds"}
    labels = labels_of_job(
        Job.from_dict(job, paths_required=False),
        {"age": pa.int64(), "sex": pa.string()},
        {"age": pa.array([0, 99]), "sex": pa.array(["f", "m"])},
        {"age": pa.array(boundaries, pa.int64())} if boundaries else {},
        {},
    )
    truth = PartTruth(rows, np.arange(rows.num_rows), None, 0, labels, [], "it")
    return replace(truth, **changes)


def test_a_bound_that_is_unlimited_is_not_a_missing_one() -> None:
    rows = pa.table({"age": [20, 21, 90, 91, None], "sex": list("fffff")})
    low, high = pa.array([None, None, 25, 25, None]), pa.array([24, 24, None, None, None])
    part = {"sex": list("fffff"), "age_min": low, "age_max": high.cast(pa.int64())}
    part = pa.table({**part, "age_hidden": [False] * 5})
    assert check(bounded(rows, [25]), part) is None
