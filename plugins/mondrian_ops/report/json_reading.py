"""Reads JSON values as frozen dataclasses, and checks every type, for the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

_LARGEST = 10**30  # so that no sum or ratio of figures overflows a float


class ReportError(ValueError):
    """The content is not a report, or its layout is one that this version does not know."""


def wrong(where: str, problem: str) -> ReportError:
    """The error about the value at a path."""
    place = where or "the whole"
    return ReportError(f"the report is damaged, or of another version: {place}: {problem}")


_types_of = cache(get_type_hints)


def _read(kind: Any, value: object, where: str) -> Any:
    """A JSON value as a type that fields of this module have; ``where`` is its path."""
    if kind is Any:
        return value
    if is_dataclass(kind):
        return read_part(kind, value, where)
    if isinstance(kind, UnionType):  # ends with None; of two other types the second is a mapping
        *kinds, _ = get_args(kind)
        one = kinds[-1] if isinstance(value, Mapping) else kinds[0]
        return None if value is None else _read(one, value, where)
    if get_origin(kind) is Mapping:
        of_values = get_args(kind)[1]
        items = as_object(value, where).items()
        return {name: _read(of_values, item, f"{where}.{name}") for name, item in items}
    if get_origin(kind) is tuple:
        return _read_tuple(get_args(kind), value, where)
    return _read_plain(kind, value, where)


def read_part(part: Any, value: object, where: str) -> Any:
    """A JSON object as a dataclass; ``where`` is its path. Raises ReportError."""
    members, values = as_object(value, where), {}
    for each in fields(part):
        path = f"{where}.{each.name}".lstrip(".")
        if each.name in members and each.name != "content":
            values[each.name] = _read(_types_of(part)[each.name], members[each.name], path)
        elif each.default is MISSING and each.default_factory is MISSING:
            raise wrong(path, "it is missing")
    return part(**values)


def _read_tuple(kinds: tuple[Any, ...], value: object, where: str) -> tuple[Any, ...]:
    """Values of one type (``tuple[x, ...]``), or of one type each."""
    if not isinstance(value, list | tuple):
        raise wrong(where, "a list was expected")
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise wrong(where, f"{len(kinds)} values were expected")
    return tuple(
        _read(kind, item, f"{where}.{at}")
        for at, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _read_plain(kind: type, value: object, where: str) -> Any:
    """A text, a truth value, a count (``int``) or a finite number (``float``)."""
    kinds = (int, float) if kind is float else kind
    if not isinstance(value, kinds) or isinstance(value, bool) != (kind is bool):
        raise wrong(where, f"{_EXPECTED[kind]} was expected")
    least = 0 if kind is int else -_LARGEST
    if isinstance(value, int | float) and not least <= value <= _LARGEST:
        raise wrong(where, f"{_EXPECTED[kind]} from {least:g} to {_LARGEST:g} was expected")
    return value


_EXPECTED = {str: "a text", bool: "true or false", int: "a count", float: "a number"}


def as_object(value: object, where: str) -> Mapping[str, Any]:
    """The value, which has to be a JSON object. Raises ReportError."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise wrong(where, "an object was expected")
    return value
