"""YAML and JSON texts that a person wrote, read with limits and without surprises."""

from __future__ import annotations

import json
from typing import Any

import yaml

__all__ = ["DocumentError", "parsed", "parsed_json"]

MOST_ALIASES = 20  # each may double what the others stand for
MOST_MERGED = 10_000  # keys of a mapping, with those that `<<` takes from others


class DocumentError(Exception):
    """What is wrong, to be put after the name of the file: ``, line 3: not valid YAML``."""


class _Loader(yaml.SafeLoader):
    """YAML in which a key stands once, and few aliases."""

    aliases = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            self.aliases += 1
            if self.aliases > MOST_ALIASES:
                raise DocumentError(f": more than {MOST_ALIASES} aliases")
        return super().compose_node(parent, index)

    def flatten_mapping(self, node: Any) -> None:
        super().flatten_mapping(node)
        if len(node.value) > MOST_MERGED:
            raise DocumentError(f": a mapping of more than {MOST_MERGED:,} keys")

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys):
            raise DocumentError(f", line {node.start_mark.line + 1}: a key is there twice")
        return super().construct_mapping(node, deep)


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
    try:
        return _no_halves(yaml.load(text, _Loader))  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DocumentError(f"{line}: not valid YAML") from None
    except (yaml.YAMLError, ValueError):  # such as a date of no calendar
        raise DocumentError(": not valid YAML") from None
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
