"""Running the job again with stand-ins: what two releases side by side tell.

The attacker knows everybody's name and exact quasi-identifiers, in the order of the source, and
perhaps the sensitive column; runs the same job over them, with the number of the row standing in
for what they want to learn; and takes the n-th row of the real release for the n-th of their own.
Only what decides the order of a release by anything that can be repeated lets that succeed. The
long examples run with the tests of servers.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain

import numpy as np
import pyarrow as pa
import pytest

from adversary import ALGORITHMS, QUASI, Release, name_of, population, released
from mondrian_ops import anonymize
from mondrian_ops.generalize.native import classes as native_classes
from tiers import in_soak, one_here, one_in

PEOPLE = population(1200)
RERUN = (*ALGORITHMS, {"algorithm": "mondrian", "cut": "lookahead"})
ASKED = {
    "nothing sensitive": {},
    "sensitive, without l": {"sensitive": ["diagnosis"]},
    "l = 2": {"sensitive": ["diagnosis"], "l": 2},
}


def stand_ins(table: pa.Table, known: tuple[str, ...]) -> pa.Table:
    """What the attacker has: the columns that are known, each row's number, nothing else."""
    rng = np.random.default_rng(3)
    columns = {
        name: column
        if name in (*QUASI, "row", *known)
        else column.take(pa.array(rng.permutation(table.num_rows)))
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns)


def named(release: Release, again: Release) -> int:
    """Rows of the release that the row at the same place of the other names rightly."""
    return sum(
        row["row"] == other["row"] for row, other in zip(release.rows, again.rows, strict=False)
    )


def check_no_more_than_guesses(found: int, classes: int) -> None:
    # A random order leaves one row of a class in its place on average, with a variance of one.
    assert found <= classes + 4 * math.sqrt(classes)


@pytest.mark.parametrize(
    ("keys", "asked", "fragments"),
    [
        # In CI each algorithm has two of six, in which it meets both numbers of fragments; two
        # algorithms without servers.
        pytest.param(
            *(keys, ASKED[asked], fragments),
            id=f"{name_of(keys)}-{asked}-{fragments}",
            marks=pytest.mark.soak
            if (i + j + (fragments == 4)) % 3
            else pytest.mark.servers
            if i % 5
            else (),
        )
        for i, keys in enumerate(RERUN)
        for j, asked in enumerate(ASKED)
        for fragments in (1, 4)
    ],
)
def test_a_rerun_names_no_more_rows_than_guesses_do(tmp_path, keys, asked, fragments):
    partitioning = {"fragments": fragments, "min_sample": 0, "sample": 0.3}
    job = {"unlisted": "publish", "partitioning": partitioning, **asked, **keys}
    known = stand_ins(PEOPLE, ("diagnosis",))
    release = released(tmp_path / "real", PEOPLE, **job)
    again = released(tmp_path / "again", known, **job)
    check_no_more_than_guesses(named(release, again), len(release.classes()))


@pytest.mark.parametrize(
    "keys", one_here([*RERUN[::2], RERUN[5], *in_soak(RERUN[1:4:2])]), ids=name_of
)
def test_nor_does_one_in_memory(keys):
    job = {"k": 5, "unlisted": "publish", "quasi_identifiers": ["age", "zip=prefix"], **keys}
    if "quasi_identifiers" in keys:
        job["quasi_identifiers"] = [keys["quasi_identifiers"][0], "zip=prefix"]
    table, _ = anonymize(PEOPLE, job)
    again, _ = anonymize(stand_ins(PEOPLE, ()), job)
    found = sum(map(int.__eq__, table["row"].to_pylist(), again["row"].to_pylist()))
    classes = Counter(zip(table["age"].to_pylist(), table["zip"].to_pylist(), strict=True))
    check_no_more_than_guesses(found, len(classes))


@pytest.mark.parametrize(
    "keys",
    [
        RERUN[0],
        *(pytest.param(keys, marks=pytest.mark.servers) for keys in RERUN[2::2]),
    ],
    ids=name_of,
)
def test_without_secrecy_a_rerun_names_them_all(tmp_path, monkeypatch, keys):
    """So that the tests above can fail."""
    monkeypatch.setattr(native_classes.os, "urandom", lambda size: b"\x17" * size)
    job = {"unlisted": "publish", **keys}
    release = released(tmp_path / "real", PEOPLE, **job)
    again = released(tmp_path / "again", stand_ins(PEOPLE, ()), **job)
    assert named(release, again) == len(release.rows)


@pytest.mark.servers
def test_a_tiny_fragment_does_not_fall_to_trying_out_the_sensitive_column(tmp_path):
    """Of six people every assignment of the values can be tried: none stands out by its order."""
    people = PEOPLE.slice(0, 6)
    orders = set()
    for number in range(30):
        release = released(tmp_path / str(number), people, unlisted="publish", k=6)
        orders.add(tuple(row["row"] for row in release.rows))
    assert len(orders) > 22


