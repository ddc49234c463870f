"""The rows of persons, kept while they are counted in parts: against sets."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.data import person_rows
from mondrian_ops.data.person_rows import PersonRows, hashed, mixed

LEAVES = 3


@examples(150)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1 << 21, 40, 6]), st.booleans())
def test_of_each_person_who_is_kept_all_rows_are(seed: int, most: int, in_tables: bool) -> None:
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 200))
    leaf, person = random.integers(0, LEAVES, rows), random.integers(0, 60, rows)
    combination, code = random.integers(0, 3, rows), random.integers(0, 4, rows)
    hashes = hashed(pa.array(person))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(person_rows, "MOST_ROWS", most)
        total = PersonRows(1)
        for part in np.array_split(random.permutation(rows), int(random.integers(1, 9))):
            if (limits := total.limits(LEAVES)) is not None:
                part = part[hashes[part] <= limits[leaf[part]]]
            own = PersonRows.of(leaf[part], hashes[part], combination[part], [code[part]])
            total.add(PersonRows.from_table(own.to_table()) if in_tables else own)
        assert total.to_table().num_rows <= max(most, 12 * LEAVES)  # of one person in each leaf
        for chosen in ([0], [1, 2], [0, 1, 2]):
            known = total.within(chosen)
            here = np.isin(leaf, chosen)
            everybody = {*person[here].tolist()}
            found = len({*known.persons.tolist()})
            assert found == len(everybody) if known.complete else found <= len(everybody)
            assert known.complete or most < rows
            # Who has which codes, and in how many combinations, without the names.
            of_hash: dict[int, set[tuple[int, int]]] = defaultdict(set)
            for its, *pair in zip(hashes[here], combination[here], code[here], strict=True):
                of_hash[int(its)].add((int(pair[0]), int(pair[1])))
            expected = [of_hash[its] for its in sorted(of_hash)[:found]]
            of_number: dict[int, set[tuple[int, int]]] = defaultdict(set)
            for number, unit, value in zip(known.persons, known.units, *known.codes, strict=True):
                of_number[int(number)].add((int(unit), int(value)))
            for its, kept in zip(expected, (of_number[at] for at in range(found)), strict=True):
                assert {value for _, value in kept} == {value for _, value in its}
                assert len({unit for unit, _ in kept}) == len({unit for unit, _ in its})


@pytest.mark.parametrize(
    "values",
    [["a", "b", "", "aa", "ab", "x" * 99, "x" * 98 + "y"], [b"a", b"", b"\0", b"\0\0"], [1, 0, -1],
     [0.5, 0.0, 1e300], [True, False], [dt.date(2020, 1, 1), dt.date(2020, 1, 2)]],
    ids=str,
)  # fmt: skip
def test_values_have_hashes_of_their_own(values: list) -> None:
    column = pa.array([*values, None, values[0]])
    hashes = hashed(column)
    assert len({*hashes[:-1].tolist()}) == len(values) + 1
    assert hashes[0] == hashes[-1]
    assert hashes[-2] == hashes.max()
    sliced, encoded = pa.concat_arrays([column, column])[len(column) :], column.dictionary_encode()
    assert hashes.tolist() == hashed(sliced).tolist() == hashed(encoded).tolist()
    fixed = pa.array([b"ab", b"cd"], pa.binary(2))
    assert hashed(fixed).tolist() == hashed(fixed.cast(pa.binary())).tolist()


def test_hashes_are_the_same_everywhere_and_in_every_process() -> None:
    """Tasks of a cluster compare theirs."""
    assert hashed(pa.array(["p1", "p2"])).tolist() == [1574007156919334194, 5313881424122777196]
    assert hashed(pa.array([7, 8])).tolist() == [1346066267577507604, -3068323830470825496]
    pair = mixed(np.array([1, 2]), np.array([2, 1]))
    assert pair[0] != pair[1]
