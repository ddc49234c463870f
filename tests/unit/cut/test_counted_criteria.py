"""Criteria of packages: every class of every way of cutting satisfies them."""

from __future__ import annotations

import traceback
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from added_criteria import added
from hypothesis_profiles import examples
from mondrian_ops import anonymize
from mondrian_ops.cut import cut_policy
from mondrian_ops.cut.criteria import KAnonymity, Privacy
from mondrian_ops.cut.criteria.counted import CountedCriterion
from mondrian_ops.cut.native.class_criteria import groups_satisfy
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.errors import JobError, UnattainableError
from mondrian_ops.job import criterion
from mondrian_ops.job.criterion import Counts, Criterion
from mondrian_ops.job.job import Job
from mondrian_ops.job.options import option
from mondrian_ops.verify.criteria import counted as written_counted
from mondrian_ops.verify.criteria import criteria_of
from mondrian_ops.verify.criteria.base import IN_ROWS
from mondrian_ops.verify.spread import SensitiveCount
from tiers import one_in

ILLS = ("flu", "cold", "ulcer", None)
WAYS: dict[str, dict[str, Any]] = {
    "mondrian": {},
    "median": {"cut": "median"},
    "gain": {"cut": "gain"},
    "relaxed": {"relaxed": True},
    "di_mondrian": {"algorithm": "di_mondrian"},
    "samarati": {"algorithm": "samarati"},
    "optimal": {"algorithm": "samarati", "samarati": {"choice": "optimal"}},
    "tds": {"algorithm": "tds"},
    "two phases": {"algorithm": "tds", "tds": {"partitions": 2}},
}
LADDERS = [{"name": "x", "ladder": [5, 10]}, {"name": "y", "ladder": [3]}]


def greatest_beta(release: pa.Table) -> float:
    """By the paper's definition."""
    rows = release.to_pylist()
    whole, classes = Counter(row["s"] for row in rows), defaultdict(Counter)
    for row in rows:
        classes[row["x"], row["y"]][row["s"]] += 1
    return max(
        (of_class[ill] / of_class.total()) / (whole[ill] / len(rows)) - 1
        for of_class in classes.values()
        for ill in whole
    )


