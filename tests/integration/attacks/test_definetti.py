"""deFinetti: learn from all classes how diagnoses go with quasi-identifiers, apply it within each.

D. Kifer, "Attacks on privacy and deFinetti's theorem", SIGMOD 2009. The attacker knows everybody's
quasi-identifiers and class, and nobody's diagnosis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from adversary import ALGORITHMS, Release, population, released
from mondrian_ops.errors import PrivacyError
from tiers import one_here

ROUNDS = 10


def codes(values: list[Any]) -> NDArray[np.int64]:
    return np.unique([str(each) for each in values], return_inverse=True)[1]


def guessed(release: Release, table: pa.Table) -> tuple[float, float]:
    """The shares of people whose diagnosis is guessed: as the most frequent one of the class, and
    by naive Bayes, which is learned anew from its own guesses."""
    ages = [-1 if age is None else age // 5 for age in table["age"].to_pylist()]
    areas = [str(area)[:2] for area in table["zip"].to_pylist()]
    known = [
        codes(each) for each in (ages, areas, *(table[n].to_pylist() for n in ("sex", "country")))
    ]
    ills = codes(table["diagnosis"].to_pylist())
    count = int(ills.max()) + 1
    classes = [np.array([row["row"] for row in rows]) for rows in release.classes().values()]
    held = [np.bincount(ills[rows], minlength=count) for rows in classes]
    chances = np.zeros((table.num_rows, count))
    for rows, of_class in zip(classes, held, strict=True):
        chances[rows] = of_class / len(rows)
    everybody = np.concatenate(classes)
    most = np.mean(chances.argmax(axis=1)[everybody] == ills[everybody])
    for _ in range(ROUNDS):
        likely = np.zeros_like(chances)
        for column in known:
            together = np.ones((int(column.max()) + 1, count))
            np.add.at(together, column, chances)
            likely += np.log(together / together.sum(axis=0))[column]
        likely = np.exp(likely - likely.max(axis=1, keepdims=True))
        for rows, of_class in zip(classes, held, strict=True):
            matched = likely[rows] * (of_class > 0)
            for _ in range(5):  # each diagnosis as often as the class has it
                matched *= of_class / np.maximum(matched.sum(axis=0), 1e-300)
                matched /= matched.sum(axis=1, keepdims=True)
            chances[rows] = matched
    return float(most), float(np.mean(chances.argmax(axis=1)[everybody] == ills[everybody]))


KEYS = {**ALGORITHMS[1], "k": 5, "l": 2, "sensitive": ["diagnosis"]}


def by_sex(table: pa.Table, share: float) -> pa.Table:
    """Two diagnoses, one of either sex in this ``share`` of the people; the others have any."""
    random = np.random.default_rng(0)
    is_female = np.array([each == "female" for each in table["sex"].to_pylist()])
    follows = random.random(len(is_female)) < share
    own = np.where(follows, is_female, random.random(len(is_female)) < 0.5)
    at = table.schema.get_field_index("diagnosis")
    return table.set_column(at, "diagnosis", pa.array([f"ill{each:d}" for each in own]))


def test_where_neighbours_form_the_classes_ordinary_data_gives_nothing_more(tmp_path):
    """A class of neighbours leaves little that quasi-identifiers could tell apart."""
    most, learned = guessed(released(tmp_path, population(), **KEYS), population())
    assert learned < most + 0.02


@pytest.mark.parametrize(
    ("share", "more"), one_here([(0.9, {"t": 0.2}), (1.0, {}), (1.0, {"t": 0.2})]), ids=str
)
def test_neither_l_nor_t_stops_it_where_classes_have_to_mix_what_decides(tmp_path, share, more):
    """l = 2 wants both sexes in each class; what a sex has is learned all the same."""
    table = by_sex(population(), share)
    most, learned = guessed(released(tmp_path, table, **KEYS, **more), table)
    assert learned > 0.85 > 0.7 > most


def test_a_diagnosis_that_the_sex_decides_is_refused(tmp_path):
    with pytest.raises(PrivacyError, match="'diagnosis' stays as it is and gives away 'sex'"):
        released(tmp_path, by_sex(population(), 1.0), **KEYS, dependencies="refuse")
