"""Numbers that are the same, on both sides of the check, against decimal arithmetic."""

from __future__ import annotations

from collections import defaultdict
from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops import anonymize
from mondrian_ops.data.values import in_one_spelling, one_spelling, one_value
from mondrian_ops.errors import PrivacyError, UnattainableError
from mondrian_ops.verify import values as release_values
from mondrian_ops.verify.values import ColumnValues, as_number

SHORT = Context(prec=12, rounding=ROUND_HALF_EVEN)


def texts() -> st.SearchStrategy[str]:
    """Numbers in many forms, and texts that nearly are one."""
    digits = st.text("0001259", max_size=4) | st.text("0123456789", max_size=24)
    exponent = st.sampled_from(["", "", "", "e0", "E1", "e-2", "E+03", "e1000", "e"])
    sign = st.sampled_from(["", "", "-", "+", "--", " "])
    point = st.sampled_from(["", ".", "..", ","])
    return st.builds(lambda *parts: "".join(parts), sign, digits, point, digits, exponent)


def number_of(value: str | float | None) -> object:
    """What a value is compared as: exactly if it is whole, else by 12 digits."""
    if value is None or value != value:
        return None
    try:
        number = Decimal(value)
    except ArithmeticError:
        return value.strip() if isinstance(value, str) else value
    if not number.is_finite() or abs(number.adjusted()) > 900:
        return value
    exact = abs(number) < 1 << 53 if isinstance(value, float) else True
    whole = number == number.to_integral_value()
    return number if whole and exact else SHORT.plus(number)


def on_both_sides(values: pa.Array) -> list[list[int]]:
    """The codes that the cutting and the check give the values, 0 for a missing one."""
    cut = one_value(values).dictionary_encode()
    column = ColumnValues("x", nan_is_missing=True, read=True, numbers=True)
    encoded = column.encoded(values)
    check = column.codes_of(encoded.dictionary)[release_values.places(encoded)]
    return [cut.indices.fill_null(-1).to_pylist(), check.tolist()]


def same(codes: list[int]) -> list[list[int]]:
    """The places of each value, wherever codes begin."""
    found: dict[int, list[int]] = defaultdict(list)
    for place, code in enumerate(codes):
        found[code].append(place)
    return sorted(found.values())


@examples(500)
@given(st.lists(st.none() | texts(), min_size=1, max_size=30))
def test_both_sides_take_the_same_texts_for_one_number(values: list[str | None]) -> None:
    cut, check = on_both_sides(pa.array(values, pa.string()))
    read = [None if value is None or not value.strip() else value.strip() for value in values]
    expected = [number_of(value) for value in read]
    wanted = same([expected.index(each) for each in expected])
    assert same(cut) == same(check) == wanted
    written = one_value(pa.array(values, pa.string()))
    assert [None if value is None else as_number(value) for value in read] == written.to_pylist()
    assert one_value(written).equals(written)


# Around the edges of 12 digits, whole numbers, and powers of ten
FLOATS = st.floats() | st.builds(
    lambda number, places, ulp: np.nextafter(number / 10**places, ulp).item(),
    st.integers(-(10**13), 10**13) | st.integers(2**52, 2**54) | st.sampled_from([10**12, 5, 3]),
    st.integers(0, 25),
    st.sampled_from([-np.inf, 0.0, np.inf]),
)


@examples(500)
@given(st.lists(FLOATS, min_size=1, max_size=30))
def test_both_sides_take_the_same_floats_for_one_number(values: list[float]) -> None:
    cut = one_value(pa.array(values)).to_numpy(zero_copy_only=False)
    check = release_values._by_digits(pa.array(values)).to_numpy(zero_copy_only=False)
    plain = [number_of(value) for value in values]
    # Decimal has no -0.0 of its own; what has too many digits for it is compared as it is.
    expected = [float("nan") if each is None else float(each) for each in plain]
    np.testing.assert_array_equal(cut, check)
    usual = np.array([not (value and abs(np.log10(abs(value))) > 300) for value in values])
    np.testing.assert_array_equal(cut[usual], np.array(expected)[usual])


