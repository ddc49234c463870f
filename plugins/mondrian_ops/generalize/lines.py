"""The line of a column's numbers or moments: how widths on it are measured, and its open ends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops.data.encoding import Codes, code_dtype, positions, value_type
from mondrian_ops.data.small_integers import look_up
from mondrian_ops.data.values import read_value
from mondrian_ops.errors import JobError
from mondrian_ops.generalize.cells import Cells
from mondrian_ops.generalize.rounding import round_between
from mondrian_ops.job.options import percent_of
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.late_methods import dataclass
from mondrian_ops.native.arrays import Floats

_MORE = 2.0  # times the share that a job gives, beyond which an end moves outward or is noted


@dataclass(frozen=True, eq=False)
class WidthScale:
    """How positions on a line become those by which widths are measured.

    ``quantiles``: of the column, ascending positions, for ``rank``.
    """

    kind: Literal["linear", "log", "rank"]
    quantiles: Floats

    def of(self, line: Floats) -> Floats:
        """The measured positions of some positions."""
        if self.kind == "log":
            measured: Floats = np.sign(line) * np.log1p(np.abs(line))
            return measured
        if self.kind == "rank" and len(self.quantiles):
            known, count = np.unique(self.quantiles, return_counts=True)
            below = (np.cumsum(count) - count / 2) / len(self.quantiles)
            return np.interp(line, known, below)
        return line


LINEAR = WidthScale("linear", np.zeros(0))


def scale_of(quasi: QuasiIdentifier, quantiles: pa.Array) -> WidthScale:
    """The scale of a quasi-identifier whose column has these ``quantiles``."""
    if quasi.scale != "rank":
        return WidthScale(quasi.scale, np.zeros(0))
    return WidthScale("rank", positions(quantiles.drop_null(), quasi.name))


def open_ends(
    quasi: QuasiIdentifier, type_: pa.DataType, quantiles: pa.Array, rows: int, k: int
) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    """The values up to which, and from which on, values are published alike.

    A share becomes a round value at that quantile, with k of the ``rows`` beyond it at least. Where
    nearly all rows have one value there is none.

    Raises JobError where one is no value of the type.
    """
    type_ = value_type(type_)
    type_ = pa.float32() if pa.types.is_float16(type_) else type_
    present = quantiles.drop_null().cast(type_)
    rows_by_value = rows / max(1, len(quantiles))
    ends: list[pa.Scalar | None] = []
    for name, text in (("bottom", quasi.bottom), ("top", quasi.top)):
        share = percent_of(text)
        if text is None or (share is not None and len(present) < 2):
            ends.append(None)
        elif share is None:
            ends.append(_value(quasi.name, name, text, type_))
        else:
            ends.append(_at(present, share, k, max(1.0, rows_by_value), name == "top"))
    bottom, top = ends
    if bottom is not None and top is not None and not pc.less(bottom, top).as_py():
        if any(percent_of(each) is not None for each in (quasi.bottom, quasi.top)):
            return None, None  # nearly all rows have one value
        raise JobError(
            f"quasi_identifiers: column {quasi.name!r}: bottom must be below top; change one"
        )
    return bottom, top


def _value(column: str, name: str, text: str, type_: pa.DataType) -> pa.Scalar:
    try:
        if pa.types.is_integer(type_):
            number = Decimal(text)
            if not abs(number) < 2**64:  # no integer type holds it
                raise OverflowError
            # The least whole number that is not below a top, the greatest that is not above.
            return pa.scalar(math.ceil(number) if name == "top" else math.floor(number), type_)
        if pa.types.is_timestamp(type_) and type_.tz:
            return _in_zone(text, type_)
        value = read_value(text, type_)
        if pa.types.is_floating(type_) and not math.isfinite(value.as_py()):
            raise OverflowError
        return value
    except (ArithmeticError, ValueError, pa.ArrowInvalid):
        raise JobError(
            f"quasi_identifiers: column {column!r} of type {type_}: {name} {text!r} is no value of "
            "this type; give one, such as 200000, 2020-01-31 or 13:30, or a share such as 1 %"
        ) from None


def _in_zone(text: str, type_: pa.DataType) -> pa.Scalar:
    """A moment of a type with a time zone, in which a text without an offset is read."""
    try:
        local = read_value(text, pa.timestamp(type_.unit))
    except pa.ArrowInvalid:
        return read_value(text, type_)
    return pc.assume_timezone(local, type_.tz, ambiguous="earliest", nonexistent="latest")


def _at(
    present: pa.Array, share: float, k: int, rows_by_value: float, upwards: bool
) -> pa.Scalar | None:
    """A round value near the quantile of a share, so that it is nobody's; with more beyond it.

    Where many rows have the value at the quantile, the end lies beyond this value, if ``k`` rows
    do. None where they do not, and those that have it or lie beyond it are more than half.
    """
    last = len(present) - 1
    beyond = min(0.5, max(share, k / (rows_by_value * len(present))))
    at = int(np.floor((1 - beyond) * last) if upwards else np.ceil(beyond * last))
    inside, outside = (pc.less, pc.greater) if upwards else (pc.greater, pc.less)
    value = present[at]
    inner = present.filter(inside(present, value))
    merged = 1 - len(inner) / len(present)
    if merged > min(0.5, _MORE * beyond):
        outer = present.filter(outside(present, value))
        if 1 + (len(outer) - 1) * rows_by_value >= k:
            value = outer[0 if upwards else len(outer) - 1]
            inner = present.filter(inside(present, value))
        elif merged > 0.5:
            return None
    if not len(inner):
        return value
    ends = (inner[len(inner) - 1], value) if upwards else (value, inner[0])
    rounded = round_between(*ends)
    return value if rounded is None else read_value(rounded.value, present.type)


def notes_on_ends(
    quasi: QuasiIdentifier,
    ends: tuple[pa.Scalar | None, pa.Scalar | None],
    quantiles: pa.Array,
    cells: Cells | None = None,
) -> Iterator[str]:
    """What is to say of `open_ends` that publish more rows alike than the job seems to want."""
    present = quantiles.drop_null()
    texts = {"bottom": quasi.bottom, "top": quasi.top}
    for (name, text), end in zip(texts.items(), ends, strict=True):
        share = percent_of(text)
        if text is None or len(present) < 2:
            continue
        where = f"column {quasi.name!r}: {name} {text}"
        if end is None:
            yield f"{where} has no effect, as most rows have one value; give a value as {name}"
            continue
        values = pa.concat_arrays([present, pa.array([end], present.type)])
        if cells is not None:
            values = pa.array(cells.of(values, quasi.name))
        is_beyond = pc.less_equal if name == "bottom" else pc.greater_equal
        merged = count_true(is_beyond(values[:-1], values[-1])) / len(present)
        if merged > min(0.5, _MORE * (share or 1)):
            size = "more than half" if merged > 0.5 else f"{100 * merged:.0f} %"
            remedy = "a share is written as 1 %" if share is None else "a value can be given"
            yield f"{where} publishes {size} of the rows with values alike; {remedy}"


def with_open_ends(
    codes: Codes, values: pa.Array, bottom: pa.Scalar | None, top: pa.Scalar | None
) -> tuple[Codes, pa.Array]:
    """Codes, and the ascending values of codes 1, 2, ..., with one for all beyond an open end.

    The value of that code is the end.
    """
    count = len(values)
    upto = 0 if bottom is None else count_true(pc.less_equal(values, bottom))
    start = count if top is None else count_true(pc.less(values, top))
    if not upto and start == count:
        return codes, values
    first, last = max(0, upto - 1), min(start, count - 1)
    place = np.clip(np.arange(count), first, last) - first + 1
    table = np.concatenate([[0], place]).astype(code_dtype(last - first + 2))
    ends = [pa.array([end], values.type) for end in (bottom, top)]
    kept = values.slice(upto, max(0, start - upto))
    parts = [*(ends[:1] if upto else ()), kept, *(ends[1:] if start < count else ())]
    return look_up(table, codes), pa.concat_arrays(parts)


def count_true(flags: pa.Array) -> int:
    """How many of the flags are true."""
    return int(pc.sum(flags).as_py() or 0)
