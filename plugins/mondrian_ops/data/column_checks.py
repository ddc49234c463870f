"""What the values of a column must be so that they can be counted, cut and published."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops.data.encoding import as_array, value_type
from mondrian_ops.data.values import writable
from mondrian_ops.errors import InputError, JobError
from mondrian_ops.job import limits


def check_countable(role: str, name: str, type_: pa.DataType) -> None:
    """Refuse a column whose values Arrow cannot compare."""
    try:
        none = as_array(pa.array([], value_type(type_)))
        pc.value_counts(none)
        pc.array_sort_indices(none)
    except pa.ArrowNotImplementedError:
        raise JobError(
            f"{role}: values of column {name!r} of type {type_} cannot be counted; flatten it, "
            "or make it text, a number or a decimal128"
        ) from None


def check_length(name: str, values: pa.Array) -> None:
    """Refuse texts longer than a quasi-identifier may have."""
    if pa.types.is_string(values.type) and len(values):
        longest = pc.max(pc.binary_length(values)).as_py() or 0
        limits.check_text(f"quasi-identifier {name!r}", longest, "quasi_identifier_text")


def check_time_zone(name: str, type_: pa.DataType) -> None:
    """Refuse a time zone that this machine does not know."""
    plain = value_type(type_)
    if not pa.types.is_timestamp(plain):
        return
    try:
        pa.array([0], plain).cast(pa.string())
    except pa.ArrowInvalid:
        raise JobError(
            f"column {name!r} of type {type_}: its time zone is unknown on this machine; convert "
            "the column to UTC, or install the time zone database (tzdata)"
        ) from None


def check_moments(name: str, values: pa.Array) -> None:
    """Refuse moments outside the calendar, by which some databases write infinity."""
    if not pa.types.is_temporal(values.type):
        return
    if all(writable(end) for end in ends_of(values) if end.is_valid):
        return
    raise InputError(
        f"column {name!r}: holds values of type {values.type} that are no date or time between the "
        "years 0 and 9999; replace them or make them missing before anonymizing"
    )


def ends_of(values: pa.Array) -> pa.Array:
    """The least and the greatest value, as Arrow scalars: Python cannot hold all of them."""
    ends = pc.min_max(values)
    return pa.array([ends["min"], ends["max"]], values.type)
