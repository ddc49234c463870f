"""The persons of each value, however the rows come in parts."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data.encoding import indexed
from mondrian_ops.data.persons_per_value import PersonsPerValue

ENOUGH = 3
VALUES = ["a", "b", "c", None]
rows = st.tuples(st.sampled_from(VALUES), st.integers(0, 5) | st.none())


@examples(60)
@given(st.lists(st.lists(rows, max_size=12), min_size=1, max_size=4))
def test_persons_are_counted_once_and_up_to_enough(parts):
    of_parts = [
        PersonsPerValue.of_each(
            ENOUGH,
            {"q": indexed(pa.array([value for value, _ in part], pa.string()))},
            pa.array([person for _, person in part], pa.int64()),
        )["q"]
        for part in parts
    ]
    persons = defaultdict(set)
    for part in parts:
        for value, person in part:
            persons[value].add(person)
    counted = PersonsPerValue.joined(of_parts).count(pa.array(VALUES, pa.string())).tolist()
    assert counted == [min(ENOUGH, len(persons[value])) for value in VALUES]
