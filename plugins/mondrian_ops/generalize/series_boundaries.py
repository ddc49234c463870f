"""The boundaries that all nights of a series share, as data.

Every published interval of every night is a union of the cells between them, so that groups can be
counted over all nights. A column needs boundaries only where its intervals would end anywhere:
hierarchies, ladders and grids are the same every night, a prefix stands for all values that begin
so, and a set lists its values. They stay the same as long as the job and the hierarchies do, which
is checked.

Boundaries are values of the first night, or round values near them. They are kept in the catalogue
and the private working files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Self

import numpy as np
import pyarrow as pa

from mondrian_ops.data.encoding import as_array, encode_ranks, value_type
from mondrian_ops.data.generalizations import described, generalization_of
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.values import json_value, read_value
from mondrian_ops.errors import JobError, StorageError
from mondrian_ops.generalize.cells import Boundaries
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass
from mondrian_ops.native.arrays import Ints

SCHEMA = 1

_REFIT = (
    "groups could not be compared with those of earlier nights; undo the change, or start anew "
    "with `mondrian_ops series refit`"
)


@dataclass(frozen=True)
class ColumnBoundaries:
    """The boundaries of a column as JSON, and how many sampled rows each cell had at the fit.

    ``closed``: whether a cell is published with its greatest value, see `Boundaries.are_closed`.
    """

    values: Sequence[Any]
    rows: Sequence[int]
    closed: bool

    @classmethod
    def of(cls, values: pa.Array, column: pa.ChunkedArray) -> Self:
        """Boundaries that were fitted on the rows of ``column``."""
        closed = Boundaries(values).are_closed()
        return cls([_json(value) for value in values], rows_by_cell(values, column), closed)


@dataclass(frozen=True)
class SeriesBoundaries:
    """The boundaries of a series.

    Attributes:
        night: the night that they were fitted in, counted from 1.
        time: of the fit, in ISO 8601.
        columns: by interval column.
        generalized: how each quasi-identifier is generalized, see `generalized_by`.
    """

    night: int
    time: str
    columns: Mapping[str, ColumnBoundaries]
    generalized: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """A JSON value that `from_json` reads back."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The boundaries that `to_json` gave; StorageError on another schema version."""
        if value.get("schema") != SCHEMA:
            raise StorageError(
                f"series: its boundaries have schema version {value.get('schema')!r}, this version "
                f"reads {SCHEMA}; use one version of mondrian_ops for all its nights"
            )
        columns = {name: ColumnBoundaries(**each) for name, each in value["columns"].items()}
        names = ("night", "time", "generalized")
        return cls(columns=columns, **{name: value[name] for name in names})

    def arrays(self, types: Mapping[str, pa.DataType]) -> dict[str, pa.Array]:
        """The boundaries in the columns' ``types``; JobError where a type does not hold them."""
        return {name: _read(name, each, types[name]) for name, each in self.columns.items()}

    def check(self, generalized: Mapping[str, str]) -> None:
        """Refuse a night that is not ``generalized`` as the nights before; raises JobError."""
        for name in sorted({*generalized, *self.generalized}):
            before, now = self.generalized.get(name), generalized.get(name)
            if before != now:
                what = "is no quasi-identifier any more" if now is None else "is a new one"
                if before and now:
                    what = f"is generalized by {_named(now)}, not {_named(before)} as before"
                    if _named(now) == _named(before):
                        what = f"is generalized by another {_named(now)} than before"
                raise JobError(
                    f"series: column {name!r} {what} in nights with stable boundaries, so {_REFIT}"
                )


def generalized_by(
    job: Job, types: Mapping[str, pa.DataType], hierarchies: Mapping[str, Hierarchy]
) -> dict[str, str]:
    """How each quasi-identifier is generalized: equal texts give comparable published values."""
    texts = {}
    for quasi in job.quasi_identifiers:
        tree = _digest(hierarchies[quasi.name]) if quasi.name in hierarchies else ""
        how = generalization_of(quasi, types[quasi.name])
        texts[quasi.name] = described(quasi, how, tree)
    return texts


def rows_by_cell(values: pa.Array, column: pa.ChunkedArray) -> list[int]:
    """How many rows of a column lie in each cell between the boundaries ``values``."""
    codes, present = encode_ranks(as_array(column))
    cells = Boundaries(values).of(present, "")
    rows = np.bincount(codes, minlength=len(present) + 1)[1:]
    total: list[int] = np.bincount(cells, rows, len(values) + 1).astype(np.int64).tolist()
    return total


def drift(before: Sequence[int], now: Sequence[int]) -> float:
    """The share of rows that lie in other cells than at the fit, 0 to 1, beyond what chance does.

    It is the total variation distance of two counts by cell, less its expectation for two samples
    of one distribution, cell by cell the mean of a half-normal variable.
    """
    counts: list[Ints] = [np.asarray(each, np.int64) for each in (before, now)]
    totals = [int(each.sum()) for each in counts]
    if not all(totals):
        return 0.0
    shares = [each / total for each, total in zip(counts, totals, strict=True)]
    joint = sum(counts) / sum(totals)
    variance = joint * (1 - joint) * sum(1 / total for total in totals)
    chance = float(np.sqrt(2 * variance / np.pi).sum()) / 2
    distance = float(np.abs(shares[0] - shares[1]).sum()) / 2
    return max(0.0, distance - chance)


def _json(value: pa.Scalar) -> int | float | str | bool:
    """A boundary as JSON, a float32 as the shortest number that stands for it, as in its text."""
    if pa.types.is_float32(value.type):
        return float(str(value.cast(pa.string())))
    return json_value(value)


def _read(name: str, boundaries: ColumnBoundaries, type_: pa.DataType) -> pa.Array:
    plain = value_type(type_)
    plain = pa.float32() if pa.types.is_float16(plain) else plain
    try:
        values = pa.array([read_value(value, plain) for value in boundaries.values], plain)
        fits = Boundaries(values).are_closed() == boundaries.closed
    except (pa.ArrowInvalid, pa.ArrowTypeError, ArithmeticError, ValueError):
        fits = False
    if not fits:
        raise JobError(
            f"series: column {name!r} has another type than in earlier nights, {type_}, which "
            f"cannot be divided at the same boundaries, so {_REFIT}"
        )
    return values


def _named(text: str) -> str:
    return text.partition(" ")[0]


def _digest(hierarchy: Hierarchy) -> str:
    return hashlib.sha256(json.dumps(hierarchy.to_rows()).encode()).hexdigest()[:32]
