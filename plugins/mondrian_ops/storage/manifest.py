"""``_SUCCESS``: the mark of a complete release, and the list of its data files.

A JSON value, ``{"token": …, "files": [{"name": …, "rows": …, "bytes": …}, …]}``. Where a release
cannot appear in one step, its files are those that this list names, and no others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mondrian_ops.storage.documents import json_value
from mondrian_ops.storage.files import read_file
from mondrian_ops.storage.locations import joined

__all__ = ["NAME", "build", "names", "read"]

NAME = "_SUCCESS"


def build(token: str, files: Sequence[tuple[str, int, int]]) -> bytes:
    """The content for an attempt's token and the name, rows and bytes of each file."""
    listed = [{"name": name, "rows": rows, "bytes": size} for name, rows, size in files]
    return json.dumps({"token": token, "files": listed}, indent=1).encode() + b"\n"


def read(release: str) -> Mapping[str, Any] | None:
    """What the manifest in a directory says; None where there is none, or one of others."""
    try:
        told = json_value(read_file(joined(release, NAME)))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return told if isinstance(told, dict) and {"token", "files"} <= told.keys() else None


def names(told: Mapping[str, Any] | None) -> set[str]:
    """The files that a manifest names."""
    return {each["name"] for each in told["files"]} if told else set()
