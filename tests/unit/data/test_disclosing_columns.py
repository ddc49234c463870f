"""Disclosing columns: against their definitions in plain Python, and on known cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.samples import table as every_type
from hypothesis_profiles import examples
from mondrian_ops.data import disclosing_columns
from mondrian_ops.data.disclosing_columns import Followed, comparable, confirmed, survey
from mondrian_ops.data.finding import Finding
from mondrian_ops.datasets.people import people
from mondrian_ops.datasets.poker import poker
from mondrian_ops.job.job import Job
from shared_data import shared_data

K = 5


def job_of(quasi: Sequence[str], sensitive: Sequence[str] = (), **keys: Any) -> Job:
    described = {"k": K, "quasi_identifiers": list(quasi), "sensitive": list(sensitive), **keys}
    return Job.from_dict({"unlisted": "publish", **described}, paths_required=False)


def found_in(table: pa.Table, job: Job, sample: int | None = None, seed: int = 1) -> list[Finding]:
    """The findings in a table of which a random sample is surveyed, in batches of odd sizes."""
    rows = table.num_rows
    random = np.random.default_rng(seed)
    chosen = np.sort(random.choice(rows, sample or rows, replace=False))
    named = {*job.quasi_identifier_names, job.entity_id}
    raw = [name for name in table.column_names if name not in named]
    surveyed = survey(job, raw, table.take(pa.array(chosen)), rows)
    followed: dict[str, Followed] = {}
    for first, stop in pairwise([0, 7, 300, *range(1000, rows, 900), rows]):
        for batch in table[first:stop].combine_chunks().to_batches():
            for watch in surveyed.watched:
                part = watch.follow(batch, first, job.entity_id)
                part = Followed.from_table(part.to_table())
                earlier = followed.get(watch.column)
                followed[watch.column] = part if earlier is None else earlier.added(part)
    return confirmed(surveyed, followed, job.entity_id is not None)


def names(findings: Sequence[Finding]) -> set[tuple[str, str | None, str]]:
    return {(each.column, each.quasi_identifier, each.how) for each in findings}


# By the definitions


def expected(column: list[Any], quasi: list[Any], fewer_than: int) -> Iterator[tuple[str, float]]:
    """What a column undoes, each row compared with all others."""
    rows = range(len(column))
    rivals = [Counter(quasi[j] for j in rows if j != i and column[j] == column[i]) for i in rows]
    alone = sum(each.total() + 1 < fewer_than for each in rivals) / len(column)
    if alone >= 0.5:
        yield "alone", alone
    guess = Counter(quasi).most_common(1)[0][1]
    if len(column) - guess < 10:
        return
    right = sum(
        each[own] > max([count for value, count in each.items() if value != own], default=0)
        for own, each in zip(quasi, rivals, strict=True)
    )
    unique = sum(not each for each in rivals)
    saved = right - guess + Fraction(unique * guess, len(column))
    if saved / (len(column) - guess) >= Fraction(9, 10):
        yield "value", right / len(column)


VALUES = st.sampled_from([None, "a", "b", "c", "d"])


@examples(200)
@given(
    st.lists(st.tuples(VALUES, VALUES), min_size=12, max_size=40),
    st.booleans(),
    st.integers(0, 5),
)
def test_values_as_defined(rows, determined, exceptions) -> None:
    column = [value for value, _ in rows]
    quasi = [own if at < exceptions or not determined else value
             for at, (value, own) in enumerate(rows)]  # fmt: skip
    table = pa.table({"q": pa.array(quasi, pa.string()), "c": pa.array(column, pa.string())})
    shares = {each.how: each.share for each in found_in(table, job_of("q"))}
    shares.pop("order", None)
    wanted = dict(expected(column, quasi, K))
    assert shares.keys() == wanted.keys()
    for how, share in wanted.items():
        assert shares[how] == pytest.approx(share)


@examples(100)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=30).filter(lambda each: len({*each}) > 1))
def test_xi_as_chatterjee_defines_it(codes: list[int]) -> None:
    def xi(ordered: list[int]) -> float:
        rows = len(ordered)
        upto = [sum(other <= own for other in ordered) for own in ordered]
        above = [sum(other >= own for other in ordered) for own in ordered]
        steps = sum(abs(b - a) for a, b in pairwise(upto))
        return 1 - rows * steps / (2 * sum(each * (rows - each) for each in above))

    greatest = xi(sorted(codes))
    if greatest > 1e-9:
        assert disclosing_columns._xi(np.array(codes)) == pytest.approx(xi(codes) / greatest)


@examples(30)
@given(st.integers(0, 2**32 - 1))
def test_a_sample_and_a_pass_find_what_all_rows_show(seed: int) -> None:
    """The decisions, where no figure is near its threshold; and the figures to a few points."""
    random = np.random.default_rng(seed)
    rows, size = 4000, int(random.choice([1, 2, 8, 40, 400]))
    column = np.arange(rows) // size
    quasi = np.where(random.random(rows) < random.choice([0, 0.02, 0.5]),
                     random.integers(0, 20, rows), column * 7 % 20)  # fmt: skip
    order = random.permutation(rows)
    coded = random.permutation(rows)[column[order]]
    table = pa.table({"q": quasi[order], "c": [f"c{each}" for each in coded]})
    whole, sampled = (found_in(table, job_of("q"), size) for size in (None, 1000))
    assert names(sampled) == names(whole)
    for one, other in zip(sampled, whole, strict=True):
        assert one.share == pytest.approx(other.share, abs=0.05)


# Known cases


def counties(rows: int = 3000, seed: int = 0) -> pa.Table:
    """As in a published extract of election results: some columns are functions of others."""
    random = np.random.default_rng(seed)
    popul = random.lognormal(10, 1.5, rows).astype(np.int64)
    state = random.integers(0, 50, rows)
    return pa.table(
        {
            "popul": popul,
            "state": state,
            "logpopul": np.log(popul),
            "capital": [f"c{each * 37 % 50}" for each in state],
            "popul_about": popul // 1000 * 1000,
            "turnout": random.integers(30, 90, rows),
            "winner": np.where(random.random(rows) < 0.6, "A", "B"),
        }
    )


@pytest.mark.parametrize("sample", [None, 1000])
def test_functions_of_a_quasi_identifier_are_found_and_nothing_else(sample) -> None:
    found = found_in(counties(), job_of(["popul", "state"], ["winner", "turnout"]), sample)
    assert {each for each in names(found) if each[1]} == {
        ("logpopul", "popul", "order"),
        ("popul_about", "popul", "order"),
        ("capital", "state", "value"),
    }
    assert {each.column for each in found if each.how == "alone"} == {"logpopul"}
    (logarithm,) = (each for each in found if names([each]) == {("logpopul", "popul", "order")})
    assert logarithm.share > 0.999


def test_what_decreases_or_has_steps_is_found_by_its_order() -> None:
    age = np.random.default_rng(0).integers(18, 90, 3000)
    birthday = (2025 - age) * 365 - np.random.default_rng(1).integers(0, 365, 3000)
    table = pa.table({"age": age, "decade": age // 10, "birthday": birthday})
    found = names(found_in(table, job_of(["age", "decade"])))
    assert {("birthday", "age", "order"), ("birthday", "decade", "order")} <= found


def test_noise_ends_what_is_found() -> None:
    """Correlations such as that of age and income, or height and weight, are not dependencies."""
    random = np.random.default_rng(0)
    one, noise = random.normal(size=(2, 5000))
    for correlation, is_found in ((0.7, False), (0.95, False), (0.98, False), (0.999, True)):
        other = correlation * one + np.sqrt(1 - correlation**2) * noise
        found = found_in(pa.table({"one": one, "other": other}), job_of(["one"]))
        assert (("other", "one", "order") in names(found)) is is_found


def test_what_nearly_all_rows_share_is_not_given_away() -> None:
    """Any column determines a constant one, and nearly determines one that is nearly constant."""
    random = np.random.default_rng(0)
    rare = (random.random(5000) < 0.01).astype(int)
    table = pa.table({"same": [1] * 5000, "rare": rare, "c": random.integers(0, 9, 5000)})
    assert found_in(table, job_of(["same", "rare"])) == []
    few = pa.table({"rare": [0] * 4991 + [1] * 9, "c": [0] * 4991 + [1] * 9})
    assert found_in(few, job_of(["rare"])) == []


def test_unique_values_determine_nothing_by_chance() -> None:
    random = np.random.default_rng(0)
    table = pa.table({"q": random.integers(0, 4, 4000), "c": random.permutation(4000)})
    for sample in (None, 1000):
        assert names(found_in(table, job_of(["q"]), sample)) == {("c", None, "alone")}


def test_values_that_are_unique_in_a_sample_only() -> None:
    """400 values of ten rows each: a sample of 200 rows sees most of them once."""
    random = np.random.default_rng(0)
    codes = random.permutation(np.arange(4000) // 10)
    household = random.integers(0, 9, 400)
    table = pa.table({"zip": household[codes], "c": random.permutation(400)[codes]})
    assert names(found_in(table, job_of(["zip"]), 200)) == {("c", "zip", "value")}
    other = table.set_column(0, "zip", pa.array(random.integers(0, 9, 4000)))
    assert found_in(other, job_of(["zip"]), 200) == []


def test_the_rows_of_a_person_do_not_predict_each_other() -> None:
    """A weight that one patient has in all of five visits says nothing of anybody else's age."""
    random = np.random.default_rng(0)
    patient = random.permutation(np.arange(4000) // 5)
    weight, age = random.permutation(800), random.integers(20, 90, 800)
    table = pa.table({"age": age[patient], "weight": weight[patient], "patient": patient})
    by_row, by_person = job_of(["age"], ["weight", "patient"]), job_of(["age"], ["weight"])
    by_person = Job.from_dict({**by_person.to_dict(), "entity_id": "patient"}, paths_required=False)
    for sample in (None, 1500):
        assert ("weight", "age", "value") in names(found_in(table, by_row, sample))
        assert names(found_in(table, by_person, sample)) == {("weight", None, "alone")}


def test_a_large_k_does_not_make_a_sensitive_column_single_out_rows() -> None:
    """A hundred diagnoses of forty people each, at k = 50: an unlisted column would, though."""
    table = pa.table({"q": [*range(100)] * 40, "diagnosis": np.arange(4000) // 40})
    assert found_in(table, job_of(["q"], ["diagnosis"], k=50)) == []
    (found,) = found_in(table, job_of(["q"], k=50))
    assert (found.how, found.share, found.fewer_than) == ("alone", 1.0, 50)


def examples_of_jobs() -> Iterator[tuple[pa.Table, list[str]]]:
    """Ordinary data, each with its sensitive columns."""
    for rows in (1000, 20_000):
        yield people(rows, 1).drop_columns("name"), ["diagnosis", "income", "occupation"]
    yield poker(20_000, 1), ["hand"]


def test_ordinary_sensitive_columns_are_not_warned_of() -> None:
    for table, sensitive in examples_of_jobs():
        quasi = [name for name in table.column_names if name not in sensitive]
        assert found_in(table, job_of(quasi, sensitive)) == []


def test_nor_those_of_adult() -> None:
    """Husbands are men and most of them married: 64 % of the error is not nearly all of it."""
    table = pa.csv.read_csv(shared_data("adult/adult_uci.csv"))
    sensitive = ["occupation", "relationship", "income", "capital-gain", "capital-loss"]
    quasi = [name for name in table.column_names if name not in sensitive]
    assert found_in(table, job_of(quasi, sensitive)) == []
    assert found_in(table, job_of(quasi, sensitive), 20_000) == []


# Columns of any type


def test_columns_of_every_type() -> None:
    """Each type that can be compared is found to determine its copy; lists and structs cannot."""
    table = every_type()
    refused = {name for name in table.column_names if not comparable(table.schema.field(name).type)}
    assert refused == {"list", "struct", "map"}
    assert comparable(pa.float16()) and not comparable(pa.sparse_union([table.schema.field(0)]))
    for name in table.column_names:
        column = table[name]
        if name in refused or len({*map(str, column.to_pylist())} - {"nan", "None"}) < 2:
            continue
        pair = pa.table({"q": column, "c": column})
        job = job_of(["q"])
        for sample in (None, 300):
            found = names(found_in(pair, job, sample))
            assert found & {("c", "q", "value"), ("c", "q", "order")}, name


def test_missing_values_are_values() -> None:
    random = np.random.default_rng(0)
    group = random.integers(0, 4, 4000)
    missing = pa.array(group.astype(float), mask=group == 0)
    table = pa.table({"q": group, "c": missing})
    for sample in (None, 1000):
        assert ("c", "q", "value") in names(found_in(table, job_of(["q"]), sample))
