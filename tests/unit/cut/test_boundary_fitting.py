"""The boundaries of a series: fitted once, kept by every night, fitted anew when it is asked."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.cut.algorithms.mondrian import CutPolicy
from mondrian_ops.cut.anonymizer import Anonymizer
from mondrian_ops.cut.boundary_fitting import NightBoundaries, settle
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.profile import Profiler
from mondrian_ops.datasets.people import people
from mondrian_ops.errors import JobError, StorageError
from mondrian_ops.generalize.series_boundaries import SeriesBoundaries, drift, generalized_by
from mondrian_ops.job.job import Job
from mondrian_ops.job.series_options import Series
from published_text import is_missing
from series_cells import DISCRETE, ORDERED, ends_of, plain_type

SIZES = st.integers(2, 14)


def job_of(*quasi_identifiers, k=2, **series) -> Job:
    job = Job.from_dict({"k": k, "quasi_identifiers": quasi_identifiers}, paths_required=False)
    return replace(job, series=Series(boundaries="stable", **series))


def night(job, table, known=None, number=1, hierarchies=None, refit=False):
    """What a night decides; and its anonymizer."""
    profiler = Profiler(job, table.schema, hierarchies or {})
    profiler.add(table)
    profile = profiler.finish()
    settled = settle(job, profile, hierarchies or {}, table, known, number, refit)
    settled = NightBoundaries.from_json(settled.to_json())  # as it travels
    profile = replace(profile, boundaries=settled.boundaries.arrays(profile.types))
    return settled, Anonymizer(job, profile, hierarchies or {}, CutPolicy("gain"))


@examples(150)
@given(st.data())
def test_every_interval_of_every_night_is_a_union_of_the_cells_of_the_first(data):
    """The oracle writes all unions of cells down: from any cell's start to any cell's end."""
    name = data.draw(st.sampled_from(sorted(ORDERED)))
    kind, type_ = ORDERED[name], plain_type(ORDERED[name])
    job = job_of("q=interval", "other=set")
    known, unions = None, set()
    for number in range(1, 4):
        count = data.draw(SIZES)
        values = data.draw(st.lists(st.none() | kind.values, min_size=count, max_size=count))
        others = data.draw(st.lists(st.sampled_from("ab"), min_size=count, max_size=count))
        table = pa.table({"q": pa.array(values, type_), "other": others})
        settled, anonymizer = night(job, table, known, number)
        assert settled.fitted == ("first" if known is None else "")
        assert settled.boundaries.night == 1
        if known is None:
            known = settled.boundaries
            edges = anonymizer.profile.boundaries["q"]
            probes = [*edges.to_pylist(), *(v for v in values if not is_missing(v))]
            cells = {ends_of(kind, name, edges.to_pylist(), probe) for probe in probes}
            starts, stops = {"(-inf"}, {"inf)"}
            starts |= {start for start, _ in cells}
            stops |= {stop for _, stop in cells}
            below = ends_of(kind, name, edges.to_pylist(), min(probes))[0] if probes else ""
            if probes and below != "(-inf" and name in DISCRETE:
                stops.add(f"{before(below[1:], name)}]")
            elif probes and below != "(-inf":
                stops.add(f"{below[1:]})")
            unions = {f"{start}, {stop}" for start, stop in product(starts, stops)}
            unions |= {start[1:] for start in starts if f"{start[1:]}]" in stops}
        released = anonymizer.release(table).table
        assert set(released["q"].to_pylist()) <= unions | {"*", None}
        assert released.num_rows == count


def before(text: str, name: str) -> str:
    if name == "date":
        return str(np.datetime64(text) - 1)
    return str(int(text) - 1)


def test_the_first_night_loses_at_most_a_tenth_more_for_its_boundaries():
    table = people(8000, 1).select(["age", "income", "visit_date", "sex"])
    settled, _ = night(job_of("age", "income", "visit_date", "sex", k=5), table)
    assert settled.loss <= 1.1 * settled.loss_nightly
    for column in settled.boundaries.columns.values():
        assert 16 <= len(column.values) <= 1024
        assert sum(column.rows) <= table.num_rows


def test_no_boundary_is_the_lowest_value_of_a_single_person():
    incomes = np.random.default_rng(0).normal(30_000, 5_000, 500).round(2)
    incomes[0] = 1203.55
    table = pa.table({"income": incomes})
    settled, _ = night(job_of("income", k=5), table)
    values = settled.boundaries.columns["income"].values
    assert not set(values) & set(incomes.tolist())
    assert values[0] < 1203.55 < values[1]
    assert values[-1] > incomes.max()


def test_a_column_without_values_has_one_cell():
    table = pa.table({"age": pa.array([None] * 4, pa.int64()), "sex": ["m", "f", "m", "f"]})
    settled, _ = night(job_of("age", "sex"), table)
    assert settled.boundaries.columns["age"].values == []
    later = pa.table({"age": [1, 2, 3, 4], "sex": ["m", "f", "m", "f"]})
    _, anonymizer = night(job_of("age", "sex"), later, settled.boundaries, 2)
    assert set(anonymizer.release(later).table["age"].to_pylist()) == {"(-inf, inf)"}


def test_boundaries_are_fitted_anew_by_a_persons_decision_or_above_the_drift_of_the_job():
    job, table = job_of("age"), pa.table({"age": np.arange(2000) % 50})
    settled, _ = night(job, table)
    older = pa.table({"age": np.arange(2000) % 50 + 40})
    kept, _ = night(job, older, settled.boundaries, 2)
    assert (kept.fitted, kept.boundaries) == ("", settled.boundaries)
    assert 0.7 < kept.drift["age"] <= 0.8  # four fifths of the ages are not among the first
    asked, _ = night(job, older, settled.boundaries, 3, refit=True)
    assert (asked.fitted, asked.boundaries.night) == ("asked", 3)
    for limit, fitted in ((0.9, ""), (0.5, "drift")):
        again, _ = night(job_of("age", refit_above=limit), older, settled.boundaries, 4)
        assert again.fitted == fitted
        assert again.drift == kept.drift


@pytest.mark.parametrize("rows", [(500, 500), (40_000, 300)])
def test_chance_is_no_drift(rows):
    generator = np.random.default_rng(3)
    shares = generator.dirichlet(np.ones(60))
    drifts = [drift(*(generator.multinomial(n, shares) for n in rows)) for _ in range(50)]
    assert np.mean(drifts) <= 0.03
    assert drift([10_000, 0], [0, 10_000]) == pytest.approx(1, abs=0.01)
    assert drift([50_000, 50_000], [30_000, 70_000]) == pytest.approx(0.2, abs=0.01)
    assert drift([], []) == drift([5], [0]) == 0


TREE = [["a", "A", "*"], ["b", "A", "*"], ["c", "*"]]


def test_a_night_that_is_generalized_otherwise_is_refused():
    table = pa.table({"q": ["a", "b", "c", "a"], "age": [1, 2, 3, 4]})
    tree = {"q": Hierarchy.from_rows(TREE, "tree.csv")}
    job = job_of("q=hierarchy:tree.csv", "age")
    known = night(job, table, hierarchies=tree)[0].boundaries
    other = {"q": Hierarchy.from_rows([["a", "*"], ["b", "*"], ["c", "*"]], "tree.csv")}
    remedy = r"mondrian_ops series refit"
    with pytest.raises(JobError, match=rf"'q' is generalized by another hierarchy.*{remedy}"):
        night(job, table, known, 2, other)
    with pytest.raises(JobError, match=rf"'q' is generalized by set, not hierarchy.*{remedy}"):
        night(job_of("q=set", "age"), table, known, 2)
    with pytest.raises(JobError, match=rf"'age' is no quasi-identifier any more.*{remedy}"):
        night(job_of("q=hierarchy:tree.csv"), table, known, 2, tree)
    with pytest.raises(JobError, match=rf"'age' has another type than in earlier.*{remedy}"):
        halves = table.set_column(1, "age", pa.array([0.5, 1.5, 2.5, 3.5]))
        night(job, halves, known, 2, tree)
    again, _ = night(job_of("q=set"), table, known, 2, refit=True)
    assert again.fitted == "asked"


def test_grids_and_ladders_are_told_by_their_widths():
    types = {"a": pa.int64(), "b": pa.int64(), "c": pa.string(), "d": pa.float64()}
    job = job_of("a=grid:5@1", "b=ladder:5/10", "c=prefix", "d")
    assert generalized_by(job, types, {}) == {
        "a": "grid 5@1", "b": "ladder 5/10@0", "c": "prefix", "d": "interval"
    }  # fmt: skip


def test_boundaries_of_another_version_are_refused():
    with pytest.raises(StorageError, match="schema version 2, this version reads 1"):
        SeriesBoundaries.from_json({"schema": 2})