@pytest.mark.parametrize("keys", one_in(2, [RERUN[2], RERUN[6]]), ids=name_of)
def test_which_of_two_equal_rows_is_in_a_class_is_drawn_by_lot(keys):
    """Relaxed cuts, groups and exchanges part people who have the same quasi-identifiers."""
    rng = np.random.default_rng(2)
    columns = {"age": rng.integers(2, 8, 300) * 10, "children": rng.integers(0, 4, 300)}
    table = pa.table({**columns, "row": np.arange(300)})
    job = {"k": 8, "unlisted": "publish", "quasi_identifiers": ["age", "children"], **keys}
    together, sizes = set(), set()
    for _ in range(20):
        released_rows, _ = anonymize(table, job)
        rows = released_rows.to_pylist()
        classes: dict[str, list[int]] = {}
        for row in rows:
            classes.setdefault(f"{row['age']} {row['children']}", []).append(row["row"])
        sizes.add(tuple(sorted((label, len(each)) for label, each in classes.items())))
        together.add(tuple(sorted(tuple(sorted(each)) for each in classes.values())))
    assert len(sizes) == 1  # the same classes
    assert len(together) > 1  # of other people


@pytest.mark.servers
def test_neither_names_nor_order_of_the_parts_tell_their_fragments(tmp_path):
    """A rerun knows each fragment's people; the order of files would tell which file is whose."""
    job = {"partitioning": {"fragments": 4, "min_sample": 0, "sample": 0.3}, "unlisted": "publish"}
    orders, names = set(), []
    for number in range(12):
        release = released(tmp_path / str(number), PEOPLE, cut="median", **job)
        rows = [
            [row["row"] for row, file in zip(release.rows, release.files, strict=True) if file == n]
            for n in sorted(set(release.files))
        ]
        orders.add(tuple(min(each) for each in rows))
        names += release.files
    assert len(orders) > 4  # of 24
    assert len(set(names)) == 12 * 4


@pytest.mark.servers
@pytest.mark.parametrize("asked", [{}, {"l": 2}, {"t": 0.9}], ids=["k", "l", "t"])
def test_relaxed_cuts_do_not_deal_out_equal_rows_by_their_sensitive_values(asked):
    """Two people of 20 and two of 60 share classes with some of the forty of 40.

    If those were the ones that earn least, or most, the other incomes would be the two people's.
    """
    ages = np.array([20] * 2 + [40] * 40 + [60] * 2)
    right = chance = 0.0
    for seed in range(40):
        incomes = np.random.default_rng(seed).permutation(1000)[: len(ages)]
        job = {"k": 5, "quasi_identifiers": ["age"], "sensitive": ["income"], "relaxed": True}
        released_rows, _ = anonymize(pa.table({"age": ages, "income": incomes}), {**job, **asked})
        rows = released_rows.to_pylist()
        for label, age, guess in (("[20, 40]", 20, slice(-2, None)), ("[40, 60]", 60, slice(2))):
            published = sorted(row["income"] for row in rows if row["age"] == label)
            right += len({*published[guess]} & {*incomes[ages == age].tolist()})
            chance += 2 * 2 / len(published)
    assert right <= chance + 4 * math.sqrt(chance)


@pytest.mark.parametrize("asked", [{}, {"l": 2}], ids=["k", "l"])
@pytest.mark.parametrize("keys", one_in(2, [RERUN[2], RERUN[6]]), ids=name_of)
def test_no_class_gets_the_least_or_greatest_sensitive_values_of_equal_rows(keys, asked):
    """Wherever rows of the same quasi-identifiers come into several classes."""
    rng = np.random.default_rng(5)
    parted = extreme = chance = 0.0
    for _ in range(4):
        columns = {"age": rng.integers(20, 50, 600), "children": rng.integers(0, 4, 600)}
        table = pa.table({**columns, "income": rng.permutation(600), "row": np.arange(600)})
        job = {"k": 8, "quasi_identifiers": ["age", "children"], "sensitive": ["income"]}
        rows, _ = anonymize(table, {**job, "unlisted": "publish", **asked, **keys})
        of_people: dict[tuple[int, int], dict[str, list[int]]] = {}
        for row in rows.to_pylist():
            person = columns["age"][row["row"]], columns["children"][row["row"]]
            classes = of_people.setdefault(person, {})
            classes.setdefault(f"{row['age']} {row['children']}", []).append(row["income"])
        for classes in of_people.values():
            every = sorted(chain(*classes.values()))
            few = sorted(min(classes.values(), key=len))
            if len(classes) > 1:
                parted += 1
                extreme += few in (every[: len(few)], every[-len(few) :])
                chance += 2 / math.comb(len(every), len(few))
    assert parted > 10
    assert extreme <= chance + 4 * math.sqrt(chance)
