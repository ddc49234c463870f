"""Mutation testing of the code that decides whether a release may be published.

    python scripts/mutants.py [--every N] [MODULE or PART ...]

``deciding.toml`` lists the modules in parts, each with the tests that hold it.
``mutations.py`` changes one thing at a time; a mutant is killed if a test fails or does not end.
One pytest runs each test of the parts once, to learn which functions each test calls, and how long
it takes. Each mutant then runs in a fork of that pytest, against the tests
that call its function, the fastest first. Prints a table. Exits with 1 if a mutant survives that
``equivalent_mutants.toml`` does not list, or if that file lists one that is killed or gone.
``--every N`` tries each Nth mutant only.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import signal
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

from mutations import Mutant, mutants

ROOT = Path(__file__).resolve().parents[1]
# A test counts as endless after SECONDS, and TIMES the CPU time that it takes without a mutant.
SECONDS, TIMES = 15, 15


class Part(NamedTuple):
    """Modules that decide, of each the functions that do (none: all of it), and their tests."""

    name: str
    tests: tuple[str, ...]
    modules: Mapping[str, tuple[str, ...]]

    def holds(self, item: pytest.Item) -> bool:
        """Whether a test is one of this part's."""
        return item.nodeid.startswith(self.tests)


def parts() -> list[Part]:
    """What ``deciding.toml`` lists."""
    listed = tomllib.loads((ROOT / "scripts/deciding.toml").read_text(encoding="utf-8"))
    return [
        Part(
            each["name"],
            tuple(each["tests"]),
            {f"mondrian_ops.{name}": tuple(of) for name, of in each["modules"].items()},
        )
        for each in listed["part"]
    ]


Key = tuple[str, str, str, str]
Counts = Counter[str]
_Cached = type(lru_cache(int))
KINDS = ("mutants", "not tried", "killed", "equivalent", "survived")


def equivalent() -> set[Key]:
    """(module, function, line, mutated line) of the mutants that behave as the code does."""
    listed = tomllib.loads((ROOT / "scripts/equivalent_mutants.toml").read_text(encoding="utf-8"))
    keys = ("module", "function", "before", "after")
    return {tuple(each.get(key, "") for key in keys) for each in listed["mutant"]}


class Calls:
    """Records which functions of the modules are called, by the first lines of their code."""

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        self._files = {str(module.__file__) for module in modules}
        self.seen: set[tuple[str, int]] = set()

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        code: CodeType = frame.f_code
        if event == "call" and code.co_filename in self._files:
            self.seen.add((code.co_filename, code.co_firstlineno))

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Record until the block ends, also in the threads that it starts."""
        self.seen = set()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


class Target:
    """A module that is mutated, and the names in other modules that refer to its objects."""

    def __init__(self, module: ModuleType) -> None:
        self.name, self.file, self._all = module.__name__, str(module.__file__), vars(module)
        self.source = Path(self.file).read_text(encoding="utf-8")
        *rooms, name = self.name.split(".")[1:]
        self.tests = "/".join(["tests/unit", *rooms, f"test_{name}.py"])
        own = {
            id(value): name
            for name, value in self._all.items()
            if not name.startswith("__") and _is_own(value, self.name)
        }
        self._was = {name: self._all[name] for name in own.values()}
        others = [
            (vars(other), name, value)
            for other in list(sys.modules.values())
            if isinstance(other, ModuleType) and other is not module
            for name, value in vars(other).items()
        ]
        self._places = [
            (place, name, value)
            for place, name, value in others
            if id(value) in own
            or (type(value) in (tuple, list) and any(id(each) in own for each in value))
        ]
        self._caches = [
            value.cache_clear
            for _, _, value in others
            if isinstance(value, _Cached) and value.__module__.startswith("mondrian_ops.")
        ]

    def become(self, source: str) -> None:
        """Run another source in the module, and update what in other modules refers to it.

        That is names, elements of lists, and the bases of classes; and what was made of it is
        forgotten.
        """
        exec(compile(source, self.file, "exec"), self._all)  # noqa: S102
        for forget in self._caches:
            forget()
        renewed = {id(value): self._all[name] for name, value in self._was.items()}
        for place, name, value in self._places:
            if id(value) in renewed:
                place[name] = renewed[id(value)]
            else:
                place[name] = type(value)(renewed.get(id(each), each) for each in value)
        below: type
        bases = [each for each in self._was.values() if isinstance(each, type)]
        for below in chain.from_iterable(base.__subclasses__() for base in bases):
            if below.__module__ != self.name:
                below.__bases__ = tuple(renewed.get(id(each), each) for each in below.__bases__)


def _is_own(value: object, module: str) -> bool:
    """Whether a module has made it; of what is empty there may be one for all."""
    is_filled = isinstance(value, (tuple, list, dict, set, frozenset)) and bool(value)
    return is_filled or getattr(value, "__module__", "") == module


def fails(item: pytest.Item) -> bool:
    """Whether a test fails, its setup and teardown included."""
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def first_failing(took: Mapping[pytest.Item, float]) -> int:
    """The place of the first failing test, from 1 on; 0 if all pass."""
    for place, (item, seconds) in enumerate(took.items(), start=1):
        limit(SECONDS + TIMES * seconds)
        if fails(item):
            return place
    return 0


@contextmanager
def silent() -> Iterator[None]:
    """What tests write, also from processes that they start, is not shown."""
    sys.stdout.flush()
    kept, nowhere = [os.dup(1), os.dup(2)], os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        sys.stdout.flush()
        for number, each in enumerate(kept, start=1):
            os.dup2(each, number)
            os.close(each)


def limit(seconds: float) -> None:
    """End this process after so much CPU time, or twenty times that of waiting."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 20 * seconds)


