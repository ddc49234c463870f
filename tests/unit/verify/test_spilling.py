"""A release says the same of itself whether its classes fit in memory or not."""

from __future__ import annotations

import tempfile
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counted_classes import all_classes
from drawn_releases import CRITERIA, ILLS, figures_of, job_of, releases
from hypothesis_profiles import examples
from mondrian_ops.job.job import Job
from mondrian_ops.verify import spilling
from mondrian_ops.verify.counts import HELD, ReleaseCount
from mondrian_ops.verify.requirements import Verdict, check, counter_of


def counted(job: Job, parts: Any, spill: Any = None, held: int = HELD) -> ReleaseCount:
    counter = counter_of(job, parts[0][0].column_names, spill=spill, held=held)
    for number, (part, persons) in enumerate(parts):
        counter.add(part, f"part {number}", persons if job.entity_id else None)
    return counter.result()


def figures(count: ReleaseCount, job: Job) -> tuple[Verdict, Any, dict[str, Any]]:
    """All that a report has of a count."""
    return check(count, job, {"s": ILLS}), count.parts, figures_of(count)


def classes_of(count: ReleaseCount) -> dict[int, tuple]:
    """By first row: size, persons, and how often the class has each sensitive value."""
    found = all_classes(count)
    persons = found.class_sizes if found.persons is None else found.persons
    sensitive = found.sensitive["s"]
    values = [None, *sensitive.values.to_pylist()]
    pairs: dict[int, dict] = {at: {} for at in range(len(found.class_sizes))}
    for at, code, times in zip(sensitive.classes, sensitive.codes, sensitive.counts, strict=True):
        assert values[code] not in pairs[at]
        pairs[at][values[code]] = int(times)
    rows = zip(found.first_rows, found.class_sizes, persons, pairs.values(), strict=True)
    return {int(first): (int(size), int(of), each) for first, size, of, each in rows}


@examples(150)
@given(st.data(), releases(), st.sampled_from(CRITERIA), st.booleans())
def test_memory_changes_neither_verdict_nor_figures(data, parts, criteria, has_persons):
    """Sizes of memory, columns written as codes or values, few buckets: all say the same."""
    job = job_of(parts, criteria, has_persons)
    whole = counted(job, parts)
    expected, classes = figures(whole, job), classes_of(whole)
    held = data.draw(st.sampled_from([0, 1, 7, 30, HELD]), "held")
    coded = data.draw(st.sampled_from([0, 1, 3, spilling._CODED]), "coded")
    bits = data.draw(st.sampled_from([0, 1, 3, spilling._BITS]), "bits")
    with (
        pytest.MonkeyPatch.context() as patched,
        tempfile.TemporaryFile() as spill,
    ):
        patched.setattr(spilling, "_CODED", coded)
        patched.setattr(spilling, "_BITS", bits)
        patched.setattr(spilling, "_BUCKETS", 1 << bits)
        divided = counted(job, parts, spill, held)
        assert figures(divided, job) == expected
        assert classes_of(divided) == classes
        assert figures(divided, job) == expected  # once more from the file


@pytest.mark.parametrize("sizes", [(1, 5), (5, 1), (1, 1, 5, 1), (2, 5, 2, 6, 1), (1, 5, 5, 1, 1)])
@pytest.mark.parametrize("coded", [0, spilling._CODED])
def test_parts_that_fit_in_memory_and_others_are_counted_in_any_order(sizes, coded, monkeypatch):
    """Each part has other values than those before, and some of theirs."""
    monkeypatch.setattr(spilling, "_CODED", coded)
    tables = [
        pa.table(
            {
                "q0": [f"{(at + part) % 6}" for at in range(size)],
                "s": [f"{part}", *["flu"] * (size - 1)],
            }
        )
        for part, size in enumerate(sizes)
    ]
    parts = [(table, None) for table in tables]
    job = job_of(parts, {}, False)
    with tempfile.TemporaryFile() as spill:
        divided = counted(job, parts, spill, 4)
        assert classes_of(divided) == classes_of(counted(job, parts))
        assert spill.tell()


def in_parts(parts: int, classes: int, spill: Any) -> tuple[int, int]:
    """The most that counting takes of memory: numpy's, and what Arrow holds between the steps.

    Each class has three rows and texts of its own, as with exact intervals of real numbers.
    """
    job = Job.from_dict(
        {"k": 3, "quasi_identifiers": ["q"], "sensitive": ["s"], "entity_id": "id"},
        paths_required=False,
    )
    before, arrow = pa.total_allocated_bytes(), 0
    tracemalloc.start()
    try:
        counter = counter_of(job, ["q", "s"], spill=spill, held=8 * classes)
        for part in range(parts):
            rows = np.repeat(np.arange(classes) + part * classes, 3)
            texts = pa.array(rows).cast(pa.string())
            persons = pa.chunked_array([pa.array(np.arange(3 * classes))])
            counter.add(pa.table({"q": texts, "s": rows % 5}), persons=persons)
            del texts, persons
            arrow = max(arrow, pa.total_allocated_bytes() - before)
        count = counter.result()
        for _ in count.partitions():
            arrow = max(arrow, pa.total_allocated_bytes() - before)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (count.histogram, check(count, job).achieved["k"]) == ([(3, parts * classes)], 3)
    return peak, arrow


