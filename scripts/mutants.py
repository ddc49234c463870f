"""Mutation testing of the code that decides whether a release may be published.

    python scripts/mutants.py [MODULE ...]

``mutations.py`` changes one thing at a time; a mutant is killed if a test fails or does not end.
One pytest imports and collects everything and runs each test once, to learn which functions each
test calls, and how long it takes. Each mutant then runs in a fork of that pytest, against the tests
that call its function, the fastest first. Prints a table. Exits with 1 if a mutant survives that
``equivalent_mutants.toml`` does not list, or if that file lists one that is killed or gone.
"""

from __future__ import annotations

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
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

from mutations import Mutant, mutants

ROOT = Path(__file__).resolve().parents[1]
# A test counts as endless after SECONDS, and TIMES the CPU time that it takes without a mutant.
SECONDS, TIMES = 15, 15

# The code that decides; of some modules these functions only.
DECIDING: dict[str, tuple[str, ...]] = {
    "mondrian_ops.pipeline.api": ("verify",),
    "mondrian_ops.pipeline.approval": (),
    "mondrian_ops.pipeline.catalogued": (),
    "mondrian_ops.pipeline.checks": (),
    "mondrian_ops.pipeline.in_memory": ("anonymize",),
    "mondrian_ops.pipeline.overlap_check": (),
    "mondrian_ops.pipeline.replacement": (),
    "mondrian_ops.pipeline.wrap_up": (),
    "mondrian_ops.operators.approval": (
        "_refuse_other_question",
        "taken",
        "confirmed",
    ),
    "mondrian_ops.catalogue.approvals": (),
    "mondrian_ops.catalogue.sketches": (),
    "mondrian_ops.catalogue.signatures": (),
    "mondrian_ops.catalogue.publication": (),
    "mondrian_ops.engines.release_check": (),
    "mondrian_ops.tables.parquet_files": ("index_columns", "without_index", "_listed_index"),
    "mondrian_ops.publish.release": ("published", "current_token"),
    "mondrian_ops.publish.workdir": ("may_publish",),
    "mondrian_ops.series.attack": (),
    "mondrian_ops.series.evidence": (),
    "mondrian_ops.series.intersection.night": (
        "checked",
        "_strangers",
        "_as_published",
        "_coded",
    ),
    "mondrian_ops.series.keyed_hashes": (
        "types_of",
        "value_hashes",
        "person_hashes",
        "spelled",
        "_type_name",
    ),
    "mondrian_ops.cut.shown_conditions": (),
    "mondrian_ops.verify.attacker": (),
    "mondrian_ops.verify.coverage": (),
    "mondrian_ops.series.intersection.check": (),
    "mondrian_ops.verify.classes": (),
    "mondrian_ops.verify.counts": (),
    "mondrian_ops.verify.criteria.base": (),
    "mondrian_ops.verify.criteria.distinct_diversity": (),
    "mondrian_ops.verify.criteria.entropy_diversity": (),
    "mondrian_ops.verify.criteria.k_anonymity": (),
    "mondrian_ops.verify.criteria.recursive_diversity": (),
    "mondrian_ops.verify.criteria.spread_diversity": (),
    "mondrian_ops.verify.criteria.t_closeness": (),
    "mondrian_ops.verify.figures": (),
    "mondrian_ops.verify.labels": (),
    "mondrian_ops.verify.loss": (),
    "mondrian_ops.verify.spilling": (),
    "mondrian_ops.verify.scales": (),
    "mondrian_ops.verify.shares": (),
    "mondrian_ops.verify.spread": (),
    "mondrian_ops.verify.truth": (),
    "mondrian_ops.verify.values": (),
    "mondrian_ops.generalize.rounding": (),
    "mondrian_ops.data.sketch": (),
    "mondrian_ops.verify.requirements": (),
    "mondrian_ops.job.widths": (),
}

TESTS = (
    "tests/unit/catalogue/test_approvals.py",
    "tests/unit/catalogue/test_signatures.py",
    "tests/unit/catalogue/test_publication.py",
    "tests/unit/tables/test_parquet_files.py",
    "tests/unit/verify/test_attacker.py",
    "tests/unit/verify/test_coverage.py",
    "tests/unit/cut/test_shown_conditions.py",
    "tests/unit/verify/test_counts.py",
    "tests/unit/verify/test_labels.py",
    "tests/unit/verify/test_loss.py",
    "tests/unit/verify/test_spilling.py",
    "tests/unit/verify/test_spread.py",
    "tests/unit/verify/test_truth.py",
    "tests/unit/verify/test_values.py",
    "tests/unit/generalize/test_rounding.py",
    "tests/unit/data/test_sketch.py",
    "tests/unit/verify/test_requirements.py",
    "tests/unit/job/test_widths.py",
    "tests/unit/engines/test_release_check.py",
    "tests/unit/engines/test_spark_submit.py",
    "tests/unit/pipeline/",
    "tests/unit/series/",
    "tests/integration/attacks/test_forged_approvals.py",
    "tests/integration/test_counterfeits.py",
    "tests/integration/test_intersection.py",
    "tests/integration/test_people_released_before.py",
    "tests/integration/test_true_labels.py",
    "tests/integration/test_two_runs_at_once.py",
    "tests/integration/test_verify_series.py",
)

