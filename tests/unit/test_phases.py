"""What phases cost, by clocks that the tests set."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mondrian_ops import phases as module
from mondrian_ops.phases import Phases, added, since_start


class Clocks:
    """Both clocks: `work` lets them go on."""

    def __init__(self) -> None:
        self.seconds = self.cpu_s = 100.0

    def work(self, seconds: float, cpu_s: float) -> None:
        self.seconds += seconds
        self.cpu_s += cpu_s


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    clock = SimpleNamespace(perf_counter=lambda: clocks.seconds)
    monkeypatch.setattr(module, "time", clock)
    return clocks


@pytest.fixture
def phases(clocks: Clocks) -> Phases:
    return Phases(lambda: clocks.cpu_s)


def test_a_phase_that_comes_again_is_added_up(clocks: Clocks, phases: Phases) -> None:
    for name, seconds in (("read", 1), ("write", 2), ("read", 4)):
        with phases(name):
            clocks.work(seconds, 2 * seconds)
    clocks.work(50, 50)  # in no phase
    expected = {"read": {"seconds": 5, "cpu_s": 10}, "write": {"seconds": 2, "cpu_s": 4}}
    assert phases.costs() == expected


def test_what_lies_in_another_phase_is_no_part_of_it(clocks: Clocks, phases: Phases) -> None:
    with phases("write"):
        clocks.work(1, 1)
        with phases("truth"):
            clocks.work(2, 4)
            with phases("read"):
                clocks.work(8, 16)
        clocks.work(32, 32)
    assert list(phases.costs()) == ["write", "truth", "read"]  # as they began
    assert [each["seconds"] for each in phases.costs().values()] == [33, 2, 8]
    assert [each["cpu_s"] for each in phases.costs().values()] == [33, 4, 16]


def test_phases_in_a_row(clocks: Clocks, phases: Phases) -> None:
    clocks.work(9, 9)
    end = phases.laps()
    clocks.work(1, 2)
    end("encode")
    clocks.work(3, 4)
    end("cut")
    expected = {"encode": {"seconds": 1, "cpu_s": 2}, "cut": {"seconds": 3, "cpu_s": 4}}
    assert phases.costs() == expected


def test_a_phase_that_fails_has_its_costs(clocks: Clocks, phases: Phases) -> None:
    with pytest.raises(ValueError, match="wrong"), phases("outer"), phases("inner"):
        clocks.work(1, 1)
        raise ValueError("wrong")
    with phases("outer"):
        clocks.work(2, 2)
    assert [each["seconds"] for each in phases.costs().values()] == [2, 1]


def test_parts_are_added_up() -> None:
    one, other = {"a": {"seconds": 1.0, "cpu_s": 2.0}}, {"b": {"seconds": 3.0, "cpu_s": 4.0}}
    assert added([one, other, one]) == {"a": {"seconds": 2.0, "cpu_s": 4.0}, **other}
    assert added([]) == {}


def test_nothing_is_left_for_another_run() -> None:
    with Phases()("read"):
        pass
    assert Phases().costs() == {}


def test_this_process_began_before_now() -> None:
    before = since_start()
    assert 0 < before <= since_start()


def test_elsewhere_the_start_is_what_processors_did(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_file(_path: str) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(module, "Path", no_such_file)
    monkeypatch.setattr(module, "time", SimpleNamespace(process_time=lambda: 7.0))
    assert since_start() == 7.0