def test_memory_does_not_grow_with_the_classes(monkeypatch):
    monkeypatch.setattr(spilling, "_CODED", 1000)
    monkeypatch.setattr(spilling, "_BITS", 6)  # what a run takes by itself is little then
    monkeypatch.setattr(spilling, "_BUCKETS", 1 << 6)
    with tempfile.TemporaryFile() as few, tempfile.TemporaryFile() as many:
        in_parts(2, 2000, few)  # loads what is loaded once
        fewer, more = in_parts(12, 2000, few), in_parts(48, 2000, many)
    for small, large in zip(fewer, more, strict=True):
        assert large < 1.2 * small, (fewer, more)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda file, runs: file.truncate(file.seek(0, 2) - 8), "shorter than what was written"),
        (lambda file, runs: runs.pop(), "other rows than were counted"),
        (lambda file, runs: runs.append(runs[0]), "other rows than were counted"),
    ],
)
def test_a_file_that_does_not_give_back_what_was_written_is_an_error(damage, says):
    job = Job.from_dict({"k": 2, "quasi_identifiers": ["q"]}, paths_required=False)
    with tempfile.TemporaryFile() as file:
        counter = counter_of(job, ["q"], spill=file, held=0)
        for rows in (range(3), range(3, 9)):
            counter.add(pa.table({"q": rows}))
        damage(file, counter._spilled.runs)
        with pytest.raises(OSError, match=says):
            check(counter.result(), job)


def test_nothing_is_written_where_memory_suffices():
    job = Job.from_dict({"k": 2, "quasi_identifiers": ["q"]}, paths_required=False)
    with tempfile.TemporaryFile() as file:
        counter = counter_of(job, ["q"], spill=file, held=4)
        counter.add(pa.table({"q": [1, 2, 3, 4]}))
        assert counter.result().classes == 4
        assert file.seek(0, 2) == 0
        counter.add(pa.table({"q": [5]}))
        assert counter.result().classes == 5
        assert file.seek(0, 2) > 0


def test_rows_of_a_part_that_are_not_sorted_are_grouped_as_they_come(monkeypatch):
    """Of a file of any order as many classes are held as it has, not as many as rows."""
    job = Job.from_dict({"k": 2, "quasi_identifiers": ["q"]}, paths_required=False)
    counter = counter_of(job, ["q"], held=100)
    held = []
    group = counter._group
    monkeypatch.setattr(
        counter, "_group", lambda pieces, values: held.append(len(pieces)) or group(pieces, values)
    )
    batches = [pa.record_batch({"q": np.arange(40) + at % 2 * 40}) for at in range(30)]
    count = counter.count(batches)
    assert (count.counted.rows, count.counted.classes, count.counted.dp) == (1200, 80, 80 * 15**2)
    assert max(held) == 4  # three pieces have more than 100 classes, then beside those of before


def test_columns_of_few_values_are_codes_and_of_many_are_values(monkeypatch):
    """Sensitive columns always: their codes stand for the whole release."""
    monkeypatch.setattr(spilling, "_CODED", 3)
    quasi = {"few": [1, 2, 3, None] * 2, "many": [1, 2, 3, 4, None, None, 1, 2]}
    names = {"quasi_identifiers": list(quasi), "sensitive": ["s"], "entity_id": "id"}
    job = Job.from_dict({"k": 2, **names}, paths_required=False)
    with tempfile.TemporaryFile() as file:
        counter = counter_of(job, [*quasi, "s"], spill=file, held=0)
        counter.add(pa.table({**quasi, "s": range(8)}), persons=pa.chunked_array([range(8)]))
        (run,) = counter._spilled.runs
        assert run.plain == [False, True, False, True]
        sizes = [len(of.values) for of in counter._values]
        assert sizes == [3, 3, 8, 3]  # what is written as values is forgotten
        assert run.entries.sum() == counter.result().classes * (1 + 2 / 8)


def test_what_comes_after_a_reading_that_was_given_up_is_written_behind():
    job = Job.from_dict({"k": 2, "quasi_identifiers": ["q"]}, paths_required=False)
    with tempfile.TemporaryFile() as file:
        counter = counter_of(job, ["q"], spill=file, held=0)
        counter.add(pa.table({"q": range(50)}))
        next(counter.result().partitions())
        counter.add(pa.table({"q": range(50)}))
        assert counter.result().histogram == [(2, 50)]
