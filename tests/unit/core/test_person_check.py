"""The check that persons of a class have diverse values, as a part was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from mondrian_ops.core.errors import PrivacyError
from mondrian_ops.core.job import Job
from mondrian_ops.core.person_check import check_persons_values


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


def test_what_does_not_count_persons_values_is_not_checked() -> None:
    check(SHARED, l=None)
    check(SHARED, algorithm="tds", quasi_identifiers=["age=ladder:10"])
    check([("*", "a", "flu"), ("*", "b", "cold")])