def killer(target: Target, source: str, took: Mapping[pytest.Item, float]) -> int | None:
    """The index of the first test that fails with this source, in a fork; None if all pass.

    ``took`` holds the tests in order, and the CPU seconds of each without a mutant. The result is
    -1 if a test does not end, and also 0 if the module cannot be imported.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            limit(SECONDS)
            with silent():
                target.become(source)
                status = min(first_failing(took), 255)
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(status)
    return None if status == 0 else max(-1, status - 1)


class Session:
    """A pytest that runs its tests once, and then again for each mutant."""

    def __init__(self, chosen: Mapping[str, Part], every: int) -> None:
        """``chosen``: the modules to mutate, each with its part; ``every``: 4 for each fourth."""
        self._chosen, self._every = chosen, every
        self._called: dict[tuple[str, int], set[pytest.Item]] = defaultdict(set)
        self._took: dict[pytest.Item, float] = {}
        self._kills: Counter[pytest.Item] = Counter()
        self.counts: dict[str, Counts] = {}
        self.wrong = 0

    def pytest_sessionstart(self) -> None:
        """Without shrinking, which takes long; conftest has loaded another profile."""
        whole = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", derandomize=True, deadline=None, phases=whole)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run each test once, and then again for each mutant."""
        if session.testsfailed:
            raise session.Interrupted("tests cannot be collected")
        modules = [importlib.import_module(name) for name in self._chosen]
        self._try(session.items, modules)
        gc.disable()  # the collector writes to every object, so that forks would copy all memory
        for module in modules:
            self._test(Target(module))
        return True

    def _try(self, items: Sequence[pytest.Item], modules: Sequence[ModuleType]) -> None:
        calls = Calls(modules)
        for item in items:
            started = time.process_time()
            with calls.noted(), silent():
                is_bad = fails(item)
            self._took[item] = time.process_time() - started
            if is_bad:
                raise pytest.UsageError(f"{item.nodeid} fails without any mutant")
            for code in calls.seen:
                self._called[code].add(item)

    def _test(self, target: Target) -> None:
        self._pass_unchanged(target)
        listed = {key for key in equivalent() if key[0] == target.name}
        met: set[Key] = set()
        part = self._chosen[target.name]
        functions, counts = (
            part.modules[target.name],
            self.counts.setdefault(target.name, Counter()),
        )
        candidates = list(mutants(target.source))
        if missing := {*functions} - {mutant.function for mutant in candidates}:
            raise pytest.UsageError(f"{target.name}: no mutant in {', '.join(sorted(missing))}")
        if functions:
            candidates = [mutant for mutant in candidates if mutant.function in functions]
        sample = candidates[:: self._every]
        counts.update({"mutants": len(candidates), "not tried": len(candidates) - len(sample)})
        for mutant in sample:
            tests = self._callers(target, mutant.within)
            by = killer(target, mutant.source, tests)
            key = (target.name, mutant.function, mutant.before, mutant.after)
            if by is not None:
                fate = "killed"
                self._kills.update([*tests][by : by + 1])  # nothing for -1
            elif key in listed:
                fate = "equivalent"
                met.add(key)
            else:
                fate = "survived"
                self._tell(target.name, mutant)
            counts[fate] += 1
        self._pass_unchanged(target)  # they must still pass, or no kill counts
        print(target.name, dict(counts), flush=True)
        for key in sorted(listed - met) if self._every == 1 else ():
            print(f"listed as equivalent, but killed or not there: {key}", flush=True)
            self.wrong += 1

    def _pass_unchanged(self, target: Target) -> None:
        every = self._callers(target, None)
        by = killer(target, target.source, every)
        if by is not None:
            which = [*every][by].nodeid if by >= 0 else "a test that does not end"
            raise pytest.UsageError(f"{target.name}: {which} fails without any mutant")

    def _callers(self, target: Target, lines: Iterable[int] | None) -> dict[pytest.Item, float]:
        """The tests that call a function which begins in one of the lines, with their CPU seconds.

        None: of any function, and the module's own tests.

        Fast tests, and those that have killed many mutants, come first.
        """
        files = [(target.file, line) for line in lines or range(len(target.source))]
        called = set().union(*(self._called.get(file, ()) for file in files))
        callers = {*filter(self._chosen[target.name].holds, called)}
        if lines is None:  # they may need no more of it than what its import makes
            callers.update(item for item in self._took if item.nodeid.startswith(target.tests))
        ordered = sorted(callers, key=lambda item: self._took[item] / (1 + self._kills[item]))
        return {item: self._took[item] for item in ordered}

    def _tell(self, name: str, mutant: Mutant) -> None:
        self.wrong += 1
        print(
            f"{name}:{mutant.line} {mutant.operator} in {mutant.function or 'the module'}\n"
            f"  - {mutant.before}\n  + {mutant.after}",
            flush=True,
        )


