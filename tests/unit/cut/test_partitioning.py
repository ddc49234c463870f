"""Fragments of a sample: De Capitani di Vimercati et al. 2023, sections 4.1 to 4.3."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from figure_2 import FIGURE_2, WORLD
from mondrian_ops.cut import partitioning
from mondrian_ops.cut.algorithms.mondrian import CutPolicy
from mondrian_ops.cut.anonymizer import Anonymizer
from mondrian_ops.cut.criteria import KAnonymity, Privacy
from mondrian_ops.cut.plan import Plan
from mondrian_ops.cut.routing import Router
from mondrian_ops.cut.shown_conditions import Disclosure
from mondrian_ops.data.profile import Profiler
from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from tiers import in_soak

FIGURE_2_A = FIGURE_2.select(["Age", "Country"])  # as far as the text tells it
PLAIN = Privacy(KAnonymity(1), ())


def anonymizer_of(table: pa.Table, *listed: str, greedy: str = "median", k: int = 2) -> Anonymizer:
    job = Job.from_dict({"k": k, "quasi_identifiers": listed}, paths_required=False)
    trees = {"Country": WORLD} if "Country" in table.column_names else {}
    profiler = Profiler(job, table.schema, trees)
    profiler.add(table)
    return Anonymizer(job, profiler.finish(), trees, CutPolicy(greedy))


def quantiles(anonymizer: Anonymizer, table: pa.Table, fragments: int) -> Plan:
    coded = anonymizer.encode(table, PLAIN)
    return partitioning.quantile(coded, anonymizer.attributes, fragments)


def balanced(anonymizer: Anonymizer, table: pa.Table, fragments: int) -> Plan:
    coded, cut = anonymizer.encode(table, PLAIN), CutPolicy("balanced")
    return partitioning.multidimensional(coded, anonymizer.attributes, fragments, cut)


def wheres(plan: Plan, anonymizer: Anonymizer, table: pa.Table) -> list[str]:
    """The conditions with every cut value that a row has."""
    orders = anonymizer.orders
    router = Router(plan, orders)
    shown = Disclosure.of(plan, orders, 1, router.count(router.place(table)))
    return [shown.text(plan.condition(at, orders)) for at in range(len(plan.fragments))]


def rows_of(plan: Plan, anonymizer: Anonymizer, table: pa.Table) -> list[int]:
    leaf = Router(plan, anonymizer.orders).route(table)
    counts = np.bincount(leaf, minlength=plan.leaves)
    return [int(counts[list(leaves)].sum()) for leaves in plan.fragments]


def test_four_quantiles_of_age():
    anonymizer = anonymizer_of(FIGURE_2_A, "Age", "Country=hierarchy:countries.csv")
    plan = quantiles(anonymizer, FIGURE_2_A, 4)
    # The source bounds the last by the greatest age it saw; here every row needs a fragment.
    assert wheres(plan, anonymizer, FIGURE_2_A) == [
        "Age <= 30",
        "Age > 30 AND Age <= 38",
        "Age > 38 AND Age <= 42",
        "Age > 42",
    ]
    assert rows_of(plan, anonymizer, FIGURE_2_A) == [3, 3, 1, 2]


def test_four_fragments_of_figure_2():
    anonymizer = anonymizer_of(FIGURE_2_A, "Age", "Country=hierarchy:countries.csv")
    plan = balanced(anonymizer, FIGURE_2_A, 4)
    assert wheres(plan, anonymizer, FIGURE_2_A) == [
        "Age <= 38 AND Country IN {Italy, France}",
        "Age <= 38 AND Country IN {USA, China, Japan and 4 more}",
        "Age > 38 AND Country IN {Italy, France, USA, China and 3 more}",
        "Age > 38 AND Country IN {Japan and 1 more}",
    ]
    assert rows_of(plan, anonymizer, FIGURE_2_A) == [3, 3, 2, 1]


def test_seven_fragments_of_a_thousand_rows():
    table = pa.table({"a": np.arange(1000), "b": np.arange(1000) % 10})
    anonymizer = anonymizer_of(table, "a", "b")
    plan = balanced(anonymizer, table, 7)
    assert sorted(rows_of(plan, anonymizer, table)) == [125] * 6 + [250]


@pytest.mark.parametrize("fragments", range(1, 18))
def test_any_number_of_fragments(fragments):
    table = pa.table({"a": np.arange(997)})
    anonymizer = anonymizer_of(table, "a")
    rows = rows_of(balanced(anonymizer, table, fragments), anonymizer, table)
    assert len(rows) == fragments
    assert sum(rows) == 997
    assert max(rows) <= 2 * min(rows) + 2
    rows = rows_of(quantiles(anonymizer, table, fragments), anonymizer, table)
    assert len(rows) == fragments
    assert max(rows) - min(rows) <= 1


def test_the_representativity_example():
    """100 of 1000 categories, half of one range, 0.7 of another: the last is cut."""
    inside = np.arange(1000)
    a1 = [f"c{at % 100:03}" for at in inside] + [f"c{at:03}" for at in range(1000)]
    a2 = [*np.linspace(0, 500, 1000).astype(int), *np.linspace(0, 1000, 1000).astype(int)]
    a3 = [*np.linspace(0, 700, 1000).astype(int), *np.linspace(0, 1000, 1000).astype(int)]
    table = pa.table({"a1": a1, "a2": a2, "a3": a3})
    anonymizer = anonymizer_of(table, "a1", "a2", "a3")
    tree = CutPolicy("median").tree(anonymizer.encode(table))
    a, _ = tree.cut(0, 1000)
    assert a == 2
    # The whole dataset: all have representativity 1, and most distinct values decide.
    a, _ = tree.cut(0, 2000)
    assert a == max(range(3), key=lambda at: len({*table.column(at).to_pylist()}))


def test_the_attribute_with_most_distinct_values_has_the_quantiles():
    table = pa.table({"a": np.arange(100) % 3, "b": np.arange(100) % 50, "c": np.arange(100) % 7})
    anonymizer = anonymizer_of(table, "a", "b", "c")
    plan = quantiles(anonymizer, table, 5)
    assert plan.columns == ["b"]
    assert rows_of(plan, anonymizer, table) == [20] * 5


@pytest.mark.parametrize(
    ("values", "fragments", "possible"),
    [([1, 2, 3] * 10, 4, 3), ([5] * 30, 2, 1), ([0] * 28 + [1, 2], 3, 2), ([0, 0, 0, 1], 8, 2)],
)
def test_too_many_quantiles_name_the_largest_possible_number(values, fragments, possible):
    table = pa.table({"age": values})
    anonymizer = anonymizer_of(table, "age")
    with pytest.raises(JobError, match=f"'age'.*at most {possible} fragment") as caught:
        quantiles(anonymizer, table, fragments)
    assert "partitioning.fragments" in str(caught.value)
    quantiles(anonymizer, table, possible)


def test_one_value_cannot_be_cut():
    table = pa.table({"age": [7] * 50})
    assert balanced(anonymizer_of(table, "age"), table, 8) == partitioning.single()


def test_quantiles_of_missing_values():
    table = pa.table({"age": [None] * 10 + list(range(10))})
    anonymizer = anonymizer_of(table, "age")
    plan = quantiles(anonymizer, table, 2)
    assert wheres(plan, anonymizer, table) == ["age IS MISSING", "age IS PRESENT"]


# Merging


@pytest.mark.parametrize("k", [3, *in_soak([10])])
@pytest.mark.parametrize(
    ("group_rows", "joined"), [(0, 0), (200, 0), (1500, 0), (200, 2), (200, 4), (1500, 3)]
)
def test_fragments_of_the_whole_have_the_classes_of_the_whole(group_rows, joined, k):
    """Whatever cuts a class, a group or a topped-up one, it does so within one fragment."""
    generator = np.random.default_rng(4)
    leaves = [leaf for leaf in WORLD.leaves for _ in range(1 + (leaf == "USA") * 30)]
    table = pa.table(
        {
            "a": generator.integers(0, 60, 1500),
            "b": generator.choice(["p", "q", "r"], 1500, p=[0.9, 0.08, 0.02]),
            "Country": generator.choice(leaves, 1500),
        }
    )
    anonymizer = anonymizer_of(table, "a", "b", "Country=hierarchy:w.csv", greedy="gain", k=k)
    cut = CutPolicy("gain", 1500, group_rows, joined=joined)
    whole = contents_of(anonymizer, table, cut)
    made = []
    for fragments in (2, 3, 7, 20):
        plan = partitioning.multidimensional(
            anonymizer.encode(table), anonymizer.attributes, fragments, cut
        )
        leaf = Router(plan, anonymizer.orders).route(table)
        parts = [table.filter(pa.array(np.isin(leaf, each))) for each in plan.fragments]
        made.append(len(parts))
        assert sum((contents_of(anonymizer, part, cut) for part in parts), Counter()) == whole
    assert made[0] == 2 or group_rows == 1500


def contents_of(anonymizer: Anonymizer, table: pa.Table, cut: CutPolicy) -> Counter:
    """The classes by what their rows say."""
    classes = cut.classes(anonymizer.encode(table))
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return Counter(
        tuple(sorted(rows[i] for i in each)) for each in np.split(classes.index, classes.starts[1:])
    )
