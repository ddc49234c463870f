"""YAML and JSON that somebody else may have written, read with limits and without surprises."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["DocumentError", "json_value", "parsed", "parsed_json"]

MOST_ALIASES = 20  # each may double what the others stand for
MOST_MERGED = 10_000  # keys of a mapping, with those that `<<` takes from others


class DocumentError(Exception):
    """What is wrong, to be put after the name of the file: ``, line 3: not valid YAML``."""


def json_value(content: str | bytes) -> Any:
    """The value of a JSON text, which a program wrote; raises ValueError where it is none."""
    try:
        return json.loads(content)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None


def parsed(text: str) -> Any:
    """The value of a YAML or JSON text; raises DocumentError where it is none.

    JSON is read as JSON: YAML takes the two halves that JSON escapes a character as for two.
    """
    if text.lstrip()[:1] == "{":
        try:
            return parsed_json(text)
        except DocumentError as error:
            if "twice" in str(error):
                raise
    from mondrian_ops.storage.yaml_texts import loaded

    try:
        return _no_halves(loaded(text))
    except RecursionError:
        raise DocumentError(": nested too deeply") from None


def parsed_json(text: str) -> Any:
    """The value of a JSON text; raises DocumentError where it is none."""
    try:
        return _no_halves(json.loads(text, object_pairs_hook=_object))
    except json.JSONDecodeError as error:
        raise DocumentError(f", line {error.lineno}: not valid JSON") from None
    except ValueError:  # a number of more digits than Python reads
        raise DocumentError(": not valid JSON") from None
    except RecursionError:
        raise DocumentError(": nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DocumentError(": a key is there twice")
    return found


def _no_halves(value: Any) -> Any:
    """``value``, unless a text in it has half of a character, which no file can hold."""
    stack, seen = [value], set()
    while stack:
        each = stack.pop()
        if isinstance(each, str):
            if any("\ud800" <= character <= "\udfff" for character in each):
                raise DocumentError(": a text has half of a character")
        elif isinstance(each, dict | list) and id(each) not in seen:
            seen.add(id(each))
            stack += [*each, *each.values()] if isinstance(each, dict) else each
    return value