def test_numbers_that_rounding_may_get_wrong_have_the_nearest_twelve_digits() -> None:
    """Halfway between two numbers, and where the power of ten is no float64."""
    digits = np.random.default_rng(0).integers(10**11, 10**12, 40)
    halves = [(digits + 0.5) / 10.0**places for places in range(1, 23)]
    small = [float(f"{each}e-23") for each in digits.tolist()]
    values = [*np.concatenate(halves).tolist(), *small]
    expected = [float(f"{value:.11e}") for value in values]
    assert one_value(pa.array(values)).to_pylist() == expected
    assert expected[-len(small) :] == small


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("1", "1.0", True),
        ("1", "01", True),
        ("-0", "0.00", True),
        ("0.3", "0.30000000000000004", True),
        ("\uff11", "1.", True),
        (".5", "5e-1", True),
        ("250.1", "250.10", True),
        ("12345678901234567890", "12345678901234567891", False),
        ("+12345678901234567890", "+12345678901234567891", False),
        ("99.99999999999999", "100", True),
        ("1234567890123.5", "1234567890124", False),
        ("1,5", "1,50", False),
        ("1 mg", "1.0 mg", False),
        ("2024-05-01", "2024-05-1", False),
        ("1.2.3", "1.2.30", False),
        ("0" * 100 + "1", "1", False),  # no number that anybody writes
        (0.3, 0.1 + 0.2, True),
        (1e20, float(np.nextafter(1e20, np.inf)), True),
        (0.3, 0.30000000001, False),
        (9007199254740991.0, 9007199254740990.0, False),
    ],
)
def test_what_is_one_number(one: object, other: object, is_same: bool) -> None:
    for codes in on_both_sides(pa.array([one, other])):
        assert (codes[0] == codes[1]) is is_same


def test_what_needs_no_change_is_returned_as_it_is() -> None:
    """There may be millions of values."""
    tidy = [
        pa.array(["flu", "17", "2024-05-01", "0", "-5", None]),
        pa.array([1.5, 3, None, 0.1, 1e6]),
        pa.array([0.1, 0.2], pa.float32()),
        pa.array([1, 2]),
        pa.array([Decimal("1.10")]),
        pa.nulls(2),
    ]
    for values in tidy:
        assert one_value(values) is values
    assert release_values._all_numbers(tidy[0].take(pa.array([0, 1, 2]))).to_pylist() == [
        "flu", "17", "2024-05-01"]  # fmt: skip
    assert release_values._by_digits(tidy[1]) is tidy[1]


def test_a_code_is_published_as_it_is() -> None:
    """One spelling, which a protected series publishes, changes no text that is a number."""
    codes = pa.array(["250.10", "250.1", "01"])
    assert in_one_spelling(codes).equals(codes)
    assert one_spelling(pa.array([0.1 + 0.2, 0.3])).to_pylist() == [0.3, 0.3]


WAYS = (
    ["1", "1.0", "01", "2", "2.00", "+2", "x", None, "0.3", "0.30000000000000004", ".3"],
    [0.3, 0.1 + 0.2, 0.1 * 3, 0.6, 0.2 * 3, 1.0, None, 1e17, 1e17 + 16],
)
MEASURES = (
    {"l": 2},
    {"l": 3},
    {"l": 2, "diversity": "entropy"},
    {"l": 2, "diversity": "recursive", "c": 2},
    {"t": 0.4, "t_distance": "equal"},
    {"t": 0.3, "t_distance": "ordered"},
    {"l": 2, "missing_sensitive": "value"},
    {"l": 2, "entity_id": "person"},
)


@examples(150)
@given(st.data())
def test_what_the_cutting_finds_valid_passes_the_check(data: st.DataObject) -> None:
    """And each class has l different numbers."""
    rows = data.draw(st.integers(2, 40))
    ways = data.draw(st.sampled_from(WAYS))
    values = data.draw(st.lists(st.sampled_from(ways), min_size=rows, max_size=rows))
    keys = dict(data.draw(st.sampled_from(MEASURES)))
    column = pa.array(values, pa.string() if ways is WAYS[0] else pa.float64())
    table = pa.table({"age": list(range(rows)), "s": column})
    if "entity_id" in keys:
        table = table.append_column("person", pa.array([at // 2 for at in range(rows)]))
    keys |= data.draw(st.sampled_from([{}, {"algorithm": "di_mondrian"}, {"relaxed": True}]))
    job = {"k": 2, "quasi_identifiers": ["age"], "sensitive": ["s"], **keys}
    persons: dict[int, set[object]] = defaultdict(set)
    for at, value in enumerate(values):
        persons[at // 2].add(number_of(value))
    try:
        released, _ = anonymize(table, job)
    except UnattainableError:
        return  # before anything is cut
    except PrivacyError:
        # All persons who have a number share one, which is known once the classes are joined.
        have = [each - {None} for each in persons.values() if each != {None}]
        assert "entity_id" in keys
        assert set.intersection(*have)
        return
    assert sorted(map(str, released["s"].to_pylist())) == sorted(map(str, values))
    numbers = defaultdict(set)
    for row in released.to_pylist():
        numbers[row["age"]].add(number_of(row["s"]))
    if "l" in keys:
        missing = {None} if keys.get("missing_sensitive") != "value" else set()
        assert min(len(each - missing) for each in numbers.values()) >= keys["l"]
