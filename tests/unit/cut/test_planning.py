"""From profile and sample to a draft: how large fragments may be, what travels between tasks."""

from __future__ import annotations

import csv
import datetime as dt
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.cut import planning
from mondrian_ops.cut.planning import Draft
from mondrian_ops.cut.routing import Router
from mondrian_ops.cut.small_fragments import merge_small
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.profile import Profiler
from mondrian_ops.engines.scan import Counting
from mondrian_ops.errors import JobError, PrivacyError, UnattainableError
from mondrian_ops.job.job import Job
from published_text import KINDS, TREE_FILE, is_missing
from tiers import one_in

TREES = {"q0": Hierarchy.from_rows(csv.reader(TREE_FILE.split(), delimiter=";"), "tree.csv")}


def job_of(listed: list[str], partitioning: dict[str, Any], **keys: Any) -> Job:
    described = {"k": 2, "quasi_identifiers": listed, "partitioning": partitioning, **keys}
    return Job.from_dict(described, paths_required=False)


def drafted(job: Job, table: pa.Table) -> Draft:
    trees = {q.name: TREES[q.name] for q in job.quasi_identifiers if q.hierarchy is not None}
    profiler = Profiler(job, table.schema, trees)
    profiler.add(table)
    rows = table.num_rows
    sample = planning.chosen_rows(rows, planning.sample_size(job, rows), job.partitioning.seed)
    return planning.draft(job, profiler.finish(), trees, table.take(sample), table)


def leaf_of(draft: Draft, job: Job, table: pa.Table) -> np.ndarray:
    return Router(draft.plan, draft.anonymizer(job, TREES).orders).route(table)


@st.composite
def tables(draw):
    """A table of some kinds of columns, and how its quasi-identifiers are listed."""
    count = draw(st.integers(4, 60))
    columns, listed, told_apart = {}, [], False
    for at in range(draw(st.integers(1, 3))):
        kind = KINDS[draw(st.sampled_from(list(KINDS)))]
        values = draw(st.lists(st.none() | kind.values, min_size=count, max_size=count))
        plain = kind.type
        if pa.types.is_dictionary(plain):
            columns[f"q{at}"] = pa.array(values, plain.value_type).dictionary_encode().cast(plain)
        else:
            columns[f"q{at}"] = pa.array(values, plain)
        ways = [way for way in kind.ways if at == 0 or "hierarchy" not in way]
        listed.append(f"q{at}={draw(st.sampled_from(ways))}")
        told_apart |= len({None if is_missing(value) else value for value in values}) > 1
    assume(told_apart)  # quasi-identifiers that are all constant are refused
    return pa.table(columns), listed


@examples(150)
@given(tables(), st.integers(1, 6), st.integers(1, 70), st.sampled_from(["median", "gain"]))
def test_fragments_that_are_too_large_are_cut_further(case, fragments, most, cut):
    """On the whole dataset: into nodes of the same tree, until each fits or no cut is left."""
    table, listed = case
    options = {"fragments": fragments, "sample": 1.0}
    job = job_of(listed, options, cut=cut)
    limited = job_of(listed, {**options, "max_rows": most}, cut=cut)
    coarse, fine = drafted(job, table), drafted(limited, table)
    assert fine.cut == coarse.cut
    leaves, pieces = leaf_of(coarse, job, table), leaf_of(fine, limited, table)
    for piece in set(pieces):
        assert len(set(leaves[pieces == piece])) == 1
    sizes = np.bincount(pieces, minlength=fine.plan.leaves)
    assert sizes.min() >= job.k
    for piece in np.flatnonzero(sizes > most):
        assert not can_be_cut(fine, limited, table.filter(pa.array(pieces == piece)))
    if most >= np.bincount(leaves).max():
        assert fine.plan == coarse.plan


def can_be_cut(draft: Draft, job: Job, rows: pa.Table) -> bool:
    anonymizer = draft.anonymizer(job, TREES)
    tree = anonymizer.cut.tree(anonymizer.encode(rows))
    return tree.cut(0, rows.num_rows)[0] >= 0


