"""YAML texts that a person wrote. A module of its own: JSON is read without importing yaml."""

from __future__ import annotations

from typing import Any

import yaml

from mondrian_ops.storage.documents import MOST_ALIASES, MOST_MERGED, DocumentError

__all__ = ["loaded"]


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


def loaded(text: str) -> Any:
    """The value of a YAML text; raises DocumentError where it is none, RecursionError."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DocumentError(f"{line}: not valid YAML") from None
    except (yaml.YAMLError, ValueError):  # such as a date of no calendar
        raise DocumentError(": not valid YAML") from None
