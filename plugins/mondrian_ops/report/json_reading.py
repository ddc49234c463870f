"""Reads JSON values as frozen dataclasses, and checks every type, for the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

_LARGEST = 10**30  # so that no sum or ratio of figures overflows a float


class ReportError(ValueError):
    """The content is not a report, or its layout is one that this version does not know."""


def wrong(where: str, problem: str) -> ReportError:
    """The error about the value at a path."""
    place = where or "the whole"
    return ReportError(f"the report is damaged, or of another version: {place}: {problem}")


Reader = Callable[[object, str], Any]
"""Reads a JSON value, given its path; raises ReportError."""


@cache
def _reader(kind: Any) -> Reader:
    """What reads a JSON value as a type that fields of the report have."""
    if kind is Any:
        return lambda value, _where: value
    if is_dataclass(kind):
        return partial(read_part, kind)
    if isinstance(kind, UnionType):  # ends with None; of two other types the second is a mapping
        *kinds, _ = map(_reader, get_args(kind))
        return partial(_read_optional, kinds[0], kinds[-1])
    if get_origin(kind) is Mapping:
        return partial(_read_mapping, _reader(get_args(kind)[1]))
    if get_origin(kind) is tuple:
        return partial(_read_tuple, get_args(kind))
    return partial(_read_plain, kind)


@cache
def _members(part: Any) -> dict[str, tuple[Reader, bool]]:
    """Of a dataclass by member of its object: what reads it, and whether it may be missing."""
    types = get_type_hints(part)
    return {
        each.name: (
            _reader(types[each.name]),
            each.default is not MISSING or each.default_factory is not MISSING,
        )
        for each in fields(part)
        if each.name != "content"
    }


def read_part(part: Any, value: object, where: str) -> Any:
    """A JSON object as a dataclass; ``where`` is its path. Raises ReportError."""
    members, values = as_object(value, where), {}
    for name, (reader, may_be_missing) in _members(part).items():
        path = f"{where}.{name}" if where else name
        if name in members:
            values[name] = reader(members[name], path)
        elif not may_be_missing:
            raise wrong(path, "it is missing")
    return part(**values)


def _read_optional(reader: Reader, of_mapping: Reader, value: object, where: str) -> Any:
    """Nothing, or a value of one of two types."""
    if value is None:
        return None
    return (of_mapping if isinstance(value, Mapping) else reader)(value, where)


def _read_mapping(reader: Reader, value: object, where: str) -> dict[str, Any]:
    """A JSON object whose values have one type."""
    return {name: reader(item, f"{where}.{name}") for name, item in as_object(value, where).items()}


def _read_tuple(kinds: tuple[Any, ...], value: object, where: str) -> tuple[Any, ...]:
    """Values of one type (``tuple[x, ...]``), or of one type each."""
    if not isinstance(value, list | tuple):
        raise wrong(where, "a list was expected")
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise wrong(where, f"{len(kinds)} values were expected")
    return tuple(
        _reader(kind)(item, f"{where}.{at}")
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


def copied(value: Any) -> Any:
    """A copy of a JSON value, in depth; `copy.deepcopy` takes four times as long."""
    if isinstance(value, dict):
        return {name: copied(item) for name, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return tuple(map(copied, value)) if isinstance(value, tuple) else value
