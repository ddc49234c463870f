"""A class with late methods is as the one that the library makes of the same text."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from mondrian_ops import late_methods


def classes(dataclass: Any) -> dict[str, Any]:
    """Classes of all shapes that this package has, by `dataclass`."""

    @dataclass(frozen=True)
    class Plain:
        a: int
        b: str = "b"
        c: Mapping[str, int] = dataclasses.field(default_factory=dict, hash=False)
        d: int = dataclasses.field(default=4, repr=False, compare=False)

        @property
        def double(self) -> int:
            return 2 * self.a

    @dataclass(frozen=True, slots=True)
    class Slots:
        a: int
        b: tuple[int, ...] = ()

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Keywords:
        a: int = 1
        b: str
        c: int = dataclasses.field(default=3, kw_only=False)

    @dataclass(frozen=True)
    class Checked:
        a: int
        b: int = dataclasses.field(default=2, init=False)

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("below 0")

    @dataclass(frozen=True)
    class Own:
        a: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __repr__(self) -> str:
            return "own"

    @dataclass(frozen=True)
    class Child(Plain):
        e: int = 5

    return {each.__name__: each for each in (Plain, Slots, Keywords, Checked, Own, Child)}


LIBRARY, LATE = classes(dataclasses.dataclass), classes(late_methods.dataclass)

USES: list[Callable[[Any], Any]] = [
    lambda of: repr(of(a=1, b="x")),
    lambda of: repr(of(1)),
    lambda of: of(),
    lambda of: of(1, unknown=2),
    lambda of: repr(of(-1)),
    lambda of: of(a=1, b="x") == of(a=1, b="x"),
    lambda of: of(a=1, b="x") == of(a=2, b="x"),
    lambda of: of(1) == of(1),
    lambda of: of(1) == of(2),
    lambda of: of(1) == 1,
    lambda of: hash(of(a=1, b="x")),
    lambda of: hash(of(1)),
    lambda of: repr(dataclasses.replace(of(1), a=7)),
    lambda of: repr(dataclasses.replace(of(a=1, b="x"), b="y")),
    lambda of: dataclasses.astuple(of(1)),
    lambda of: dataclasses.asdict(of(a=1, b="x")),
    lambda of: [(each.name, each.type, each.kw_only) for each in dataclasses.fields(of)],
    lambda of: of.__match_args__,
    lambda of: setattr(of(1), "a", 2),
    lambda of: setattr(of(a=1, b="x"), "a", 2),
    lambda of: delattr(of(1), "a"),
    lambda of: repr(copy.copy(of(1))),
    lambda of: repr(copy.deepcopy(of(a=1, b="x"))),
    lambda of: of(1).c is of(1).c,
    lambda of: of(1).double,
    lambda of: of.__dataclass_params__.frozen,
    lambda of: hasattr(of(1), "__dict__"),
    lambda of: of.__init__.__name__,
]


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("use", USES, ids=range(len(USES)))
def test_it_does_as_the_librarys(name, use):
    fresh = classes(late_methods.dataclass)[name]  # whose methods were not compiled before
    assert outcome(use, fresh) == outcome(use, LIBRARY[name])


def outcome(use: Callable[[Any], Any], of: Any) -> tuple[str, Any]:
    try:
        return "value", use(of)
    except Exception as error:
        return type(error).__name__, str(error)


@late_methods.dataclass(frozen=True, slots=True)
class Pickled:
    a: int
    b: Mapping[str, int] = dataclasses.field(default_factory=dict)


def test_one_with_slots_is_pickled():
    assert pickle.loads(pickle.dumps(Pickled(1, {"x": 2}))) == Pickled(1, {"x": 2})  # noqa: S301


def test_the_library_makes_a_child_of_one():
    @dataclasses.dataclass(frozen=True)
    class Child(LATE["Plain"]):  # type: ignore[misc]
        e: int = 5

    assert Child(1, e=6) == Child(1, e=6) != Child(1)
    assert repr(Child(1)).endswith("Child(a=1, b='b', c={}, e=5)")


@pytest.mark.parametrize("name", LIBRARY)
def test_what_is_made_often_is_still_as_the_librarys(name):
    of = classes(late_methods.dataclass)[name]
    with suppress(TypeError):  # of a class with more required fields
        for _ in range(late_methods._OFTEN):
            of(1)
    for use in USES:
        assert outcome(use, of) == outcome(use, LIBRARY[name])


@pytest.mark.parametrize("name", LIBRARY)
def test_after_a_wrong_call_it_is_still_as_the_librarys(name):
    of = classes(late_methods.dataclass)[name]
    for use in (lambda of: of(1, 2, 3, 4, 5, 6), lambda of: of(1, a=1), lambda of: of(self=1)):
        assert outcome(use, of) == outcome(use, LIBRARY[name])
    for use in USES:
        assert outcome(use, of) == outcome(use, LIBRARY[name])


def test_each_object_has_values_of_its_own_of_a_factory():
    made = classes(late_methods.dataclass)["Plain"]
    assert made(1).c is not made(1).c


def test_nothing_is_compiled_before_a_class_is_made_often():
    """What `import` and a short run cost: no text becomes code."""
    program = """
import sys
from mondrian_ops.late_methods import dataclass
compiled = []
sys.addaudithook(lambda event, _: event == "compile" and compiled.append(1))
@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    a: int
    b: str = ""
Made(a=1)
Made(b="x", a=1)
assert hash(Made(a=1)) == hash(Made(a=1)) and Made(a=1) == Made(a=1)
assert not compiled
for number in range(1000):
    Made(a=number)
assert 1 <= len(compiled) < 20
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