@examples(40)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(8, 120),
    st.sampled_from(list(WAYS)),
    st.sampled_from([0.25, 1, 2.5]),
    st.sampled_from([{}, {"l": 2}, {"t": 0.5}, {"entity_id": "who"}, {"entity_id": "who", "l": 2}]),
    st.integers(1, 4),
)
def test_every_class_satisfies_it(seed, rows, way, beta, others, fragments):
    random = np.random.default_rng(seed)
    x = random.integers(0, 30, rows)
    table = pa.table(
        {
            "x": x,
            "y": random.integers(0, 9, rows),
            "s": [ILLS[at] for at in (x // 8 + random.integers(0, 2, rows)) % len(ILLS)],
            "who": [f"p{at}" for at in random.integers(0, rows, rows)],
        }
    )
    job = {
        "k": 3,
        "quasi_identifiers": LADDERS if "algorithm" in WAYS[way] else ["x", "y"],
        "sensitive": ["s"],
        "beta_likeness": {"beta": beta},
        "partitioning": {"fragments": fragments},
        **WAYS[way],
        **others,
    }
    with added():
        try:
            release, report = anonymize(table, job)
        except UnattainableError as error:
            assert "β" not in str(error)  # all rows as one class have no gain
            return
    assert greatest_beta(release) <= beta + 1e-9
    assert report["achieved"]["beta_likeness"] == pytest.approx(greatest_beta(release))
    assert release.num_rows == rows


@examples(100)
@given(st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=1, max_size=6))
def test_what_holds_while_cutting_is_what_is_measured_as_written(table):
    """Of codes and of values, which each have an order of their own; also in small steps."""
    counts = np.array(table, np.int64)
    counts = counts[counts.sum(axis=1) > 0]
    if not len(counts):
        return
    values = pa.array(["a", "b", "c", "d"])
    domain = SensitiveDomain("s", values, counts.sum(axis=0))
    order = np.array([0, 3, 1, 4, 2])  # the values as they are written, first come, first
    shuffled = counts[:, order]
    classes, codes = np.nonzero(shuffled)
    written = SensitiveCount(
        values.take(pa.array(order[1:] - 1)),
        *(classes, codes, shuffled[classes, codes], shuffled.sum(axis=0)),
    )
    with added():
        job = Job.from_dict(
            {
                "k": 2,
                "quasi_identifiers": ["q"],
                "sensitive": ["s"],
                "beta_likeness": {"beta": 0.75},
            },
            paths_required=False,
        )
    asked = job.criteria["beta_likeness"]
    cut = CountedCriterion.by(asked, "s")
    holds = cut.holds(counts, domain)
    checked = written_counted.CountedCriterion("s", job, key="beta_likeness", asked=asked)
    whole = SimpleNamespace(class_sizes=counts.sum(axis=1), sensitive={"s": written})
    measured = checked.measure(whole)
    assert holds.tolist() == [each <= 0.75 + 1e-9 for each in measured]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(written_counted, "_MOST_COUNTS", 7)
        assert checked.measure(whole).tolist() == measured.tolist()
    index = np.random.default_rng(0).permutation(counts.size).astype(np.int32)
    in_order = np.empty_like(index)
    in_order[index] = np.arange(counts.size)
    codes = np.tile(np.arange(5), len(counts)).astype(np.int32)[index]
    criteria = Privacy(KAnonymity(1), (cut,)).kernel([domain])
    starts, rows = np.arange(len(counts)) * 5, counts.ravel()[index]
    by_kernel = groups_satisfy(in_order, starts, codes[None], rows, criteria)
    assert by_kernel.tolist() == holds.tolist()


@dataclass(frozen=True, slots=True)
class Close(Criterion):
    """t-closeness by the equal distance, as a package would add it."""

    title = "closeness"
    at_most = True
    most: float = option(text="The greatest distance.")

    @property
    def level(self) -> float:
        return self.most

    def holds(self, counts: Counts) -> Any:
        return self.measure(counts) <= self.most + 1e-9

    def measure(self, counts: Counts) -> Any:
        shares = counts.classes / counts.classes.sum(axis=1, keepdims=True)
        return np.abs(shares - counts.whole / counts.whole.sum()).sum(axis=1) / 2

    def says(self, column: str) -> str:
        return f"closeness of {column}"

    def means(self, columns: str) -> str:
        return "classes are alike."


@pytest.mark.parametrize("way", one_in(2, [*WAYS, "lookahead"]))
def test_its_classes_are_those_of_a_criterion_that_the_kernels_know(way, monkeypatch):
    random = np.random.default_rng(5)
    x = random.integers(0, 300, 1500)
    ills = np.array(ILLS)[(x // 75 + random.integers(0, 2, 1500)) % len(ILLS)]
    table = pa.table({"x": x, "y": random.integers(0, 9, 1500), "s": ills.tolist()})
    chosen = WAYS.get(way, {"cut": "lookahead", "cut_budget_s": 0.01})
    ladders = [{"name": "x", "ladder": [10, 50, 100]}, {"name": "y", "ladder": [3]}]
    job = {
        "k": 3,
        "quasi_identifiers": ladders if "algorithm" in chosen else ["x", "y"],
        "sensitive": ["s"],
        **chosen,
    }
    released, counts = [], []
    # With the estimated costs they would look ahead in different classes.
    monkeypatch.setattr(cut_policy, "COSTS", replace(cut_policy.COSTS, asked=1))
    with added({"close": f"{__name__}:Close"}):
        for asked in ({"t": 0.35}, {"close": {"most": 0.35}}):
            release, report = anonymize(table, {**job, **asked})
            released.append(
                Counter(zip(*release.select(["x", "y"]).to_pydict().values(), strict=True))
            )
            counts.append(report["equivalence_classes"])
    assert released[0] == released[1]
    assert counts[0] > (1 if "partitions" in chosen.get("tds", {}) else 3)


@dataclass(frozen=True, slots=True)
class Odd(Criterion):
    """At least so many rows; what it returns can be spoiled."""

    title = "odd"
    rows: int = option(text="Rows.")
    spoiled: str = option("", text="What is spoiled.")

    @property
    def level(self) -> float:
        return self.rows

    @property
    def min_class_size(self) -> int:
        return self.rows

    def holds(self, counts: Counts) -> Any:
        if self.spoiled == "holds fails":
            return {}[counts.values[1].as_py()]
        holds = counts.classes.sum(axis=1) >= self.rows
        return holds[:0] if self.spoiled == "holds" else holds

    def measure(self, counts: Counts) -> Any:
        if self.spoiled == "measure fails":
            return {}[counts.values[1].as_py()]
        sizes = counts.classes.sum(axis=1).astype(float)
        return sizes * np.nan if self.spoiled == "measure" else sizes

    def says(self, column: str) -> str:
        return f"{self.rows} rows for {column}"

    def means(self, columns: str) -> str:
        return "classes are large."


def released(**odd: Any) -> tuple[pa.Table, dict[str, Any]]:
    table = pa.table({"x": range(40), "s": [("flu", "cold", "ulcer")[at % 3] for at in range(40)]})
    job = {"k": 2, "quasi_identifiers": ["x"], "sensitive": ["s"], "odd": odd}
    with added({"odd": f"{__name__}:Odd"}):
        criterion.sections()
        return anonymize(table, job)


def test_the_minimum_size_of_its_classes_is_that_of_the_cutting():
    release, report = released(rows=9)
    assert min(Counter(release["x"].to_pylist()).values()) >= 9
    assert report["achieved"]["odd"] >= 9


def test_what_the_rows_as_a_whole_break_is_refused():
    with pytest.raises(UnattainableError, match="41 rows for s, so no release can"):
        released(rows=41)


@pytest.mark.parametrize("spoiled", ["holds", "measure"])
def test_a_criterion_that_answers_for_other_classes_is_refused(spoiled):
    with pytest.raises(JobError, match=f"3 rows for s: {spoiled} must return a .* each of"):
        released(rows=3, spoiled=spoiled)


@pytest.mark.parametrize("spoiled", ["holds fails", "measure fails"])
def test_an_unforeseen_error_of_a_criterion_shows_no_value(spoiled):
    with pytest.raises(RuntimeError) as caught:
        released(rows=3, spoiled=spoiled)
    shown = "".join(traceback.format_exception(caught.value))
    assert "KeyError at " in str(caught.value)
    assert "test_counted_criteria.py" in str(caught.value)
    assert not any(ill in shown for ill in ILLS if ill)


@pytest.mark.parametrize(("entity", "says"), [({}, ""), ({"entity_id": "who"}, IN_ROWS)])
def test_it_says_that_it_counts_rows_where_the_job_counts_persons(entity, says):
    job = {"k": 2, "quasi_identifiers": ["q"], "sensitive": ["s"], **entity}
    with added():
        read = Job.from_dict({**job, "beta_likeness": {"beta": 2}}, paths_required=False)
    assert [str(each) for each in criteria_of(read, {})][-1] == f"β-likeness of s, β = 2{says}"
