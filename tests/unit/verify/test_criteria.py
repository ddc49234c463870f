"""What each criterion says and measures, on classes whose numbers one can work out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from counted_classes import all_classes
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.verify.criteria import criteria_of
from mondrian_ops.verify.requirements import counter_of

CLASSES = ["aabc", "ab", "c  ", " "]  # a blank is a missing value
TREE = Hierarchy.from_rows([["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"]], "tree.csv")


def criteria(
    classes: Sequence[str], trees: Mapping[str, Hierarchy] | None = None, **keys: Any
) -> dict[str, list[float]]:
    """What the classes achieve of each criterion of a job, by what the criterion says."""
    rows_only, kind = keys.pop("rows_only", False), keys.pop("kind", pa.string())
    described = {"k": 2, "quasi_identifiers": ["q"], "sensitive": ["s"], **keys}
    job = Job.from_dict(described, paths_required=False)
    values = [None if each == " " else each for each in "".join(classes)]
    numbers = [at for at, each in enumerate(classes) for _ in each]
    counter = counter_of(job, ["q", "s"], rows_only=rows_only)
    persons = None if job.entity_id is None or rows_only else pa.chunked_array([[1] * len(values)])
    counter.add(pa.table({"q": numbers, "s": pa.array(values).cast(kind)}), persons=persons)
    counts = all_classes(counter.result())
    order = [[*counts.first_rows].index(at) for at in sorted(counts.first_rows)]
    return {
        str(each): each.measure(counts)[order].tolist()
        for each in criteria_of(job, trees or {}, rows_only)
    }


K = {"k-anonymity, k = 2": [4, 2, 3, 1]}


@pytest.mark.parametrize(
    ("keys", "says", "achieved"),
    [
        ({}, "distinct l-diversity of s, l = 2", [3, 2, 1, 0]),
        (
            {"missing_sensitive": "value"},
            "distinct l-diversity of s, l = 2, missing values counted as one",
            [3, 2, 2, 1],
        ),
        ({"diversity": "entropy"}, "entropy l-diversity of s, l = 2", [8**0.5, 2, 1, 0]),
        (
            {"diversity": "entropy", "missing_sensitive": "value"},
            "entropy l-diversity of s, l = 2, missing values counted as one",
            [8**0.5, 2, 3 / 4 ** (1 / 3), 1],
        ),
        (
            {"diversity": "recursive", "c": 1.5},
            "recursive (c, l)-diversity of s, c = 1.5, l = 2",
            [2, 2, 1, 0],
        ),
    ],
)
def test_one_definition_of_diversity_is_measured(
    keys: dict[str, Any], says: str, achieved: list[float]
) -> None:
    found = criteria(CLASSES, l=2, **keys)
    assert list(found) == [*K, says]
    assert found[says] == pytest.approx(achieved)
    assert found["k-anonymity, k = 2"] == K["k-anonymity, k = 2"]


def test_numbers_count_by_intervals_where_they_have_a_width() -> None:
    says = "l-diversity of s by intervals of 2, l = 2"
    found = criteria(["135", "119"], l=2, l_width={"s": "2"}, kind=pa.int64())
    assert found[says] == [1.5, 1.5]
    assert criteria(["   "], l=2, l_width={"s": "2"}, kind=pa.int64())[says] == [0]


@pytest.mark.parametrize(
    ("distance", "expected"),
    [("equal", [0.5, 0.5]), ("ordered", [0.375, 0.375]), ("hierarchical", [0.375, 0.375])],
)
def test_the_distance_of_a_class_from_the_release(distance: str, expected: list[float]) -> None:
    """Half of all rows have a, a quarter b, which is a's neighbour, and a quarter c."""
    keys: dict[str, Any] = {"t": 0.4, "t_distance": distance}
    if distance == "hierarchical":
        keys["sensitive_hierarchy"] = {"s": "tree.csv"}
    found = criteria(["aa", "bc"], {"s": TREE}, **keys)
    assert found[f"t-closeness of s, t = 0.4, {distance} distance"] == pytest.approx(expected)
    if distance == "hierarchical":
        with pytest.raises(PrivacyError, match="its hierarchy is needed"):
            criteria(["aa", "bc"], **keys)
        with pytest.raises(PrivacyError, match=r"1 of its values are not leaves of tree\.csv"):
            criteria(["aa", "bd"], {"s": TREE}, **keys)


def test_what_counts_rows_although_the_job_counts_persons_says_so() -> None:
    keys: dict[str, Any] = {"entity_id": "who", "l": 2, "t": 0.5}
    of_rows = criteria(["ab"], rows_only=True, **keys)
    assert list(of_rows) == [
        "k-anonymity, k = 2 in rows, not persons",
        "distinct l-diversity of s, l = 2 in rows, not persons",
        "t-closeness of s, t = 0.5, equal distance in rows, not persons",
    ]
    assert of_rows["k-anonymity, k = 2 in rows, not persons"] == [2]
    of_persons = criteria(["ab"], **keys)
    assert list(of_persons) == [
        "k-anonymity, k = 2 persons by who",
        "distinct l-diversity of s, l = 2",
        "t-closeness of s, t = 0.5, equal distance in rows, not persons",
    ]
    assert of_persons["k-anonymity, k = 2 persons by who"] == [1]
