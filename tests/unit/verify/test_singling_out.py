"""Who is found by raw columns: against the definition in plain Python, and on known cases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from mondrian_ops.verify import singling_out
from mondrian_ops.verify.singling_out import (
    HARM,
    MOST_ROWS,
    SingledOut,
    findings_of,
    measured,
    sampled_classes,
)
from tiers import one_in


def sample(
    classes: Any, quasi: dict[str, Any], raw: dict[str, Any], person: Any = None
) -> pa.Table:
    """A sample as `sampled_classes` gives it, of rows by ascending class."""
    persons = {} if person is None else {"person": pa.array(np.asarray(person, np.int64))}
    columns = {str(at): each for at, each in enumerate([*quasi.values(), *raw.values()])}
    return pa.table({"class": np.asarray(classes, np.int64), **persons, **columns})


def figures(
    classes: Any, quasi: dict[str, Any], raw: dict[str, Any], **keys: Any
) -> dict[Any, Any]:
    found = measured([sample(classes, quasi, raw, **keys)], len(quasi), list(raw))
    return {each.column: each for each in found}


def nearby(rows: int, size: int = 5) -> tuple[Any, Any]:
    """Numbers in classes of neighbours: (rows,) the class of each, and the number."""
    random = np.random.default_rng(0)
    numbers = np.sort(random.normal(size=rows))
    return np.arange(rows) // size, numbers


def test_a_copy_finds_everybody_and_noise_nobody() -> None:
    classes, number = nearby(1000)
    noise = np.random.default_rng(1).normal(size=1000)
    found = figures(classes, {"q": number}, {"copy": number, "noise": noise})
    assert found["copy"].found > 0.9
    assert (found["noise"].claimed, found["noise"].found) == (0.0, 0.0)
    assert found["copy"].rows == 1000


def test_several_columns_have_a_figure_together_and_one_has_not() -> None:
    classes, number = nearby(500)
    assert list(figures(classes, {"q": number}, {"a": number})) == ["a"]
    assert list(figures(classes, {"q": number}, {"a": number, "b": number})) == ["a", "b", None]


@pytest.mark.parametrize("size", [2, 3, 10, 50])
@pytest.mark.parametrize("seed", one_in(3, range(3)))
def test_independent_columns_of_every_kind_find_nobody(size: int, seed: int) -> None:
    random, rows = np.random.default_rng(seed), 1500
    classes = np.arange(rows) // size
    quasi = {"number": np.sort(random.normal(size=rows)),
             "text": [f"t{each}" for each in random.integers(0, 40, rows)]}  # fmt: skip
    raw = {
        "unique": random.permutation(rows),
        "name": [f"n{each}" for each in random.permutation(rows)],
        "few": [f"f{each}" for each in random.integers(0, 4, rows)],
        "rare": (random.random(rows) < 0.01).astype(int),
        "pairs": random.permutation(rows) // 2,
        "number": random.normal(size=rows),
    }
    for each in figures(classes, quasi, raw).values():
        assert each.found == 0, each


def test_values_that_go_together_find_rows() -> None:
    """Capitals find people where a class spans states, and rows share a capital."""
    random, rows = np.random.default_rng(0), 2000
    state = random.integers(0, 50, rows)
    capital = [f"capital{each * 37 % 50}" for each in state]
    found = figures(np.arange(rows) // 5, {"state": [f"s{each}" for each in state]}, {"c": capital})
    assert found["c"].found > 0.8


def test_a_household_finds_its_street_by_others_of_the_household() -> None:
    random, rows = np.random.default_rng(0), 4000
    order = random.permutation(rows)
    street, household = order // 40, random.permutation(rows)[order // 4]
    found = figures(np.arange(rows) // 5, {"street": street},
                    {"h": [f"h{each}" for each in household]})  # fmt: skip
    assert found["h"].found > 0.3


def test_the_rows_of_a_person_do_not_tell_of_each_other() -> None:
    """A random number that one patient has in all of five visits says nothing of an age."""
    random, rows = np.random.default_rng(0), 3000
    patient = random.permutation(np.arange(rows) // 5)
    age, number = random.integers(20, 90, 600), random.permutation(600)
    quasi, raw = {"age": age[patient]}, {"n": [f"n{each}" for each in number[patient]]}
    classes = np.arange(rows) // 5
    assert figures(classes, quasi, raw)["n"].found > 0.3
    assert figures(classes, quasi, raw, person=patient)["n"].found == 0


def test_any_row_of_a_person_is_the_right_one() -> None:
    classes, number = nearby(1000)
    person = np.arange(1000) // 2
    twice = np.repeat(number[::2], 2)  # both rows of a person are alike
    found = figures(classes, {"q": twice}, {"copy": twice}, person=person)
    assert found["copy"].found > 0.6
    assert figures(classes, {"q": twice}, {"copy": twice})["copy"].found < 0.3


def test_alike_rows_are_not_told_apart() -> None:
    """Where all rows of a class have one value, nobody is found by it."""
    rows = 1000
    number = np.arange(rows) // 5 * 1.0
    assert figures(np.arange(rows) // 5, {"q": number}, {"c": number})["c"].claimed == 0


def test_missing_values_and_text_that_is_a_number() -> None:
    classes, number = nearby(1000)
    gaps = pa.array(number, mask=np.random.default_rng(0).random(1000) < 0.3)
    texts = [f" {each}" for each in number]
    found = figures(classes, {"q": pa.array(texts)}, {"gaps": gaps})
    assert 0.5 < found["gaps"].found < 0.8
    nothing = figures(classes, {"q": number}, {"none": pa.nulls(1000, pa.float64())})
    assert nothing["none"].found == 0


@pytest.mark.parametrize("rows", [0, 1, 2, 20])
def test_too_few_rows_to_learn_from_have_no_figure(rows: int) -> None:
    classes, number = nearby(rows)
    assert figures(classes, {"q": number}, {"c": number}) == {}
    assert measured([], 1, ["c"]) == []


@pytest.mark.parametrize("sizes", [[100], [100, 1], [1] * 100, [60, 60], [1, 100, 1, 1]], ids=str)
@pytest.mark.parametrize("by_person", [False, True])
def test_few_classes_and_classes_of_one_row(sizes: list[int], by_person: bool) -> None:
    rows = sum(sizes)
    number = np.arange(rows) * 1.0
    person = np.arange(rows) // 2 if by_person else None
    classes = np.repeat(np.arange(len(sizes)), sizes)
    raw = {"c": number, "none": pa.nulls(rows, pa.string())}
    for each in figures(classes, {"q": number}, raw, person=person).values():
        assert 0 <= each.found <= each.claimed <= 1
        assert each.rows == sum(size for size in sizes if size > 1)


def test_nobody_is_found_in_a_class_that_has_the_rows_of_one_person() -> None:
    classes, number = nearby(1000, size=2)
    found = figures(classes, {"q": number}, {"copy": number}, person=classes)
    assert (found["copy"].claimed, found["copy"].found) == (0.0, 0.0)


def test_a_value_that_nothing_was_learned_of_says_nothing() -> None:
    both, share, of_value = np.array([0, 2]), np.array([0.0, 0.25]), np.array([3, 3])
    unknown, known = singling_out._log_ratio(both, share, of_value, 8).tolist()
    assert unknown == 0
    assert known == pytest.approx(math.log(9 / 4))


def test_classes_of_several_parts_are_told_apart() -> None:
    classes, number = nearby(1000)
    whole = sample(classes, {"q": number}, {"c": number})
    parts = [sample(classes[at], {"q": number[at]}, {"c": number[at]})
             for at in (slice(0, 300), slice(300, 300), slice(300, 1000))]  # fmt: skip
    parts[2] = parts[2].set_column(0, "class", pa.array(classes[:700]))
    assert measured(parts, 1, ["c"]) == measured([whole], 1, ["c"])


# Claims, by the definition


@examples(200)
@given(st.integers(0, 2**32 - 1))
def test_claims_as_defined(seed: int) -> None:
    random = np.random.default_rng(seed)
    size, count = int(random.integers(2, 6)), int(random.integers(1, 80))
    rows = size * count
    tell = random.random()
    numbers = np.arange(rows, dtype=float)
    attack = singling_out._Attack.of(
        [sample(np.arange(rows) // size, {"q": numbers}, {"c": numbers})], 1
    )
    assert attack is not None
    own = attack.row == attack.candidate
    scores = np.where(own & (random.random(len(own)) < tell), 2.0, 0.0)
    scores += random.integers(0, 3, len(own))
    claims = []
    table = scores.reshape(rows, size)
    for first in range(0, rows, size):
        likely = np.exp(table[first : first + size])
        likely = likely / likely.sum(axis=0)
        likely = likely / likely.sum(axis=1, keepdims=True)
        for person, chances in enumerate(likely):
            most = chances.max()
            (named,) = np.nonzero(chances >= most * (1 - 1e-9))
            if len(named) == 1:
                claims.append((most, bool(named[0] == person)))
    claims.sort(key=lambda claim: -claim[0])
    best, rights = (0.0, 0.0), 0
    for made, (sure, is_right) in enumerate(claims, 1):
        rights += is_right
        beyond = rights - made / size
        chance = 5 * math.sqrt(made * (1 / size) * (1 - 1 / size))
        is_last = made == len(claims) or claims[made][0] < sure - 1e-8
        if is_last and beyond >= max(0.5 * (made - made / size), chance) - 1e-9:
            best = made / rows, rights / rows
    assert attack.outcome(scores) == pytest.approx(best)


def test_harm_is_a_finding_and_all_columns_together_only_if_none_is_alone() -> None:
    alone = [SingledOut("a", 100, 0.5, HARM), SingledOut("b", 100, 0.5, HARM / 2),
             SingledOut(None, 100, 0.5, 0.4)]  # fmt: skip
    assert [(each.column, each.how, each.share) for each in findings_of(alone)] == [
        ("a", "jointly", HARM)
    ]
    assert [each.column for each in findings_of(alone[1:])] == [""]
    assert findings_of([alone[1]]) == []


# The sample


def published(sizes: list[int], seed: int = 0) -> tuple[pa.Table, pa.Table, np.ndarray[Any, Any]]:
    """Rows, their released form in classes of these sizes, and the row of each."""
    rows = sum(sizes)
    order = np.random.default_rng(seed).permutation(rows)
    labels = pa.array([f"label{at:06}" for at in np.repeat(np.arange(len(sizes)), sizes)])
    source = pa.table({"q": np.arange(rows), "c": -np.arange(rows)})
    released = pa.table({"q": labels.dictionary_encode(), "c": source["c"].take(pa.array(order))})
    return source, released, order


def taken(sizes: list[int], most: float, seed: int = 0, **keys: Any) -> pa.Table:
    rows, released, order = published(sizes)
    made_up = keys.get("made_up")
    return sampled_classes(rows, released, order, made_up, ["q"], ["c"], None, most, seed)


@pytest.mark.parametrize("most", [1, 40, 200, 1000])
def test_whole_classes_and_about_as_many_rows_as_asked(most: int) -> None:
    sizes = list(np.random.default_rng(0).integers(1, 12, 100))
    counts = []
    for seed in range(50):
        table = taken(sizes, most, seed)
        numbers, rows = np.unique(table["class"].to_numpy(), return_counts=True)
        assert [sizes[number] for number in numbers] == rows.tolist()
        assert table["1"].to_pylist() == [-each for each in table["0"].to_pylist()]
        counts.append(table.num_rows)
    assert np.mean(counts) == pytest.approx(min(most, sum(sizes)), rel=0.1, abs=2)


def test_the_rows_of_a_class_are_its_own_whatever_their_order() -> None:
    rows, released, order = published([3, 4, 5])
    table = sampled_classes(rows, released, order, None, ["q"], ["c"], None, 12, 0)
    of_class = {0: order[:3], 1: order[3:7], 2: order[7:]}
    for number, own in of_class.items():
        at = table["class"].to_numpy() == number
        assert sorted(table["0"].to_numpy()[at]) == sorted(own)


def test_rows_that_are_made_up_are_left_out() -> None:
    made_up = np.zeros(12, bool)
    made_up[[0, 5]] = True
    assert taken([3, 4, 5], 12, made_up=made_up).num_rows == 10


def test_of_a_large_class_some_rows_are_drawn() -> None:
    table = taken([MOST_ROWS + 500, 10], 10_000)
    assert np.bincount(table["class"].to_numpy()).tolist() == [MOST_ROWS, 10]


def test_classes_by_bounds_and_by_missing_labels() -> None:
    rows = pa.table({"q": [1, 2, 3, 4, 5, 6], "c": [1, 2, 3, 4, 5, 6]})
    released = pa.table(
        {"q_min": [1, 1, 1, 1, None, None], "q_max": [2, 2, 4, 4, None, None], "c": rows["c"]}
    )
    table = sampled_classes(rows, released, np.arange(6), None, ["q"], ["c"], None, 100, 0)
    assert table["class"].to_pylist() == [0, 0, 1, 1, 2, 2]


def test_persons_are_digests() -> None:
    rows = pa.table({"q": [1, 2], "c": [1, 2], "who": ["Ada", "Ada"]})
    released = pa.table({"q": ["*", "*"], "c": [1, 2]})
    table = sampled_classes(rows, released, np.arange(2), None, ["q"], ["c"], "who", 100, 0)
    one, other = table["person"].to_pylist()
    assert one == other != "Ada"
    assert table.column_names == ["class", "person", "0", "1"]


def test_values_that_come_together_weigh_the_same_in_a_table_and_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = np.random.default_rng(5)
    quasi, values = ((draw.integers(0, 4, 40), draw.integers(0, 5, 300)) for _ in range(2))
    in_table = singling_out._log_ratios(quasi, values)
    few = slice(0, 20)  # fewer than there are pairs of values
    asked = (quasi[0], quasi[1][few]), (values[0], values[1][few])
    assert singling_out._log_ratios(*asked).tolist() == in_table[few].tolist()
    monkeypatch.setattr(singling_out, "_DENSE", 0)
    assert singling_out._log_ratios(*asked).tolist() == in_table[few].tolist()
    assert len({*in_table.tolist()}) > 10
