"""Which values of a sensitive column lie near one another, in codes, for the cutting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.data.encoding import ticks_per_day, value_type
from mondrian_ops.errors import JobError
from mondrian_ops.job.widths import Width

# What is this much further apart than the width is still near. The check of the release takes less
# for near, so that it never finds fault with what was cut because of a rounded number.
_SLACK = 1e-9


def is_measurable(type_: pa.DataType) -> bool:
    """Whether the differences of a type's values are numbers or spans of time."""
    type_ = value_type(type_)
    return bool(
        is_of_time(type_)
        or pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_decimal(type_)
    )


def is_of_time(type_: pa.DataType) -> bool:
    """Whether the type is one of dates, times of day, or moments."""
    type_ = value_type(type_)
    return bool(pa.types.is_date(type_) or pa.types.is_time(type_) or pa.types.is_timestamp(type_))


def check_width(name: str, type_: pa.DataType, width: Width) -> None:
    """Raise JobError where the values of a column of this type have no such width."""
    type_ = value_type(type_)
    if not is_measurable(type_):
        raise JobError(
            f"l_width.{name}: the column is {type_}, whose values have no width; remove it, or say "
            "in the job's types that it is a number or a date"
        )
    if is_of_time(type_) and not width.is_of_time:
        raise JobError(
            f"l_width.{name}: {width.text} is no span of time, and the column is {type_}; write it "
            "with a unit, such as 30 days or 12 hours"
        )
    if width.is_of_time and not is_of_time(type_):
        raise JobError(
            f"l_width.{name}: {width.text} is a span of time, and the column is {type_}; write a "
            "share or a number, such as 10 % or 500"
        )


def near_ends(values: pa.Array, width: Width, missing: bool) -> NDArray[np.int32]:
    """The greatest code near each code, (codes,) int32: no less than the code, and ascending.

    ``values`` are distinct and ascend. With ``missing`` code 0 is the missing value, which is near
    none. Numbers are compared as float64: what this cannot tell apart is near.
    """
    line = _line(values)
    if width.unit == "share":
        # b is near a <= b if b - a <= share * max(|a|, |b|).
        rest = 1 - width.amount
        gap = np.abs(line) * np.where(line >= 0, 1 / rest - 1, width.amount)
    else:
        gap = np.full(len(line), width.amount * _units(values.type, width))
    with np.errstate(invalid="ignore"):  # of infinite values
        reach = np.nextafter(line + gap * (1 + _SLACK), np.inf)
    reach = np.where(np.isfinite(line), reach, line)
    last = np.searchsorted(line, reach, side="right") - 1
    shift = int(missing)
    ends = np.concatenate([np.zeros(shift, np.int64), last + shift])
    return np.maximum.accumulate(ends).astype(np.int32)


def _line(values: pa.Array) -> NDArray[np.float64]:
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_temporal(values.type):
        values = values.cast(pa.int64())
    line: NDArray[Any] = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return line


def _units(type_: pa.DataType, width: Width) -> float:
    """The column's units per unit of the width."""
    if not width.is_of_time:
        return 1.0
    return (1 if pa.types.is_date32(type_) else ticks_per_day(type_)) / 86_400