@pytest.mark.parametrize("strategy", ["multidimensional", "quantile"])
@pytest.mark.parametrize("sample", [1.0, 0.05])
@pytest.mark.parametrize("most", [50, 333, 4_999, 5_000])
def test_no_fragment_of_many_different_values_is_too_large(strategy, sample, most):
    numbers = np.random.default_rng(5).permutation(5_000)
    table = pa.table({"x": numbers, "y": numbers[::-1]})
    partitioning = {
        "strategy": strategy,
        "sample": sample,
        "min_sample": 0,
        "fragments": 2,
        "max_rows": most,
    }
    job = job_of(["x", "y"], partitioning)
    sizes = np.bincount(leaf_of(drafted(job, table), job, table))
    assert len(sizes) >= max(2, -(-5_000 // most))
    assert sizes.max() <= most


@pytest.mark.parametrize("seed", one_in(4, range(20)))
def test_a_sample_is_large_enough_for_its_fragments_to_fit(seed):
    numbers = np.random.default_rng(seed).normal(size=100_000)
    table = pa.table({"x": numbers, "y": numbers[::-1]})
    partitioning = {"sample": 0.0001, "min_sample": 0, "max_rows": 10_000, "seed": seed}
    job = job_of(["x", "y"], {**partitioning, "fragments": 1}, cut="median")
    draft = drafted(job, table)
    assert draft.sample_rows == 4_000
    assert 10 <= draft.plan.leaves <= 16
    assert np.bincount(leaf_of(draft, job, table)).max() <= 10_000


def test_quantiles_that_max_rows_asks_for_but_the_values_have_not():
    table = pa.table({"x": np.arange(100) % 3})
    job = job_of(["x"], {"strategy": "quantile", "fragments": 2, "max_rows": 20, "sample": 1.0})
    with pytest.raises(JobError, match="at most 3 fragment"):
        drafted(job, table)


# What travels


@examples(150)
@given(tables(), st.integers(1, 6), st.sampled_from(["median", "gain", "lookahead"]))
def test_a_draft_travels_as_a_table(case, fragments, cut):
    table, listed = case
    job = job_of(listed, {"fragments": fragments, "sample": 1.0}, cut=cut)
    draft = drafted(job, table)
    sink = pa.BufferOutputStream()
    sent = draft.to_table()
    with pa.ipc.new_stream(sink, sent.schema) as stream:
        stream.write_table(sent)
    result = Draft.from_table(pa.ipc.open_stream(sink.getvalue()).read_all())
    assert (result.cut, result.plan, result.sample_rows) == (
        draft.cut,
        draft.plan,
        draft.sample_rows,
    )
    assert result.profile.rows == draft.profile.rows
    assert result.profile.types == draft.profile.types
    for name, domain in draft.profile.domains.items():
        assert result.profile.domains[name].equals(domain)
    assert leaf_of(result, job, table).tolist() == leaf_of(draft, job, table).tolist()


def test_a_draft_holds_no_value_of_the_sample_but_domains_and_cuts():
    """Of intervals, the ends of the range: what comes back of a dataset is small."""
    start = dt.date(2000, 1, 1)
    days = pa.array([start + dt.timedelta(n) for n in range(4_000)])
    table = pa.table({"x": np.arange(4_000), "day": days})
    job = job_of(["x", "day"], {"fragments": 3, "sample": 1.0})
    sent = drafted(job, table).to_table()
    assert sent.nbytes + len(json.dumps(str(sent.schema.metadata))) < 4_000


@pytest.mark.parametrize("algorithm", ["mondrian", "di_mondrian", "tds", "samarati"])
@pytest.mark.parametrize("nothing", [None, "", " \u00a0"])
def test_where_values_are_missing_the_error_says_what_to_do(algorithm, nothing):
    """And where counting the missing ones as a value is asked for, there are enough."""
    table = pa.table({"q": [1, 1, 2, 2, 2], "s": ["flu", "flu ", nothing, nothing, "\ufb02u"]})
    job = job_of(["q"], {}, l=2, sensitive=["s"], algorithm=algorithm)
    with pytest.raises(PrivacyError) as caught:
        drafted(job, table)
    assert str(caught.value) == (
        "l: the sensitive column 's' has 1 distinct value(s), fewer than l = 2; lower l or choose "
        "another column; values that are missing, empty or blank (2 of column 's') do not count "
        "towards l: fill them in, or set missing_sensitive: value"
    )
    assert drafted(replace(job, missing_sensitive="value"), table)
    with pytest.raises(PrivacyError, match=r"2 distinct value\(s\), fewer than l = 3; .*column$"):
        drafted(replace(job, missing_sensitive="value", l=3), table)


@pytest.mark.parametrize("keys", [{"diversity": "entropy"}, {"diversity": "recursive", "c": 1}])
def test_values_may_be_enough_and_not_diverse_enough(keys):
    values = ["flu"] * 3 + ["cold"] + [None] * 3
    table = pa.table({"q": range(7), "s": values, "other": ["x", "y"] * 3 + ["x"]})
    keys = {**keys, "l": 2, "sensitive": ["s", "other"]}
    job = job_of(["q"], {}, **keys)
    with pytest.raises(
        PrivacyError, match=r"as one equivalence class .*\(3 of column 's'\) do not count"
    ):
        drafted(job, table)


@pytest.mark.parametrize("algorithm", ["mondrian", "di_mondrian", "tds", "samarati"])
def test_where_too_many_values_are_similar_the_error_names_the_greatest_l(algorithm):
    pay = [0.0] * 3 + [100.0, 108.0, 200.0, 300.0, 400.0, 500.0, None]
    table = pa.table({"q": range(10), "pay": pay})
    keys = {"algorithm": algorithm, "sensitive": ["pay"], "l_width": {"pay": "10 %"}}
    missing = (
        "; values that are missing, empty or blank (1 of column 'pay') do not count towards l: "
        "fill them in, or set missing_sensitive: value"
    )
    with pytest.raises(UnattainableError) as caught:
        drafted(job_of(["q"], {}, l=4, **keys), table)
    assert str(caught.value) == (
        "l_width: 33.3% of all rows have values of 'pay' within 10 % of one another, and no class "
        f"may have more than 1/4; lower l to 3, or set a smaller width{missing}"
    )
    assert drafted(job_of(["q"], {}, l=3, **keys), table)
    assert drafted(job_of(["q"], {}, l=3, **keys, missing_sensitive="value"), table)
    keys["l_width"] = {"pay": "95 %"}
    with pytest.raises(UnattainableError, match=r"66\.7% of .*, so no l can hold; set a smaller"):
        drafted(job_of(["q"], {}, l=2, **keys), table)


def test_an_error_says_nothing_of_missing_values_where_there_are_none():
    table = pa.table({"q": [1, 2, 3], "s": ["flu"] * 3, "other": ["x", "y", None]})
    with pytest.raises(PrivacyError, match=r"choose another column$"):
        drafted(job_of(["q"], {}, l=2, sensitive=["s"]), table)
    with pytest.raises(PrivacyError, match=r"raise t$"):
        drafted(job_of(["q"], {}, k=4, t=0.1, sensitive=["other"]), table)


def test_fragments_are_merged_until_enough_of_their_values_are_there():
    """Each leaf has two spellings and missing values: only both together have two values."""
    table = pa.table(
        {
            "q": [1] * 4 + [9] * 4,
            "s": ["flu", " flu", None, "", "cold", "cold\u00a0", "\t", None],
        }
    )
    for missing, fragments in (("no_value", 1), ("value", 2)):
        keys = {"l": 2, "sensitive": ["s"], "missing_sensitive": missing}
        job = job_of(["q"], {"fragments": 2, "min_sample": 0, "sample": 1.0}, **keys)
        unasked = job_of(["q"], {"fragments": 2, "sample": 1.0})
        draft = drafted(job, table)
        plan = drafted(unasked, table).plan
        assert plan.leaves == 2
        counting = Counting(draft.anonymizer(job, {}), plan)
        counts = counting.zeros()
        counts.add(counting.count(next(counting.blocks(table.to_batches())))[0])
        merged = merge_small(draft.anonymizer(job, {}), plan, counts)
        assert len(merged.fragments) == fragments


def test_threads_start_at_once():
    result, why = planning.choose_fragments(job_of(["q0"], {}), 1000, 0.2, planning.Slots(8, 0.05))
    assert result == 4
    assert "at least 0.05 s per task" in why


@pytest.mark.parametrize(
    ("rows", "seconds", "slots", "fragments"),
    [
        (432, 0.001, 16, 1),  # cut faster than a task starts
        (30_000, 3.9, 16, 1),
        (30_000, 4.0, 16, 2),
        (1_000_000, 4.5, 2, 2),
        (100_000_000, 0.0, 64, 4),  # to read and write them is work too
        (100_000_000, 20.0, 64, 14),
        (100_000_000, 20.0, 8, 8),
    ],
)
def test_fragments_are_as_many_as_have_work_and_run_at_once(rows, seconds, slots, fragments):
    job = job_of(["q0", "q1"], {})
    result, why = planning.choose_fragments(job, rows, seconds, planning.Slots(slots))
    assert result == fragments
    assert why.startswith("auto: about ") and why.endswith(f", at most {slots} of them")
    fixed = job_of(["q0", "q1"], {"fragments": 5})
    assert planning.choose_fragments(fixed, rows, seconds, planning.Slots(slots)) == (5, "")
