"""Which columns of a table or file are a pandas index rather than data.

pandas writes the index of a frame as a column, under the index's name or as ``__index_level_0__``,
and lists it in the schema's metadata. People forget it easily, because a frame does not show it
among its columns, and often it identifies a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from mondrian_ops.storage.documents import json_value

__all__ = ["index_columns", "without_index"]

_UNNAMED = re.compile(r"__index_level_\d+__")


def index_columns(schema: pa.Schema) -> set[str]:
    """The columns of ``schema`` that pandas wrote for an index.

    By the schema's metadata, or by their name if other software has dropped the metadata.
    """
    listed = _listed((schema.metadata or {}).get(b"pandas", b"{}"))
    return {name for name in schema.names if name in listed or _UNNAMED.fullmatch(name)}


def without_index(
    names: Iterable[str], index: Iterable[str], named: Iterable[str]
) -> tuple[list[str], list[str]]:
    """The columns of the data, and the index columns that are left out, both in order.

    ``index``: those of ``names`` that are a pandas index. An index column is part of the data if it
    is among ``named``, the columns that the job names.
    """
    left_out = {*index} - {*named}
    data: list[str] = []
    others: list[str] = []
    for name in names:
        (others if name in left_out else data).append(name)
    return data, others


def _listed(metadata: bytes) -> set[str]:
    try:
        columns = json_value(metadata)["index_columns"]
    except (ValueError, LookupError, TypeError):  # other software may write anything there
        return set()
    if not isinstance(columns, list):
        return set()
    # A range index is no column: pandas describes it by a mapping.
    return {name for name in columns if isinstance(name, str)}
