"""Skewness and similarity: a class is diverse, and still tells more than the whole table does.

N. Li, T. Li and S. Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and l-diversity",
ICDE 2007, section 3.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from adversary import ALGORITHMS, Release, name_of, population, released
from tiers import one_here, one_in

CHRONIC = ("Type 2 diabetes", "Essential hypertension", "Ischaemic heart disease", "Osteoarthritis")
CLOSE = ALGORITHMS[:4]


@pytest.fixture(scope="module")
def patients() -> pa.Table:
    """People, with whether their disease is chronic, and the fifth of incomes that theirs is in."""
    plain = population().select(["name", "age", "sex", "zip", "country", "row"])
    ill = pa.array([each in CHRONIC for each in population()["diagnosis"].to_pylist()])
    income = population(2000, 7, "income")["income"].fill_null(0).to_numpy()
    fifth = np.searchsorted(np.quantile(income, [0.2, 0.4, 0.6, 0.8]), income)
    return plain.append_column("chronic", ill).append_column("fifth", pa.array(fifth))


def gained(release: Release, column: str) -> float:
    """How much surer an attacker can become of a value than the whole release makes them."""
    values = {row[column] for row in release.rows}
    whole = _shares([row[column] for row in release.rows])
    return max(
        _shares([row[column] for row in rows]).get(value, 0) - whole[value]
        for rows in release.classes().values()
        for value in values
    )


def _shares(found: list) -> dict:
    return {value: found.count(value) / len(found) for value in set(found)}


@pytest.mark.parametrize("keys", one_here(one_in(2, CLOSE)), ids=name_of)
def test_t_closeness_bounds_what_a_class_adds(tmp_path, patients, keys):
    keys = {**keys, "sensitive": ["chronic"], "l": 2}
    assert gained(released(tmp_path / "l", patients, **keys), "chronic") > 0.4
    assert gained(released(tmp_path / "t", patients, t=0.15, **keys), "chronic") <= 0.15 + 1e-9


def lowest(release: Release) -> float:
    """The share of persons known to earn less than three fifths of all others do."""
    classes = release.classes().values()
    poor = [len(rows) for rows in classes if all(row["fifth"] <= 1 for row in rows)]
    return sum(poor) / len(release.rows)


def test_values_that_differ_can_be_alike_and_ordered_t_closeness_tells(tmp_path, patients):
    keys = {**ALGORITHMS[1], "k": 2, "sensitive": ["fifth"], "l": 2}
    assert lowest(released(tmp_path / "l", patients, **keys)) > 0.01
    ordered = released(tmp_path / "t", patients, t=0.2, t_distance="ordered", **keys)
    assert lowest(ordered) == 0
