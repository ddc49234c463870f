"""A person with several rows: classes in which all persons share a diagnosis, though rows do not.

A. Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", TKDD 1(1), 2007, where each
person has one row; here persons visit a clinic several times.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import anonymize, pipeline
from mondrian_ops.cut.person_values import PersonsValues
from mondrian_ops.errors import PrivacyError
from mondrian_ops.stores import load_job
from tiers import in_soak, one_here

ILLS = 16


def visits(people: int = 600, each: int = 5, seed: int = 0) -> pa.Table:
    """Visits of people; common diagnoses are those that most people have at some time."""
    random = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), each)
    age, area = random.integers(18, 90, people), random.integers(10_000, 10_400, people)
    share = 1 / np.arange(1, ILLS + 1)
    ills = random.choice(ILLS, len(person), p=share / share.sum())
    order = random.permutation(len(person))
    return pa.table(
        {
            "patient": person[order],
            "age": age[person][order],
            "zip": area[person][order],
            "diagnosis": [f"ill{each}" for each in ills[order]],
            "row": np.arange(len(person)),
        }
    )


JOB = {"k": 3, "l": 2, "quasi_identifiers": ["age", "zip"], "sensitive": ["diagnosis"],
       "entity_id": "patient", "cut": "median", "unlisted": "publish"}  # fmt: skip


def known(released: pa.Table, table: pa.Table, values: int = 1) -> float:
    """The share of people who are in a class in which each person has one of so many values."""
    person = dict(zip(table["row"].to_pylist(), table["patient"].to_pylist(), strict=True))
    classes: dict[tuple[str, str], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in released.to_pylist():
        classes[row["age"], row["zip"]][person[row["row"]]].add(row["diagnosis"])
    told, everybody = 0, 0
    for people in classes.values():
        ills = set().union(*people.values())
        told += len(people) * any(
            all(its & {*some} for its in people.values()) for some in combinations(ills, values)
        )
        everybody += len(people)
    return told / everybody


def without_persons_values(monkeypatch) -> None:
    """As it was, when l counted rows."""
    monkeypatch.setattr("mondrian_ops.cut.anonymizer.joined", lambda classes, *_: classes)
    monkeypatch.setattr("mondrian_ops.engines.fragment.check_persons_values", lambda *_: None)
    monkeypatch.setattr(PersonsValues, "concern", lambda *_: False)


RECODING = [
    {"algorithm": "samarati", "samarati": {"max_suppressed": 0.02}},
    {"algorithm": "samarati", "samarati": {"choice": "optimal", "max_suppressed": 0}},
    {"algorithm": "tds", "tds": {"partitions": 1}},
    {"algorithm": "tds", "tds": {"partitions": 3}},
]
LADDERS = ["age=ladder:2/6/18", "zip=ladder:10/50/200"]


@pytest.mark.parametrize(
    "keys",
    one_here([{"l": 2}, {"l": 3}, {"l": 2, "diversity": "entropy"}, *in_soak([{"l": 2, "k": 10}]),
              {"l": 2, "algorithm": "di_mondrian"}]),
    ids=str,
)  # fmt: skip
def test_no_class_has_values_that_all_of_its_persons_share(monkeypatch, keys):
    table, job = visits(), {**JOB, **keys}
    if "algorithm" in keys:
        del job["cut"]
    released, report = anonymize(table, job)
    assert known(released, table, int(keys["l"]) - 1) == 0
    assert report["achieved"]["k"] >= job["k"]
    without_persons_values(monkeypatch)
    if keys == {"l": 2}:
        assert known(anonymize(table, job)[0], table, 1) > 0.05


@pytest.mark.parametrize(
    ("keys", "level"),
    [
        *one_here(zip(RECODING[1::2], [3, 2], strict=True)),
        *in_soak(zip(RECODING[::2], [2, 3], strict=True)),
    ],
    ids=str,
)
def test_where_columns_are_recoded_as_a_whole(monkeypatch, tmp_path, keys, level):
    table = visits(900, each=3)
    job = {**JOB, **keys, "l": level, "quasi_identifiers": LADDERS}
    del job["cut"]
    released, report = anonymize(table, job)
    assert known(released, table, level - 1) == 0
    assert report["equivalence_classes"] > 1
    pq.write_table(table, tmp_path / "in.parquet")
    paths = {"input": f"{tmp_path}/in.parquet", "output": f"{tmp_path}/release"}
    pipeline.run(load_job({**job, **paths, "partitioning": {"fragments": 3}}))
    assert known(pq.read_table(tmp_path / "release"), table, level - 1) == 0
    without_persons_values(monkeypatch)
    assert known(anonymize(table, job)[0], table, level - 1) > 0
    # The check finds it whole, though each file may have a part of a class only.
    with pytest.raises(PrivacyError, match=r"l: in \d+ of \d+ classes of the release each person"):
        pipeline.run(load_job({**job, **paths, "partitioning": {"fragments": 3}}))


def test_in_files_too(tmp_path):
    table = visits()
    pq.write_table(table, tmp_path / "in.parquet")
    paths = {"input": f"{tmp_path}/in.parquet", "output": f"{tmp_path}/release"}
    pipeline.run(load_job({**JOB, **paths, "partitioning": {"fragments": 4}}))
    assert known(pq.read_table(tmp_path / "release"), table) == 0


def test_what_was_not_joined_is_refused_by_the_check(monkeypatch, tmp_path):
    """Which shares no code with the joining."""
    monkeypatch.setattr("mondrian_ops.cut.anonymizer.joined", lambda classes, *_: classes)
    with pytest.raises(PrivacyError, match=r"^l: in \d+ of \d+ classes of the released table"):
        anonymize(visits(), JOB)


def test_people_who_all_share_a_value_are_refused():
    table = visits(20)
    ills = table["diagnosis"].to_pylist()
    first = {}
    for at, person in enumerate(table["patient"].to_pylist()):
        first.setdefault(person, at)
    for at in first.values():
        ills[at] = "ill0"
    table = table.set_column(3, "diagnosis", pa.array(ills))
    with pytest.raises(PrivacyError, match="each person has one of 1 value"):
        anonymize(table, JOB)


# Numbers and dates, whose values count as similar within a width


def wages(people: int = 2200, seed: int = 0) -> pa.Table:
    """Wages of people, some of whom have many like ones, and a far lower one once or twice.

    By rows a class may then be spread, although most of its persons were paid the low wage.
    """
    random = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), random.integers(2, 6, people))
    age, area = random.integers(18, 90, people), random.integers(10_000, 10_400, people)
    base = 10_000 * np.exp(random.uniform(0, 4, people))
    first = np.append(True, np.diff(person) > 0)
    low = first & (random.random(people) < 0.25)[person]
    wage = np.where(low, 1000 * random.uniform(1, 1.05, len(person)), base[person])
    order = random.permutation(len(person))
    return pa.table(
        {
            "patient": person[order],
            "age": age[person][order],
            "zip": area[person][order],
            "wage": wage.round(2)[order],
            "row": np.arange(len(person)),
        }
    )


def guessed(released: pa.Table, table: pa.Table, level: float) -> float:
    """The share of people in a class of whom more than 1/l are right to guess one wage to 10 %."""
    person = dict(zip(table["row"].to_pylist(), table["patient"].to_pylist(), strict=True))
    classes: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    for row in released.to_pylist():
        classes[row["age"], row["zip"]].append((row["wage"], person[row["row"]]))
    told, everybody = 0, 0
    for pairs in classes.values():
        people = len({who for _, who in pairs})
        most = max(
            len({who for wage, who in pairs if 0.9 * high <= wage <= high}) for high, _ in pairs
        )
        told += people * (most * level > people)
        everybody += people
    return told / everybody


WAGES = {**JOB, "k": 8, "sensitive": ["wage"], "l": 3, "l_width": {"wage": "10 %"}}
OTHERS = [{}, {"diversity": "entropy"}, *in_soak([{"l": 2}]), {"algorithm": "di_mondrian"}]


@pytest.mark.parametrize("keys", one_here(RECODING[1:3]), ids=str)
def test_wages_where_columns_are_recoded_as_a_whole(monkeypatch, keys):
    table, job = wages(1500), {**WAGES, **keys, "quasi_identifiers": LADDERS}
    del job["cut"]
    released, report = anonymize(table, job)
    assert guessed(released, table, job["l"]) == 0
    assert report["equivalence_classes"] > 1
    without_persons_values(monkeypatch)
    assert guessed(anonymize(table, job)[0], table, job["l"]) > 0


@pytest.mark.parametrize("keys", one_here(OTHERS), ids=str)
def test_a_wage_is_guessed_of_one_person_in_l_at_most(monkeypatch, keys):
    table, job = wages(), {**WAGES, **keys}
    if "algorithm" in keys:
        del job["cut"]
    released, report = anonymize(table, job)
    assert guessed(released, table, job["l"]) == 0
    assert report["equivalence_classes"] > 100
    without_persons_values(monkeypatch)
    assert guessed(anonymize(table, job)[0], table, job["l"]) > 0.01


def test_wages_in_files_of_several_parts(tmp_path):
    table = wages()
    pq.write_table(table, tmp_path / "in.parquet")
    paths = {"input": f"{tmp_path}/in.parquet", "output": f"{tmp_path}/release"}
    pipeline.run(load_job({**WAGES, **paths, "partitioning": {"fragments": 4}}))
    assert guessed(pq.read_table(tmp_path / "release"), table, 3) == 0


def test_wages_that_were_not_joined_are_refused_by_the_check(monkeypatch):
    monkeypatch.setattr("mondrian_ops.cut.anonymizer.joined", lambda classes, *_: classes)
    with pytest.raises(PrivacyError, match="more than 1/3 of the persons have values of column"):
        anonymize(wages(), WAGES)


def test_where_each_person_has_one_row_nothing_changes():
    table = visits(each=1)
    _, by_person = anonymize(table, JOB)
    _, by_row = anonymize(table, {**JOB, "entity_id": None, "identifiers": ["patient"]})
    assert by_person["class_sizes"] == by_row["class_sizes"]


# The distribution of values, which t compares


def treatments(people: int = 3000, seed: int = 0) -> pa.Table:
    """Treatments of people, of whom the few with ulcers come ten times as often as the others."""
    random = np.random.default_rng(seed)
    has_ulcer = random.random(people) < 0.2
    person = np.repeat(np.arange(people), np.where(has_ulcer, random.integers(1, 20, people), 2))
    return pa.table(
        {
            "patient": person,
            "age": random.integers(18, 90, people)[person],
            "zip": random.integers(10_000, 10_400, people)[person],
            "diagnosis": np.where(has_ulcer, "ulcer", "flu")[person].tolist(),
            "row": np.arange(len(person)),
        }
    )


def furthest(released: pa.Table, table: pa.Table, of_persons: bool) -> float:
    """The distance of a class whose share of ulcers is furthest from that of all."""
    person = dict(zip(table["row"].to_pylist(), table["patient"].to_pylist(), strict=True))
    ulcers: dict[object, dict[int, bool]] = defaultdict(dict)
    for row in released.to_pylist():
        counted = person[row["row"]] if of_persons else row["row"]
        for group in ("all", (row["age"], row["zip"])):
            ulcers[group][counted] = row["diagnosis"] == "ulcer"
    shares = {group: sum(its.values()) / len(its) for group, its in ulcers.items()}
    return max(abs(share - shares["all"]) for share in shares.values())


def test_t_is_kept_by_rows_and_broken_by_persons_as_the_report_says():
    table = treatments()
    job = {key: value for key, value in JOB.items() if key != "l"}
    released, report = anonymize(table, {**job, "t": 0.3})
    assert furthest(released, table, of_persons=False) <= 0.3 + 1e-9
    assert furthest(released, table, of_persons=True) > 0.4
    assert "k counts persons, but t counts rows" in report["limits"]
    assert any(each.endswith("equal distance in rows, not persons")
               for each in report["verification"]["checked"])  # fmt: skip
