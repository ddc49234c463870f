"""Mutation testing of the code that decides whether a release may be published.

    python scripts/mutants.py [MODULE ...]

Cosmic Ray's operators change one thing at a time; a mutant is killed where a test fails. Each runs
in a fork of a process that has imported all else, so that one takes a second and not ten. Exits
with 1 where a mutant that is not listed in ``EQUIVALENT`` survives.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import parso
import pytest
from cosmic_ray.ast import ast_nodes
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 300  # of a mutant that never ends

# The code that decides, and the tests of it: those that fail soonest first.
_COUNTING = ["tests/core/test_deciding.py", "tests/core/test_verification.py"]
_PUBLISHING = ["tests/test_deciding_runs.py"]
TESTS = {
    "mondrian_ops.core.verification": _COUNTING,
    "mondrian_ops.core.release_count": _COUNTING,
    "mondrian_ops.pipeline.checks": _PUBLISHING,
    "mondrian_ops.pipeline.wrap_up": _PUBLISHING,
}

# What is imported anew in each fork: the mutants, and what imports them.
_DECIDING = ("mondrian_ops.pipeline", *TESTS)

# Of the replacements of an arithmetic operator, the one that is nearest to it.
_NEAREST = {"Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "BitAnd_BitOr", "BitOr_BitAnd",
            "LShift_RShift", "FloorDiv_Mul", "Mod_Mul", "Pow_Mul"}  # fmt: skip

# Identity for equality of words, of small numbers and of None: the same.
_SAME = {"Eq_Is", "NotEq_IsNot", "Is_Eq", "IsNot_NotEq"}

# Mutants that do what the code does: (module, line as it stands, line as it is mutated) -> why.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "mondrian_ops.pipeline.wrap_up",
        "verdict = verification.check(count, job, hierarchies_of(job, of_sensitive=True))",
        "verdict = verification.check(count, job, hierarchies_of(job, of_sensitive=False))",
    ): "it reads more files than are looked at",
    (
        "mondrian_ops.core.verification",
        "of_code = np.array([-1, *leaves], np.int64)",
        "of_code = np.array([~1, *leaves], np.int64)",
    ): "any number below 0 is no leaf",
    (
        "mondrian_ops.core.verification",
        "@dataclass(frozen=True)",
        "@dataclass(frozen=False)",
    ): "nothing assigns to it",
    (
        "mondrian_ops.pipeline.wrap_up",
        "for summary, part in zip(summaries, parts, strict=True):",
        "for summary, part in zip(summaries, parts, strict=False):",
    ): "a part was counted for each summary",
    (
        "mondrian_ops.core.release_count",
        "if sum(len(each.sizes) for each in self._pending) > "
        "max(_PENDING, len(self._merged.sizes)):",
        "if not sum(len(each.sizes) for each in self._pending) > "
        "max(_PENDING, len(self._merged.sizes)):",
    ): "how often parts are merged changes time and memory, not the count",
    (
        "mondrian_ops.pipeline.checks",
        'for name in job.quasi_identifier_names if job.interval_style == "bounds" else ():',
        'for name in job.quasi_identifier_names if job.interval_style <= "bounds" else ():',
    ): "the other style is text, which comes after",
    (
        "mondrian_ops.pipeline.checks",
        "if rows == 0:",
        "if rows <= 0:",
    ): "there are never fewer rows than none",
}


def operators() -> list[str]:
    """Those whose mutants are not all equivalent here."""
    found = []
    for name in sorted(operator_names()):
        kind, _, change = name.partition("Operator_")
        # Of exceptions: caught or not, nothing is published; and tuples of them break the operator.
        if (
            "Variable" in name
            or "Exception" in name
            or (kind.endswith("Binary") and change not in _NEAREST)
        ):
            continue
        if change not in _SAME:
            found.append(name)
    return found


def mutants(source: str) -> Iterator[tuple[int, str, str, str]]:
    """(line, operator, line before, source after) of each mutant that changes what is executed."""
    tree = parso.parse(source)
    plain = ast.dump(_executed(source))
    lines = source.splitlines()
    for name in operators():
        operator = get_operator(name)()
        places = [at for node in ast_nodes(tree) for at in operator.mutation_positions(node)]
        for occurrence, (start, _) in enumerate(places):
            changed = mutate_code(source, operator, occurrence)
            if changed is None or ast.dump(_executed(changed)) == plain:
                continue
            yield start[0], name, lines[start[0] - 1].strip(), changed


class _Executed(ast.NodeTransformer):
    """Without annotations, which nothing evaluates, and ways to pass arguments."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        given = node.args  # the bare * is no multiplication
        given.args = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        given.defaults += [each for each in given.kw_defaults if each is not None]
        given.posonlyargs, given.kwonlyargs, given.kw_defaults = [], [], []
        self.generic_visit(node)
        return node


