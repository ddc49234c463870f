"""How published texts tell values from sets and prefixes, as a reader of the release takes them.

``{France, Italy}`` is a set, ``100**`` a prefix, ``*`` is hidden. A value that could be taken for
one of these is quoted, ``"*"``, and so is a member of a set with a comma, a brace or a blank at its
ends: ``{"Forestry, Fishing", Sales}``. Quotation marks inside are doubled, as in CSV.

A job may publish sets as lists instead, which `as_texts` writes so.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.verify.arrays import in_one

Column: TypeAlias = pa.Array | pa.ChunkedArray

_MARK = '"'
_MEMBER = re.compile(r'"((?:[^"]|"")*)"|([^",{}]+)')
_BETWEEN = ", "
_DOUBTFUL = r'[,{}"*]|^\s|\s$|^$'
_PLAIN = r'^[^",{}]+(, [^",{}]+)*$'


def values_of(texts: pa.Array) -> pa.Array:
    """The value that each text is, without quotation marks; texts of sets stay as they are."""
    if not pc.any(pc.starts_with(texts, _MARK)).as_py():
        return texts
    return pa.array([text and _value(text) for text in texts.to_pylist()], pa.string())


def as_texts(column: Column) -> Column:
    """Sets that are published as lists as the texts that would stand for them; others unchanged.

    An empty list is hidden. Different lists have different texts.
    """
    if not pa.types.is_list(column.type) or not pa.types.is_string(column.type.value_type):
        return column
    lists = in_one(column)
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    values = lists.flatten()
    doubled = pc.replace_substring(values, _MARK, _MARK * 2)
    marked = pc.binary_join_element_wise(_MARK, doubled, _MARK, "")
    members = pc.if_else(pc.match_substring_regex(values, _DOUBTFUL), marked, values)
    ends = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(ends, members), _BETWEEN)
    sets = pc.binary_join_element_wise("{", joined, "}", "")
    texts = pc.if_else(pa.array(sizes > 1), sets, joined)
    texts = pc.if_else(pa.array(sizes == 0), "*", texts)
    return pc.if_else(lists.is_null(), pa.scalar(None, pa.string()), texts)


def is_set(texts: pa.Array) -> NDArray[np.bool_]:
    """Which texts are sets, (texts,)."""
    braced = pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))
    found: NDArray[np.bool_] = pc.fill_null(braced, False).to_numpy(zero_copy_only=False)
    return found


def members_of(sets: pa.Array) -> pa.ListArray:
    """The members of each set, (sets,) lists of texts; an empty list where a text is no set."""
    inner = pc.utf8_slice_codeunits(sets, 1, -1)
    if pc.all(pc.match_substring_regex(inner, _PLAIN)).as_py():
        return pc.split_pattern(inner, _BETWEEN)
    return pa.array([_members(text) for text in inner.to_pylist()], pa.list_(pa.string()))


def _members(inner: str) -> list[str]:
    found, at = [], 0
    while match := _MEMBER.match(inner, at):
        quoted, plain = match.groups()
        found.append(plain if quoted is None else _undoubled(quoted))
        if match.end() == len(inner):
            return found
        if not inner.startswith(_BETWEEN, match.end()):
            return []
        at = match.end() + len(_BETWEEN)
    return []


def _value(text: str) -> str:
    match = _MEMBER.fullmatch(text)
    return text if match is None or match[1] is None else _undoubled(match[1])


def _undoubled(quoted: str) -> str:
    return quoted.replace(_MARK * 2, _MARK)
