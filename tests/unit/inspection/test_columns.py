"""What is counted of one column."""

from __future__ import annotations

import numpy as np
import pytest

from unknown_tables import column


def test_shares_of_rows_and_of_pairs():
    found = column(["a", "a", "b", None])
    assert (found.distinct, found.present, found.distinction) == (2, 3, 0.75)
    assert found.separation == pytest.approx(1 - 1 / 6)
    assert found.single == 0.5


def test_some_rows_have_codes_of_their_own():
    found = column(["a", "b", None, "c", "c"]).taken(np.array([1, 2, 4]))
    assert found.values.to_pylist() == ["b", "c"]
    assert found.codes.tolist() == [1, 0, 2]
    assert found.counts.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("HomePhone_2", ("home", "phone", "2")),
        ("patientID", ("patient", "id")),
        ("DOB", ("dob",)),
        ("Größe", ("größe",)),
        ("", ()),
    ],
)
def test_a_name_has_words(name, words):
    assert column([1], name).words == words
