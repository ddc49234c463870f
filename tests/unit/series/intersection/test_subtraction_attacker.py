"""The attacker who subtracts classes, against an enumeration of all worlds that agree with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np
import pytest

from mondrian_ops.series.intersection.subtraction_attacker import Subtraction

Night = list[tuple[list[int], list[str]]]


def found(nights: Sequence[Night]) -> dict[object, set[object]]:
    attacker = Subtraction()
    for night in nights:
        attacker.see(night)
    return {person: values for person, values in attacker.left().items() if person in PEOPLE}


PEOPLE = range(100)


def worlds(nights: Sequence[Night]) -> Iterator[dict[int, str]]:
    """Every value of everybody that agrees with every class; nobody's rows may have any."""
    classes = [each for night in nights for each in night]

    def assigned(world: dict[int, str], at: int) -> Iterator[dict[int, str]]:
        if at == len(classes):
            yield world
            return
        people, values = classes[at]
        open_ = [person for person in people if person not in world]
        left = Counter(values)
        left.subtract(Counter(world[person] for person in people if person in world))
        if min(left.values(), default=0) < 0:
            return
        for chosen in {*permutations(left.elements(), len(open_))}:
            yield from assigned({**world, **dict(zip(open_, chosen, strict=True))}, at + 1)

    return assigned({}, 0)


def possible(nights: Sequence[Night]) -> dict[int, set[str]]:
    values: dict[int, set[str]] = {}
    for world in worlds(nights):
        for person, value in world.items():
            values.setdefault(person, set()).add(value)
    return values


def drawn(generator: np.random.Generator, made_up: bool) -> list[Night]:
    """A few nights of a few people, one of whom leaves and one comes; classes mostly stay."""
    value = generator.choice([*"abc"], 12)
    present, class_of = [*range(7)], generator.integers(0, 2, 12)
    nights = []
    for night in range(3):
        if night:
            present.remove(int(generator.choice(present)))
            present.append(6 + night)
            class_of[generator.integers(0, 12)] ^= 1
        classes: Night = []
        for number in range(2):
            people = [person for person in present if class_of[person] == number]
            rows = [str(value[person]) for person in people]
            if made_up and people and generator.random() < 0.5:
                rows.append(str(generator.choice([*"abc"])))
            classes.append((people, rows))
        nights.append([each for each in classes if each[0]])
    return nights


@pytest.mark.parametrize("made_up", [False, True])
def test_what_is_found_holds_in_every_world_and_most_is_found(made_up: bool) -> None:
    generator = np.random.default_rng(0)
    certain = claimed = 0
    for _ in range(50):
        nights = drawn(generator, made_up)
        left, exact = found(nights), possible(nights)
        for person, values in exact.items():
            assert values <= left[person]
            certain += len(values) == 1
            claimed += len(left[person]) == 1
    assert certain > 10
    assert claimed > 0.8 * certain


def test_who_leaves_alone_and_who_is_exchanged_is_found() -> None:
    first = [([1, 2, 3], [*"abc"]), ([4, 5, 6], [*"abc"])]
    second = [([1, 2], [*"ab"]), ([4, 5, 7], [*"abd"])]
    left = found([first, second])
    assert left == {1: {*"ab"}, 2: {*"ab"}, 3: {"c"}, 4: {*"ab"}, 5: {*"ab"}, 6: {"c"}, 7: {"d"}}


def test_who_is_exchanged_for_somebody_of_the_same_value_is_not_found() -> None:
    nights = [[([1, 2, 3], [*"abc"])], [([1, 2, 4], [*"abc"])], [([1, 5, 4], [*"abc"])]]
    assert all(values == {*"abc"} for values in found(nights).values())


def test_two_classes_that_exchange_people_are_subtracted_together() -> None:
    first = [([1, 2, 3], [*"aab"]), ([4, 5, 6], [*"abb"])]
    second = [([1, 4], [*"ab"]), ([2, 3, 5, 6], [*"aabb"])]
    third = [([1, 4], [*"ab"]), ([2, 3, 5], [*"aab"])]
    assert found([first, second, third])[6] == {"b"}


def test_a_row_that_is_nobodys_hides_who_left() -> None:
    nights = [[([1, 2, 3], [*"abc"])], [([1, 2], [*"abc"])]]
    assert all(values == {*"abc"} for values in found(nights).values())
