"""The check that persons of a class have diverse values, as a part was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.verify.persons import _each_has_one, check_persons_values


def check(rows: Sequence[tuple[str, str, str | None]], kind: Any = "string", **keys: Any) -> None:
    """Check a part of (label, person, diagnosis)."""
    labels, persons, ills = (list(column) for column in zip(*rows, strict=True))
    part = pa.table({"age": labels, "diagnosis": pa.array(ills, pa.string()).cast(kind)})
    described = {"k": 2, "l": 2, "quasi_identifiers": ["age"], "sensitive": ["diagnosis"],
                 "entity_id": "who", **keys}  # fmt: skip
    job = Job.from_dict(described, paths_required=False)
    check_persons_values(
        job,
        part.column_names,
        lambda columns: iter(part.select(columns).to_batches(max_chunksize=2)),
        pa.chunked_array([persons]),
        "the part",
    )


SHARED = [("*", "a", "flu"), ("*", "a", "cold"), ("*", "b", "flu"), ("*", "b", "gout")]


def test_a_value_that_all_persons_share_is_refused_and_not_named() -> None:
    with pytest.raises(PrivacyError, match=r"^l: in 1 of 2 classes of the part each") as refused:
        check([*SHARED, ("1", "a", "flu"), ("1", "b", "cold")])
    assert "flu" not in str(refused.value)


def test_values_of_a_type_that_has_a_name_only() -> None:
    check([("1", "a", "1"), ("1", "b", "2")], pa.json_())
    with pytest.raises(PrivacyError):
        check([("1", "a", "1"), ("1", "b", "1")], pa.json_())


def test_neither_spelling_nor_missing_values_hide_it() -> None:
    for rows in ([*SHARED[:2], ("*", "b", " flu ")], [*SHARED, ("*", "c", None), ("*", "d", " ")]):
        with pytest.raises(PrivacyError):
            check(rows)
    check([*SHARED, ("*", "c", None)], missing_sensitive="value")
    with pytest.raises(PrivacyError):
        check([("*", "a", "1"), ("*", "a", "2"), ("*", "b", "1.0"), ("*", "b", "3")])


@pytest.mark.parametrize(("level", "passes"), [(2, True), (3, False), (2.5, False)])
def test_by_l(level: float, passes: bool) -> None:
    """Three persons, of whom two share each of three values."""
    pairs = [("a", "x"), ("a", "y"), ("b", "y"), ("b", "z"), ("c", "z"), ("c", "x")]
    keys = {"l": level, "diversity": "entropy" if level == 2.5 else "distinct"}
    rows = [("*", *pair) for pair in pairs]
    if passes:
        check(rows, **keys)
    else:
        with pytest.raises(PrivacyError):
            check(rows, **keys)


def test_of_many_values_too_it_is_found_out_whether_some_are_enough() -> None:
    shared = ["ab", "a", "b"]
    rows = [
        ("*", str(person), ill)
        for person in range(600)
        for ill in ([*shared[person % 3]] if person else [])
    ]
    own = [("*", str(person), f"rare {person}") for person in range(600)]
    check([*rows, *own], l=3)
    with pytest.raises(PrivacyError, match=r"each person has one of 2 value\(s\)"):
        check([*rows, *own, ("*", "0", "a")], l=3)


def test_a_search_that_takes_too_long_counts_as_failing() -> None:
    """Of three persons with a value each, three, then two, then one are looked at."""
    assert not _each_has_one([{1}, {2}, {3}], 2, [6])
    assert _each_has_one([{1}, {2}, {3}], 2, [5])


def test_no_number_counts_as_a_missing_value() -> None:
    rows = [("*", "a", 1.0), ("*", "b", float("nan"))]
    with pytest.raises(PrivacyError, match=r"each person has one of 1 value\(s\)"):
        incomes(rows, l_width=None)
    incomes(rows, l_width=None, missing_sensitive="value")


def test_what_does_not_count_persons_values_is_not_checked() -> None:
    check(SHARED, l=None)
    check([("*", "a", "flu"), ("*", "b", "cold")])


def test_a_class_whose_rows_lie_apart_is_one() -> None:
    """Where recoding is global, it may lie in several files."""
    apart = [*SHARED[:2], ("1", "a", "flu"), ("1", "b", "cold"), *SHARED[2:]]
    with pytest.raises(PrivacyError, match=r"^l: in 1 of 2 classes .*; lower l$"):
        check(apart, algorithm="tds", quasi_identifiers=["age=ladder:10"])
    check([*apart, ("*", "c", "gout")], algorithm="tds", quasi_identifiers=["age=ladder:10"])


def incomes(rows: Sequence[tuple[str, str, float | None]], **keys: Any) -> None:
    """Check a part of (label, person, income)."""
    labels, persons, pay = (list(column) for column in zip(*rows, strict=True))
    part = pa.table({"age": labels, "pay": pa.array(pay, keys.pop("kind", pa.float64()))})
    job = Job.from_dict(
        {"k": 2, "l": 2, "quasi_identifiers": ["age"], "sensitive": ["pay"], "entity_id": "who",
         "l_width": {"pay": "10 %"}, **keys},
        paths_required=False,
    )  # fmt: skip
    read = lambda columns: iter(part.select(columns).to_batches(max_chunksize=2))  # noqa: E731
    check_persons_values(job, part.column_names, read, pa.chunked_array([persons]), "the part")


@pytest.mark.parametrize("kind", [pa.float64(), pa.int64(), pa.decimal128(9, 2)])
def test_of_the_persons_not_the_rows_a_share_is_near(kind: pa.DataType) -> None:
    """Three of four persons are once within 10 %, with half of the rows."""
    rows = [("*", "a", 100), ("*", "a", 500), ("*", "b", 91), ("*", "b", 300), ("*", "c", 95),
            ("*", "c", 900), ("*", "d", 10), ("*", "d", 20)]  # fmt: skip
    with pytest.raises(PrivacyError, match=r"^l: in 1 of 2 classes of the part more than 1/2 of"):
        incomes([*rows, ("1", "e", 1), ("1", "f", 5)], kind=kind)
    incomes(rows, kind=kind, l_width={"pay": "3 %"})
    incomes([("*", "a", 100), ("*", "a", 99), ("*", "a", 98), ("*", "b", 10)], kind=kind)


def test_a_missing_income_is_near_none_and_a_person_without_a_name_is_one() -> None:
    some = [("*", "a", 100.0), ("*", "b", 10.0), ("*", "a", None)]
    incomes(some)
    incomes([*some, ("*", "c", None)])  # two of three have a missing one, which does not count
    with pytest.raises(PrivacyError):
        incomes([*some, ("*", "c", None)], missing_sensitive="value")
    half = [("*", "a", 10.0), ("*", "b", 10.0), ("*", "c", None), ("*", "d", None)]
    incomes(half, missing_sensitive="value")
    with pytest.raises(PrivacyError):
        incomes([("*", None, 100.0), ("*", None, 10.0)])
