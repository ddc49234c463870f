"""Values that a hierarchy or an order does not list, and the errors that say so."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops.data.encoding import Column, indexed
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.values import one_spelling, text_of
from mondrian_ops.errors import HierarchyError, InputError


def not_in_order(name: str, rows: int) -> InputError:
    """The error about rows whose value the job's order of a column does not list."""
    return InputError(
        f"column {name!r}: {rows} row(s) hold values that order does not list; add them, or make "
        "them missing"
    )


def leaves_of(hierarchy: Hierarchy, sensitive: bool) -> pa.Array:
    """The leaves as values are compared with them; those of sensitive columns in one spelling."""
    leaves = pa.array(hierarchy.leaves, pa.string())
    return pc.fill_null(one_spelling(leaves), "") if sensitive else leaves  # no value is ""


def check_spellings(name: str, hierarchy: Hierarchy) -> None:
    """Refuse leaves that are spellings of one value: they would count as several values."""
    spelled = pc.value_counts(one_spelling(pa.array(hierarchy.leaves, pa.string())).drop_null())
    twice = pc.sum(pc.greater(spelled.field("counts"), 1)).as_py()
    if twice:
        raise HierarchyError(
            f"column {name!r}: the hierarchy {hierarchy.name!r} has {twice} leaves with several "
            "spellings, which differ only in blanks or Unicode form and count as one sensitive "
            "value; keep one spelling of each"
        )


def no_leaf(
    name: str,
    columns: Iterable[Column],
    hierarchy: Hierarchy,
    sensitive: bool,
    pointed: bool = False,
) -> list[str]:
    """The values in parts of column ``name`` that are no leaves, as text, in order.

    Those of a ``sensitive`` column in one spelling, as they are compared. ``pointed``: whole
    numbers are written ``70.0``. Raises InputError for text that is not UTF-8.
    """
    leaves = leaves_of(hierarchy, sensitive)
    found: set[str] = set()
    for column in columns:
        values, _ = indexed(column).mapped(lambda each: text_of(each, pointed)).counted()
        check_text(name, values)
        values = one_spelling(values) if sensitive else values
        unknown = pc.invert(pc.is_in(values, value_set=leaves))
        found.update(values.filter(pc.and_(unknown, pc.is_valid(values))).to_pylist())
    return sorted(found)


_EMPTY_IS_MISSING = "csv.missing: [''] makes it a missing value, in Parquet files and tables, too"


def no_leaves(
    name: str,
    type_: pa.DataType,
    form: str,
    hierarchy: Hierarchy,
    rows: int,
    values: int | None = None,
    *,
    empty: bool = False,
) -> HierarchyError:
    """The error about ``rows`` rows of a column, with so many ``values``, that are no leaves.

    ``form``: how values of its type are written, if it is not text. ``empty``: one of the values is
    the empty text, which is no cell of a hierarchy's file.
    """
    if empty and values == 1:
        return HierarchyError(
            f"column {name!r}: {rows} row(s) hold the empty text, which no hierarchy can list; "
            f"{_EMPTY_IS_MISSING}"
        )
    which = "values" if values is None else f"{values} value(s)"
    form = f", where values of type {type_} are written as {form}" if form else ""
    return HierarchyError(
        f"column {name!r}: {rows} row(s) hold {which} that are not leaves of the hierarchy "
        f"{hierarchy.name!r}{form}; add them to it, or make them missing"
        f"{f'; one is the empty text, which no hierarchy can list: {_EMPTY_IS_MISSING}' * empty}"
        "; to list them in a private file: python -m mondrian_ops hierarchy missing JOB --column "
        f"{shlex.quote(name)}"
    )


def check_text(name: str, values: pa.Array) -> None:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raise InputError(
            f"column {name!r}: holds text that is not UTF-8; convert it to UTF-8"
        ) from None
