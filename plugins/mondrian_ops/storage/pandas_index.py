"""Which columns of a table or file are a pandas index, and no columns of the data.

pandas writes the index of a frame as a column, under the index's name or as ``__index_level_0__``,
and lists it in the metadata of the schema. It is easily forgotten, for a frame does not show it
among its columns, and often it is what tells people apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import pyarrow as pa

__all__ = ["index_columns", "without_index"]

_UNNAMED = re.compile(r"__index_level_\d+__")


def index_columns(schema: pa.Schema) -> set[str]:
    """The columns of ``schema`` that pandas wrote for an index.

    By the metadata of the schema; or by their name, where other software has left the metadata out.
    """
    listed = _listed((schema.metadata or {}).get(b"pandas", b"{}"))
    return {name for name in schema.names if name in listed or _UNNAMED.fullmatch(name)}


def without_index(
    names: Iterable[str], index: Iterable[str], named: Iterable[str]
) -> tuple[list[str], list[str]]:
    """The columns of the data, and the index columns that are left out; both in order.

    ``index``: those of ``names`` that are a pandas index. One is part of the data if it is among
    ``named``, the columns that the job names.
    """
    out = {*index} - {*named}
    found = list(names)
    return [name for name in found if name not in out], [name for name in found if name in out]


def _listed(metadata: bytes) -> set[str]:
    try:
        found = json.loads(metadata)["index_columns"]
    except (ValueError, LookupError, TypeError, RecursionError):  # others may write what they like
        return set()
    # The index of rows by their number is no column: pandas describes it by a mapping.
    return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()
