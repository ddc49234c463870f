"""What a mutant is: one thing changed in a source, so that something else is executed.

The operators are Cosmic Ray's, and two that it lacks: a statement that is left out, and an error
that is not caught.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

import parso
from cosmic_ray.ast import ast_nodes
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

# Of the replacements of an arithmetic operator, the ones that are nearest to it.
_NEAREST = {"Add_Sub", "Sub_Add", "Mul_Div", "Mul_Add", "Div_Mul", "Div_FloorDiv", "BitAnd_BitOr",
            "BitOr_BitAnd", "BitXor_BitAnd", "LShift_RShift", "RShift_LShift", "FloorDiv_Mul",
            "FloorDiv_Div", "Mod_Mul", "Mod_FloorDiv", "Pow_Mul"}  # fmt: skip

# Identity for equality of words, of small numbers and of None: the same.
_SAME = {"Eq_Is", "NotEq_IsNot", "Is_Eq", "IsNot_NotEq"}

# Variables take arguments, and exceptions in a tuple break the operator.
_LEFT_OUT = ("Variable", "Exception")

_STATEMENTS = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Return, ast.Continue, ast.Break)

Functions = (ast.FunctionDef, ast.AsyncFunctionDef)


class Mutant(NamedTuple):
    """A source with one change, which begins in ``line``: that is ``before``, and then ``after``.

    ``within`` are the lines of the outermost function in whose body it is, decorators included;
    None: it is executed when the module is imported. ``function`` is that function's name, or "".
    """

    line: int
    operator: str
    before: str
    after: str
    function: str
    within: range | None
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Each change that makes another program, once.

    One definition after the other, for reading the whole anew for each change would take longer
    than most tests do.
    """
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    bodies = list(_bodies(tree))
    for node in tree.body:
        first, last = _first_line(node), node.end_lineno or node.lineno
        above, below = "".join(lines[: first - 1]), "".join(lines[last:])
        piece = "".join(lines[first - 1 : last])
        for at, operator, changed in _changes(piece):
            before, after = (text.splitlines()[at - 1].strip() for text in (piece, changed))
            name, within = _around(first + at - 1, bodies)
            whole = above + changed + below
            yield Mutant(first + at - 1, operator, before, after, name, within, whole)


def _changes(piece: str) -> Iterator[tuple[int, str, str]]:
    """(line, operator, changed text) of a definition or statement."""
    seen = {_executed(piece)}
    for line, operator, changed in (*_cosmic(piece), *_left_out(piece)):
        try:
            executed = _executed(changed)
        except SyntaxError:
            continue
        if executed not in seen:
            seen.add(executed)
            yield line, operator, changed


def _operators() -> Iterator[tuple[str, Any]]:
    for name in sorted(operator_names()):
        kind, _, change = name.partition("Operator_")
        is_far = kind.endswith("Binary") and change not in _NEAREST
        if not (is_far or change in _SAME or any(word in name for word in _LEFT_OUT)):
            yield name.removeprefix("core/"), get_operator(name)()


def _cosmic(piece: str) -> Iterator[tuple[int, str, str]]:
    nodes = list(ast_nodes(parso.parse(piece)))
    for name, operator in _operators():
        places = [at for node in nodes for at in operator.mutation_positions(node)]
        for occurrence, (start, _) in enumerate(places):
            changed = mutate_code(piece, operator, occurrence)
            if changed is not None:
                yield start[0], name, changed


def _left_out(piece: str) -> Iterator[tuple[int, str, str]]:
    """Statements of functions that become ``pass``, and handlers that catch nothing."""
    for function in (node for node in ast.walk(ast.parse(piece)) if isinstance(node, Functions)):
        for node in ast.walk(function):
            if isinstance(node, _STATEMENTS) and not _is_docstring(node):
                yield node.lineno, "RemoveStatement", _replaced(piece, node, "pass")
            elif isinstance(node, ast.ExceptHandler) and node.type is not None:
                yield node.lineno, "CatchNothing", _replaced(piece, node.type, "()")


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _replaced(source: str, node: ast.stmt | ast.expr, by: str) -> str:
    """The source with the node replaced; what follows stays in its lines."""
    lines = source.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    rest = lines[last][node.end_col_offset :]
    lines[first] = lines[first][: node.col_offset] + by.encode() + rest
    lines[first + 1 : last + 1] = [b"\n"] * (last - first)
    return b"".join(lines).decode()


def _first_line(node: Any) -> int:
    lines: list[int] = [each.lineno for each in (node, *getattr(node, "decorator_list", ()))]
    return min(lines)


def _bodies(tree: ast.Module) -> Iterator[tuple[str, int, int, int]]:
    """(name, first line, first line of the body, last line) of functions and methods."""
    for outer in tree.body:
        for node in outer.body if isinstance(outer, ast.ClassDef) else [outer]:
            if isinstance(node, Functions):
                name = f"{outer.name}.{node.name}" if isinstance(outer, ast.ClassDef) else node.name
                last = node.end_lineno or node.lineno
                yield name, _first_line(node), node.body[0].lineno, last


def _around(line: int, bodies: list[tuple[str, int, int, int]]) -> tuple[str, range | None]:
    for name, first, body, last in bodies:
        if first <= line <= last:
            return name, range(first, last + 1) if line >= body else None
    return "", None


class _Executed(ast.NodeTransformer):
    """Without annotations and imports for them, which nothing evaluates, ways to pass arguments,
    zip's ``strict`` and a dataclass's ``slots``.

    What those say always holds: without them the same is executed.
    """

    def visit_If(self, node: ast.If) -> ast.AST:
        if any(getattr(each, "id", "") == "TYPE_CHECKING" for each in ast.walk(node.test)):
            return ast.Pass()
        self.generic_visit(node)
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        if node.arg in ("strict", "slots"):
            node.value = ast.Constant(True)
        self.generic_visit(node)
        return node

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


def _executed(source: str) -> str:
    return ast.dump(_Executed().visit(ast.parse(source)))
