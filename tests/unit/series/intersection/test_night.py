"""What follows the persons of a night, with releases that are in no file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops.catalogue.signatures import Known
from mondrian_ops.errors import InputError
from mondrian_ops.job.job import Job
from mondrian_ops.series import keyed_hashes
from mondrian_ops.series.intersection import night as intersection

K, L = 4, 2
NOBODY = NO_VALUE = 0


def job_of(**series: Any) -> Job:
    return Job.from_dict(
        {
            "input": "in/2025-01-01.parquet", "output": "out/2025-01-01", "k": K, "l": L,
            "entity_id": "person", "quasi_identifiers": ["age"], "sensitive": ["diagnosis"],
            "series": {"kind": "snapshots", "protect": "intersection", **series},
        }
    )  # fmt: skip


def checked(
    rows: Sequence[tuple[int, int, int]],
    counterfeits: int = 0,
    signatures: Sequence[int | None] = (),
    misspelled: int = 0,
    **series: Any,
) -> tuple[intersection.Outcome, pa.Table]:
    """The first night of a series: rows of a class, a person and a value, and their signatures.

    Returns the outcome, and the persons that were kept.
    """
    labels, persons, values = np.array(rows, np.int64).reshape(-1, 3).T
    published = labels, labels, persons, values, pa.table({"age": labels}), misspelled
    packed = [None if word is None else word.to_bytes(8, "little") for word in signatures]
    known = np.unique(persons[persons != NOBODY])
    kept: dict[str, pa.Table] = {}
    work: Any = SimpleNamespace(
        read_arrow=lambda _: pa.table({"hash": known, "place": known}),
        write_arrow=kept.__setitem__,
        read_signatures=lambda _: pa.array(packed, pa.binary(8)),
    )

    def unknown(_connection: Any, _name: str, hashes: Any, words: int, signed: bool) -> Known:
        none = np.zeros(len(hashes), np.int64)
        common = np.zeros((len(hashes), words), np.uint64)
        return Known(none != 0, none - 1, none, common, common)

    with (
        mock.patch("mondrian_ops.catalogue.current"),
        mock.patch("mondrian_ops.catalogue.signatures.values", return_value=[]),
        mock.patch("mondrian_ops.catalogue.signatures.known", unknown),
        mock.patch.object(intersection, "_as_published", return_value=published),
        mock.patch("mondrian_ops.publish.digest_of"),
    ):
        outcome = intersection.checked(job_of(**series), "", 1, work, ["part"], counterfeits)
    (table,) = kept.values()
    return outcome, table


@pytest.mark.parametrize("values", [2, 63, 64, 65, 129])
def test_all_values_of_a_class_are_left_however_many_there_are(values: int) -> None:
    rows = [(0, person, -1 - person % values) for person in range(1, values + K)]
    outcome, kept = checked(rows)
    assert outcome.failures == []
    assert outcome.figures == {
        "persons": len(rows),
        "known_before": 0,
        "least_common": values,
        "value_changed": 0,
    }
    assert len(kept) == len(rows)


@pytest.mark.parametrize(
    ("rows", "failures"),
    [
        ([], []),
        ([(0, person, NO_VALUE) for person in (1, 2, 3, 4, 5)], ["5 person(s)", "l = 2"]),
        ([(0, person, 7) for person in (1, 2, 3, 4)], ["4 person(s)", "l = 2"]),
        ([(0, person, person) for person in (1, 2, 3)], ["3 person(s)", "k = 4"]),
        ([(0, person, person) for person in (1, 2, 3, 4, 4)], ["1 row(s) too many"]),
    ],
)
def test_too_few_persons_or_values_are_counted(
    rows: Sequence[tuple[int, int, int]], failures: Sequence[str]
) -> None:
    outcome, _ = checked(rows)
    assert len(outcome.failures) == bool(failures)
    assert all(text in outcome.failures[0] for text in failures)
    assert outcome.figures["persons"] == len(rows)
    assert outcome.figures["least_common"] == len({*(each[2] for each in rows)} - {NO_VALUE})


def test_counterfeits_are_counted_with_their_classes() -> None:
    persons = [(person % 2, person, person % 4 + 1) for person in range(1, 9)]
    for made_up, classes in (
        ([(0, NOBODY, 1), (1, NOBODY, 1)], 2),
        ([(1, NOBODY, 1), (1, NOBODY, 3)], 1),
        ([], 0),
    ):
        outcome, kept = checked([*persons, *made_up], len(made_up), unmatched="counterfeit")
        assert outcome.failures == []
        assert outcome.figures["counterfeits"] == len(made_up)
        assert len(outcome.notes) == bool(made_up)
        assert outcome.figures["counterfeit_classes"] == classes
        assert outcome.counterfeits is not None
        assert outcome.counterfeits["age"].to_pylist() == [label for label, *_ in made_up]
        assert len(kept) == len(persons)
        for other in (len(made_up) - 1, len(made_up) + 1):
            outcome, _ = checked([*persons, *made_up], other, unmatched="counterfeit")
            (failure,) = outcome.failures
            assert failure.startswith(f"the release has {len(made_up)} counterfeits instead of")


BALANCED: dict[str, Any] = {"unmatched": "counterfeit", "subtraction": "protect"}
IN_CELLS = [(0, 1, 7), (0, 2, 8), (0, 3, 7), (0, 4, 8)]


@pytest.mark.parametrize(
    ("rows", "signatures", "found_out"),
    [
        (IN_CELLS, [0b11] * 4, 0),
        ([*IN_CELLS, (0, 5, NO_VALUE)], [0b11] * 5, 0),
        ([(0, NOBODY, 8), *IN_CELLS, (0, 5, 7)], [None, *[0b11] * 5], 0),
        ([*IN_CELLS, (0, 5, 7)], [0b11] * 5, 5),
        (IN_CELLS, [0b11, 0b11, 0b11, 0b01], 4),  # one value is no signature
    ],
)
def test_who_could_be_found_out_by_subtracting_classes_is_counted(
    rows: Sequence[tuple[int, int, int]], signatures: Sequence[int | None], found_out: int
) -> None:
    made_up = sum(person == NOBODY for _, person, _ in rows)
    outcome, kept = checked(rows, made_up, signatures, **BALANCED)
    problem = f"{found_out} person(s) are in a class whose difference from others would tell"
    assert [problem in each for each in outcome.failures] == [True] * bool(found_out)
    # Kept with what is left; who has no value keeps the signature of before, here none.
    kept_of = dict(zip(kept["hash"].to_pylist(), kept["common"].to_pylist(), strict=True))
    for (_, person, value), word in zip(rows, signatures, strict=True):
        if word is not None:
            left, signature = np.frombuffer(kept_of[person], "<u8").tolist()
            assert (left, signature) == (0b11, word if value else 0)


def test_a_value_in_another_spelling_than_the_series_has_refuses_the_night() -> None:
    outcome, _ = checked([(0, person, person) for person in (1, 2, 3, 4)], misspelled=3)
    (failure,) = outcome.failures
    assert failure.startswith("3 row(s) spell their value of diagnosis otherwise")


def test_the_rows_of_a_release_are_read_part_by_part(tmp_path: Path) -> None:
    odd = [f"flu{' ' * blanks}" for blanks in range(1, 9)]  # and the hash of either may be greater
    names = [f"p{number}" for number in range(17)]
    rows = [
        {"age": ["[0, 9]", *["[10, 19]"] * 9], "diagnosis": ["cold", *["flu"] * 9]},
        {"age": ["[0, 9]"] * 8, "diagnosis": odd},
    ]
    for part, persons in zip(rows, (names[:10], [*names[10:], None]), strict=True):
        part["person"] = persons
    parts, persons_of = [], {}
    for number, part in enumerate(rows):
        path = str(tmp_path / f"part-{number}.parquet")
        pq.write_table(pa.table({name: part[name] for name in ("age", "diagnosis")}), path)
        parts.append(path)
        persons_of[intersection.publish.digest_of(path)] = pa.array(part["person"])
    work: Any = SimpleNamespace(read_persons=persons_of.__getitem__)
    numbers, published, persons, values, columns, misspelled = intersection._as_published(
        job_of(), "town", work, parts
    )
    assert numbers.tolist() == [0] + [1] * 9 + [0] * 8
    assert [len({*published[numbers == number].tolist()}) for number in (0, 1)] == [1, 1]
    assert published[0] != published[1]
    assert columns.to_pydict() == {"age": ["[0, 9]"] + ["[10, 19]"] * 9 + ["[0, 9]"] * 8}
    assert len({*persons.tolist()}) == 18
    assert [person == NOBODY for person in persons.tolist()] == [False] * 17 + [True]
    assert len({*values[1:].tolist()}) == 1 and values[0] != values[1]
    assert misspelled == 8


@pytest.mark.parametrize(
    ("number", "known", "changed", "failures"),
    [
        (1, 0, 0, []),
        (2, 5, 0, []),
        (2, 4, 0, ["fewer than half of the persons were in a night before"]),
        (2, 10, 5, []),
        (2, 10, 6, ["have another value of diagnosis"]),
        (2, 4, 3, ["fewer than half of the persons", "have another value of diagnosis"]),
    ],
)
def test_most_people_are_known_in_a_later_snapshot_and_keep_their_value(
    number: int, known: int, changed: int, failures: Sequence[str]
) -> None:
    found = intersection._strangers(job_of(), number, known, changed, 10)
    assert len(found) == len(failures)
    assert all(text in failure for text, failure in zip(failures, found, strict=True))
    increments = job_of(kind="increments", unmatched="wait", hold_nights=1)
    assert len(intersection._strangers(increments, number, known, changed, 10)) == len(
        [text for text in failures if "another value" in text]
    )


NUMBERS = (pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(9, 2))


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        *((each, "numbers") for each in NUMBERS),
        (pa.string(), "text"),
        (pa.large_string(), "text"),
        (pa.dictionary(pa.int8(), pa.string()), "text"),
        (pa.dictionary(pa.int32(), pa.int64()), "numbers"),
        (pa.binary(), "binary"),
        (pa.date32(), "date32[day]"),
    ],
)
def test_types_tell_persons_and_values_apart(type_: pa.DataType, name: str) -> None:
    schema = pa.schema({"person": type_, "age": pa.int8(), "diagnosis": pa.bool_()})
    assert keyed_hashes.types_of(job_of(), schema) == {"person": name, "diagnosis": "bool"}
    unknown = schema.set(2, pa.field("diagnosis", pa.null()))
    assert keyed_hashes.types_of(job_of(), unknown) == {"person": name}
    unprotected = job_of(protect="release")
    assert keyed_hashes.types_of(unprotected, schema) == {}


@pytest.mark.parametrize(("missing", "is_value"), [("value", True), ("no_value", False)])
def test_a_missing_value_is_none_unless_the_job_takes_it_for_one(
    missing: str, is_value: bool
) -> None:
    job = Job.from_dict({**job_of().to_dict(), "missing_sensitive": missing})
    column = pa.array(["a", None, "a"])
    first, lacking, last = keyed_hashes.value_hashes(job, "town", column)
    assert first == last != lacking
    assert (lacking != NO_VALUE) == is_value


def test_a_person_is_named_unless_a_row_may_lack_one() -> None:
    column = pa.array(["ann", None, "bob", None])
    with pytest.raises(InputError, match="column 'person': 2 rows have no value"):
        keyed_hashes.person_hashes(job_of(), "town", column)
    found = keyed_hashes.person_hashes(job_of(), "town", column, may_lack=True)
    assert [each == NOBODY for each in found] == [False, True, False, True]


def test_a_release_without_parts_has_no_rows() -> None:
    work: Any = None
    *arrays, columns, _ = intersection._as_published(job_of(), "", work, [])
    assert [each.tolist() for each in arrays] == [[]] * 4
    assert columns.num_rows == 0


@pytest.mark.parametrize("values", ["ab", "ba"])
def test_a_part_that_is_written_while_it_is_read_is_read_again(tmp_path: Path, values: str) -> None:
    """Of the digests of the two contents either may be the greater."""
    before, after = (
        pa.table({"age": [each], "diagnosis": [each], "person": [1]}) for each in values
    )
    part = tmp_path / "part-0.parquet"
    pq.write_table(before, part)

    def persons(_: str) -> pa.Array:
        pq.write_table(after, part)
        return pa.array([1])

    work: Any = SimpleNamespace(read_persons=persons)
    with pytest.raises(OSError, match="written again while it was read"):
        intersection._as_published(job_of(), "", work, [str(part)])


@pytest.mark.parametrize(
    ("values", "stored", "codes", "all_stored"),
    [
        ([7, 0, -3, 5, 7, 1], [5, -3], [3, -1, 1, 0, 3, 2], [5, -3, 1, 7]),
        ([9, 9], [], [0, 0], [9]),
        ([0, 0], [], [-1, -1], []),
        ([], [4], [], [4]),
    ],
)
def test_values_keep_their_codes_and_new_ones_get_the_next(
    values: Sequence[int], stored: list[int], codes: Sequence[int], all_stored: Sequence[int]
) -> None:
    found, now = intersection._coded(np.array(values, np.int64), stored)
    assert (found.tolist(), now) == (codes, all_stored)
