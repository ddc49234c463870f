"""JSON and YAML that somebody else may have written, read with limits.

yaml is imported for YAML only: most processes read none.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

MAX_ALIASES = 20  # each may double what the others stand for
MAX_LEVELS = 100  # each is read in the time of all around it
MAX_MERGED_KEYS = 10_000  # of one mapping, with those that `<<` takes from others


class DocumentError(Exception):
    """What is wrong, worded to follow a file's name: ``, line 3: not valid YAML``."""


def json_value(content: str | bytes) -> Any:
    """The value of JSON that a program wrote; raises ValueError if it is not JSON."""
    try:
        return json.loads(content)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None


def parsed(text: str) -> Any:
    """The value of a YAML or JSON text that a person wrote.

    A text that is JSON is read as JSON: YAML reads the surrogate pair by which JSON escapes a
    character as two characters.

    Raises:
        DocumentError: it is neither, or has a duplicate key, more than ``MAX_ALIASES`` aliases, a
            mapping of more than ``MAX_MERGED_KEYS`` keys, more than ``MAX_LEVELS`` levels of YAML,
            or half of a surrogate pair.
    """
    if text.lstrip().startswith("{"):
        try:
            return parsed_json(text)
        except DocumentError as error:
            if _DUPLICATE_KEY in str(error):
                raise
    return _without_surrogates(_yaml_value(text))


def parsed_json(text: str) -> Any:
    """The value of a JSON text that a person wrote.

    Raises:
        DocumentError: it is not JSON, or has a duplicate key or half of a surrogate pair.
    """
    try:
        return _without_surrogates(json.loads(text, object_pairs_hook=_unique_keys))
    except json.JSONDecodeError as error:
        raise DocumentError(f", line {error.lineno}: not valid JSON") from None
    except ValueError:  # a number of more digits than Python reads
        raise DocumentError(": not valid JSON") from None
    except RecursionError:
        raise DocumentError(_TOO_DEEP) from None


_DUPLICATE_KEY = ": duplicate key"
_TOO_DEEP = ": nested too deeply"


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise DocumentError(_DUPLICATE_KEY)
    return value


def _without_surrogates(value: Any) -> Any:
    """``value``, unless a text in it has half of a surrogate pair, which no file can hold."""
    stack, seen = [value], set()
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            try:
                item.encode()
            except UnicodeEncodeError:
                raise DocumentError(": a text has an unpaired surrogate") from None
        elif isinstance(item, dict | list) and id(item) not in seen:
            seen.add(id(item))
            stack += [*item, *item.values()] if isinstance(item, dict) else item
    return value


def _yaml_value(text: str) -> Any:
    import yaml

    try:
        return yaml.load(text, _yaml_loader())  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DocumentError(f"{line}: not valid YAML") from None
    except (yaml.YAMLError, ValueError):  # ValueError: such as a date of no calendar
        raise DocumentError(": not valid YAML") from None
    except RecursionError:
        raise DocumentError(_TOO_DEEP) from None


@cache
def _yaml_loader() -> Any:
    """yaml's SafeLoader, which refuses duplicate keys, and more aliases or levels than allowed."""
    import yaml

    class Loader(yaml.SafeLoader):
        aliases = levels = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                self.aliases += 1
                if self.aliases > MAX_ALIASES:
                    raise DocumentError(f": more than {MAX_ALIASES} aliases")
            if self.levels >= MAX_LEVELS:
                raise DocumentError(_TOO_DEEP)
            self.levels += 1
            composed = super().compose_node(parent, index)
            self.levels -= 1
            return composed

        def flatten_mapping(self, node: Any) -> None:
            super().flatten_mapping(node)
            if len(node.value) > MAX_MERGED_KEYS:
                raise DocumentError(f": a mapping of more than {MAX_MERGED_KEYS:,} keys")

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if len(set(keys)) < len(keys):
                raise DocumentError(f", line {node.start_mark.line + 1}{_DUPLICATE_KEY}")
            return super().construct_mapping(node, deep)

    return Loader