def table(counts: Mapping[str, Counts]) -> str:
    """The outcome by module, in Markdown."""
    rows = [["module", *KINDS]]
    rows += [[name, *(str(each[kind]) for kind in KINDS)] for name, each in counts.items()]
    whole = sum(counts.values(), Counter())
    rows.append(["together", *(str(whole[kind]) for kind in KINDS)])
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(wanted: list[str], every: int = 1) -> int:
    """Run the mutants of the parts and modules ``wanted`` (the ends of their names), or of all.

    ``every``: 4 tries each fourth mutant of a module only.
    """
    of_module = {name: part for part in parts() for name in part.modules}
    known = {name: {part.name, name.split(".")[-1]} for name, part in of_module.items()}
    if unknown := {*wanted}.difference(*known.values()):
        sys.exit(f"deciding.toml has no part or module {', '.join(sorted(unknown))}")
    chosen = {
        name: part
        for name, part in of_module.items()
        if not wanted or not known[name].isdisjoint(wanted)
    }
    tests = dict.fromkeys(test for part in chosen.values() for test in part.tests)
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "plugins"), str(ROOT / "tests/support")]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none is needed
    started = time.monotonic()
    session = Session(chosen, every)
    # Only the outcome of a test matters, so its failure is not explained.
    options = "-q -s --tb=native --assert=plain -p no:cacheprovider"
    with tempfile.TemporaryDirectory() as here:  # pytest's own is removed by the next one's start
        tempfile.tempdir = here
        options += f" -o tmp_path_retention_policy=none --basetemp={here}/tests"
        marked = ["-m", "not s3 and not soak"]  # whose servers are conftest's
        status = pytest.main([*options.split(), *marked, *tests], plugins=[session])
    if status != pytest.ExitCode.OK:
        return int(status)
    print(table(session.counts))
    tried = sum(each["mutants"] - each["not tried"] for each in session.counts.values())
    print(f"{tried} mutants in {time.monotonic() - started:.0f} s")
    return 1 if session.wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wanted", nargs="*", metavar="MODULE or PART", help="none: all")
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="try each Nth mutant only"
    )
    sys.exit(main(**vars(parser.parse_args())))