Key = tuple[str, str, str, str]
Counts = Counter[str]
KINDS = ("mutants", "killed", "equivalent", "survived")


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
        own = {
            id(value): name
            for name, value in self._all.items()
            if isinstance(value, (type, FunctionType)) and value.__module__ == self.name
        }
        self._places = [
            (vars(other), name, own[id(value)])
            for other in list(sys.modules.values())
            if isinstance(other, ModuleType) and other is not module
            for name, value in vars(other).items()
            if id(value) in own
        ]

    def become(self, source: str) -> None:
        """Run another source in the module, and update the names in other modules."""
        exec(compile(source, self.file, "exec"), self._all)  # noqa: S102
        for place, name, own in self._places:
            place[name] = self._all[own]


def fails(item: pytest.Item) -> bool:
    """Whether a test fails with a catalogue of its own, its setup and teardown included."""
    os.environ["MONDRIAN_OPS_CATALOGUE"] = f"{tempfile.mkdtemp()}/catalogue.db"
    os.environ["MONDRIAN_OPS_CATALOGUE_KEY"] = f"{os.environ['MONDRIAN_OPS_CATALOGUE']}.key"
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def first_failing(took: Mapping[pytest.Item, float]) -> int:
    """The place of the first failing test, from 1 on; 0 if all pass."""
    for place, (item, seconds) in enumerate(took.items(), start=1):
        limit(SECONDS + TIMES * seconds)
        if fails(item):
            return place
    return 0


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
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            target.become(source)
            status = min(first_failing(took), 255)
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(status)
    return None if status == 0 else max(-1, status - 1)


class Session:
    """A pytest that runs its tests once, and then again for each mutant."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self._wanted = [name for name in DECIDING if not wanted or name.split(".")[-1] in wanted]
        self._called: dict[tuple[str, int], set[pytest.Item]] = defaultdict(set)
        self._took: dict[pytest.Item, float] = {}
        self._kills: Counter[pytest.Item] = Counter()
        self.counts: dict[str, Counts] = {}
        self.wrong = 0

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run each test once, and then again for each mutant."""
        if session.testsfailed:
            raise session.Interrupted("tests cannot be collected")
        modules = [importlib.import_module(name) for name in self._wanted]
        self._try(session.items, modules)
        gc.disable()  # the collector writes to every object, so that forks would copy all memory
        for module in modules:
            self._test(Target(module))
        return True

    def _try(self, items: Sequence[pytest.Item], modules: Sequence[ModuleType]) -> None:
        calls = Calls(modules)
        for item in items:
            started = time.process_time()
            with calls.noted():
                is_bad = fails(item)
            self._took[item] = time.process_time() - started
            if is_bad:
                raise pytest.UsageError(f"{item.nodeid} fails without any mutant")
            for code in calls.seen:
                self._called[code].add(item)

    def _test(self, target: Target) -> None:
        every = range(len(target.source))
        self._pass_unchanged(target)
        listed = {key for key in equivalent() if key[0] == target.name}
        met: set[Key] = set()
        functions, counts = DECIDING[target.name], self.counts.setdefault(target.name, Counter())
        candidates = list(mutants(target.source))
        if missing := {*functions} - {mutant.function for mutant in candidates}:
            raise pytest.UsageError(f"{target.name}: no mutant in {', '.join(sorted(missing))}")
        for mutant in candidates:
            if functions and mutant.function not in functions:
                continue
            tests = self._callers(target, mutant.within or every)
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
            counts.update(["mutants", fate])
        self._pass_unchanged(target)  # they must still pass, or no kill counts
        print(target.name, dict(counts), flush=True)
        for key in sorted(listed - met):
            print(f"listed as equivalent, but killed or not there: {key}", flush=True)
            self.wrong += 1

    def _pass_unchanged(self, target: Target) -> None:
        every = self._callers(target, range(len(target.source)))
        if killer(target, target.source, every) is not None:
            raise pytest.UsageError(f"{target.name}: its tests fail without any mutant")

    def _callers(self, target: Target, lines: Iterable[int]) -> dict[pytest.Item, float]:
        """The tests that call a function which begins in one of the lines, with their CPU seconds.

        Fast tests, and those that have killed many mutants, come first.
        """
        callers = set().union(*(self._called.get((target.file, line), ()) for line in lines))
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


def main(wanted: list[str]) -> int:
    """Run the mutants of the modules ``wanted`` (the ends of their names), or of all."""
    if unknown := {*wanted} - {name.split(".")[-1] for name in DECIDING}:
        sys.exit(f"no module that decides ends with {', '.join(sorted(unknown))}")
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "plugins"), str(ROOT / "tests/support")]
    # Without shrinking, which takes long.
    whole = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", derandomize=True, deadline=None, phases=whole)
    settings.load_profile("mutants")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none is needed
    started = time.monotonic()
    session = Session(wanted)
    # Only the outcome of a test matters, so its failure is not explained.
    options = "-q -s --tb=native --assert=plain --noconftest -p no:cacheprovider"
    with tempfile.TemporaryDirectory() as here:  # pytest's own is removed by the next one's start
        tempfile.tempdir = os.environ["AIRFLOW_HOME"] = here
        options += f" -o tmp_path_retention_policy=none --basetemp={here}/tests"
        chosen = ["-m", "not s3 and not soak"]  # whose servers are conftest's
        status = pytest.main([*options.split(), *chosen, *TESTS], plugins=[session])
    if status != pytest.ExitCode.OK:
        return int(status)
    print(table(session.counts))
    tried = sum(each["mutants"] for each in session.counts.values())
    print(f"{tried} mutants in {time.monotonic() - started:.0f} s")
    return 1 if session.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