def _executed(source: str) -> ast.AST:
    return _Executed().visit(ast.parse(source))


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from another source."""

    def __init__(self, name: str, path: str, source: str) -> None:
        self._name, self._path, self._source = name, path, source

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Of the one module."""
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=self)

    def exec_module(self, module: Any) -> None:
        """Run the other source."""
        exec(compile(self._source, self._path, "exec"), module.__dict__)  # noqa: S102


def run(name: str, path: str, source: str, tests: list[str]) -> str:
    """``killed``, ``survived`` or ``timeout``, in a process of its own."""
    child = os.fork()
    if child == 0:
        _child(name, path, source, tests)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if status == 0 else "killed"
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def _child(name: str, path: str, source: str, tests: list[str]) -> None:
    status = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.meta_path.insert(0, _Mutated(name, path, source))
        options = ["-x", "-q", "-p", "no:cacheprovider", "--noconftest"]
        status = int(pytest.main([*options, *tests]))
    finally:
        os._exit(status)


def _load_the_rest() -> None:
    """Import what a mutant does not change, once for all forks."""
    sys.path[:0] = [str(ROOT / "plugins"), str(ROOT / "tests")]
    for module in ("hypothesis", "numpy", "pandas", "pyarrow.compute", "pyarrow.parquet", "yaml"):
        importlib.import_module(module)
    for module in ("algorithms.recoding_choice", "core.survey", "storage", "report", "engines.run"):
        importlib.import_module(f"mondrian_ops.{module}")
    _run_once()
    for name in [name for name in sys.modules if name.startswith(_DECIDING)]:
        del sys.modules[name]
    for attribute in ("pipeline", "anonymize"):
        vars(sys.modules["mondrian_ops"]).pop(attribute, None)


def _run_once() -> None:
    """So that the kernels are compiled before the forks."""
    import pyarrow as pa

    from mondrian_ops import anonymize

    table = pa.table({"age": [at // 3 for at in range(24)]})
    anonymize(table, {"k": 3, "quasi_identifiers": ["age"], "cut": "median"})


def main(wanted: list[str]) -> int:
    """Run the mutants of the modules ``wanted`` (the ends of their names), or of all."""
    os.chdir(ROOT)
    # That a test fails is enough; the least example would take long to find.
    whole = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", derandomize=True, deadline=None, phases=whole)
    settings.load_profile("mutants")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none is needed
    _load_the_rest()
    unexpected = 0
    for name, tests in TESTS.items():
        if wanted and name.rpartition(".")[2] not in wanted:
            continue
        path = ROOT / "plugins" / (name.replace(".", "/") + ".py")
        source = path.read_text(encoding="utf-8")
        if run(name, str(path), source, tests) != "survived":
            print(f"{name}: its tests fail without any mutant")
            return 1
        counts = {"killed": 0, "timeout": 0, "survived": 0, "equivalent": 0}
        for line, operator, before, changed in mutants(source):
            outcome = run(name, str(path), changed, tests)
            after = changed.splitlines()[line - 1].strip()
            if outcome == "survived" and (name, before, after) in EQUIVALENT:
                outcome = "equivalent"
            counts[outcome] += 1
            if sys.stderr.isatty() or os.environ.get("MUTANTS_TOLD"):
                print(f"\r{counts}", end="", file=sys.stderr, flush=True)
            if outcome == "survived":
                print(f"{path.name}:{line} {operator}\n  - {before}\n  + {after}", flush=True)
        unexpected += counts["survived"]
        print(name, ", ".join(f"{n} {what}" for what, n in counts.items()), flush=True)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
