"""Interval columns of a night whose boundaries come from an earlier one, and their cells."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

from mondrian_ops.data.profile import Profile
from mondrian_ops.generalize.attributes import Classes, IntervalAttribute
from mondrian_ops.generalize.resolving import attributes_of
from mondrian_ops.job.job import Job
from published_text import KINDS, is_missing, text_of

ORDERED = {name: kind for name, kind in KINDS.items() if "interval" in kind.ways}
DISCRETE = ("int", "small int", "date", "number dictionary", "constant")


def plain_type(kind) -> pa.DataType:
    return kind.type.value_type if pa.types.is_dictionary(kind.type) else kind.type


def attribute_of(kind, boundaries, values, **keys) -> IntervalAttribute:
    """The attribute of a night that has ``values``, with boundaries of an earlier night."""
    plain = plain_type(kind)
    present = [value for value in values if not is_missing(value)]
    ends = pa.array([min(present), max(present)] if present else [], plain)
    job = Job.from_dict({"k": 2, "quasi_identifiers": ["q=interval"], **keys}, paths_required=False)
    profile = Profile(
        len(values), {"q": kind.type}, {"q": ends}, {}, (), {"q": pa.array(boundaries, plain)}
    )
    (attribute,) = attributes_of(profile, job, {}, tree_order=True)
    return attribute


def column_of(kind, values) -> pa.Array:
    if pa.types.is_dictionary(kind.type):
        return pa.array(values, kind.type.value_type).dictionary_encode()
    return pa.array(values, kind.type)


def published(attribute, column, sizes):
    index = np.arange(len(column), dtype=np.int32)
    starts = np.cumsum([0, *sizes[:-1]])
    return attribute.publish(attribute.encode(column), Classes(index, starts))


def ends_of(kind, name, boundaries, value):
    """The texts of the ends of the cell of a value, by looking at every boundary."""
    below = [edge for edge in boundaries if edge <= value]
    above = [edge for edge in boundaries if edge > value]
    start = f"[{text_of(kind, max(below))}" if below else "(-inf"
    if not above:
        return start, "inf)"
    if name not in DISCRETE:
        return start, f"{text_of(kind, min(above))})"
    one = dt.timedelta(1) if isinstance(min(above), dt.date) else 1
    return start, f"{text_of(kind, min(above) - one)}]"
