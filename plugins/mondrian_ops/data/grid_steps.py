"""The step of the grid to which the ends of a column's intervals are rounded.

A tight interval ends at values that somebody has. Where each belongs to few people and is one of
thousands that are possible, as a latitude with 14 digits, who knows it finds its class by it. On a
grid an interval ends at nobody's value. The step follows the median density: about k people are in
a cell of the middle. In the tails a cell may hold one person, so that an end tells this value to
within a step; `top` and `bottom` leave these ends open, and a note names them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.data.encoding import as_array, days, positions
from mondrian_ops.data.exact_intervals import DecimalUnits
from mondrian_ops.data.integer_codes import look_like_codes, note_on_codes
from mondrian_ops.data.person_rows import hashed
from mondrian_ops.data.spans import robust_ends
from mondrian_ops.data.values import text_of
from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.late_methods import dataclass

Floats = NDArray[np.float64]

MOSTLY_RARE = 0.5
"""The share of rare ones among the values of a column from which on its intervals are rounded."""

GRID = "grid "
"""What the text of a choice begins with that is a grid; its step follows."""

_POSSIBLE = 1000  # values between the robust ends: fewer tell nobody apart outside the dataset
_CELLS = 100  # of a robust span, at least, so that little is lost in a small dataset
_DAYS = 20  # of a robust span of moments; grids of them have whole days
_NEIGHBOURS = 10  # rows by whose distance it is measured how close the values of a sample are
_DIGITS = 15  # of a float64
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # of the years 1 and 9999, counted from 1970-01-01


@dataclass(frozen=True)
class Grids:
    """The grids that the values of columns decide.

    ``rare`` by column whose tight intervals would end at one person's values: the share of its
    values that fewer than k have. ``steps``: of the columns that have a grid for this reason, or
    because the job says ``grid: auto``. ``codes``: columns of whole numbers that may be codes.
    ``tails`` by column with a step: its ends, not left open, at which cells have far less than k.
    """

    rare: Mapping[str, float] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)
    codes: Sequence[str] = field(default_factory=list)
    tails: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        job: Job,
        rows: int,
        sample: pa.Table,
        domains: Mapping[str, pa.Array],
        quantiles: Mapping[str, pa.Array],
        chosen: Mapping[str, str] | None = None,
    ) -> Self:
        """The grids of a dataset of some ``rows``, by a random ``sample`` of them.

        ``domains`` by column: the ends of its range. ``quantiles``: of the columns of intervals.
        Where nights share boundaries, intervals end at these. ``chosen`` by column: what it has
        had since the first release of its dataset, as of `contract.Column`. Raises JobError where
        the job says ``grid: auto`` and there can be none.
        """
        rare, steps, codes = dict[str, float](), dict[str, float](), list[str]()
        persons = None if job.entity_id is None else sample[job.entity_id]
        for quasi in job.quasi_identifiers if job.has_grids else ():
            name = quasi.name
            if name not in quantiles or (quasi.is_described and quasi.grid != "auto"):
                continue
            kept = (chosen or {}).get(name, "")
            if kept.startswith(GRID):
                steps[name] = float(kept.removeprefix(GRID))
            if quasi.grid is None:
                if look_like_codes(quantiles[name]):
                    codes.append(name)
                if not can_be_told_apart(quantiles[name]):
                    continue
                share = rare_values(sample[name], rows, job.k, persons)
                if share < MOSTLY_RARE:
                    continue
                rare[name] = share
            if kept:
                continue
            robust = robust_ends(quantiles[name], name)
            step = grid_step(sample[name], domains[name], robust, rows, job.k, persons)
            if step is not None:
                steps[name] = step
            else:
                _check_auto(quasi, domains[name])
        return cls(rare, steps, codes, _closed_tails(job, rows, quantiles, steps))

    def resolved(self, quasi: QuasiIdentifier) -> QuasiIdentifier:
        """The quasi-identifier with the grid that its values decide."""
        if quasi.name not in self.steps and quasi.grid != "auto":
            return quasi
        return replace(quasi, generalization="interval", grid=self.steps.get(quasi.name))

    def notes(self, types: Mapping[str, pa.DataType]) -> Iterator[str]:
        """What is to say of each column whose values are rare, or may be codes."""
        yield from map(note_on_codes, self.codes)
        for name, share in self.rare.items():
            step = self.steps.get(name)
            holders = (
                f"column {name!r}: {100 * share:.0f} % of its distinct values belong to fewer than "
                "k rows (persons)"
            )
            if step is None:
                yield (
                    f"{holders}, and its intervals end at them; round the values before "
                    "anonymizing, or give the column a ladder"
                )
                continue
            unit = " (days)" if pa.types.is_temporal(types[name]) else ""
            yield (
                f"{holders}, so its intervals end on a grid of step {step:.15g}{unit} instead; "
                "name another grid, or generalization: interval to have them end at the values"
            )
        for name, ends in self.tails.items():
            listed = " and ".join(f"{end}: 1 %" for end in ends)
            yield (
                f"column {name!r}: the outermost cells of its grid hold far fewer than k rows, so "
                f"the ends of their intervals come close to single values; give it {listed}"
            )


def has_grid(type_: pa.DataType) -> bool:
    """Whether the intervals of a type may lie on a grid: those of numbers and days."""
    kinds = pa.types
    is_number = kinds.is_integer(type_) or kinds.is_floating(type_) or kinds.is_decimal(type_)
    return bool(is_number or kinds.is_date(type_) or kinds.is_timestamp(type_))


def can_be_told_apart(quantiles: pa.Array) -> bool:
    """Whether a column, given `spans.quantiles_of` it, may have values that only one person has."""
    present = quantiles.drop_null()
    if len(present) < 2 or not has_grid(present.type):
        return False
    ends = robust_ends(present, "")
    width = float(np.diff(positions(ends, ""))[0])
    return width > 0 and width >= _POSSIBLE * _resolution(present, positions(present, ""))


def _resolution(values: pa.Array, line: Floats) -> float:
    """The largest step of which all distances of ascending values are multiples; 0 if none is.

    ``line``: the positions of the values.
    """
    digits = 0
    if pa.types.is_floating(values.type):
        texts = text_of(values).to_pylist()
        digits = max(0, *(-int(Decimal(text).as_tuple().exponent) for text in texts))
    elif pa.types.is_decimal(values.type):
        digits = max(0, values.type.scale)
    unit = 10.0**-digits
    if digits > _DIGITS or float(np.abs(line).max()) / unit >= 2**53:
        return 0.0
    return float(np.gcd.reduce(np.diff(np.rint(line / unit).astype(np.int64)))) * unit


def rare_values(
    column: pa.ChunkedArray, rows: int, k: int, persons: pa.ChunkedArray | None
) -> float:
    """The share of rare ones among the values of a column: those that fewer than k rows have.

    ``column``: a random sample of its ``rows``; the share is estimated where this is not all. With
    ``persons``, those of the sample, a value is rare if fewer than k persons have it.
    """
    return float(np.mean(_is_rare(_counts(column, persons)[1], len(column), rows, k)))


def _counts(
    column: pa.ChunkedArray, persons: pa.ChunkedArray | None
) -> tuple[pa.Array, NDArray[np.int64]]:
    """The values of a column, and how many rows, or persons, have each."""
    encoded = as_array(column).dictionary_encode()
    values, code = encoded.dictionary, encoded.indices
    present = code.is_valid().to_numpy(zero_copy_only=False)
    place = code.drop_null().to_numpy()
    if persons is not None:
        pairs = np.stack([place.astype(np.int64), hashed(persons)[present]])
        place = np.unique(pairs, axis=1)[0]
    return values, np.bincount(place, minlength=len(values))


def _is_rare(counts: NDArray[np.int64], sampled: int, rows: int, k: int) -> NDArray[np.bool_]:
    """Whether fewer than k have each value, given how many of a sample have it.

    How many have a value that came once follows from how many values came twice: a value with h
    holders comes twice so often as once, times (h - 1) / 2 times the rate of the sample.
    """
    rate = sampled / max(1, rows)
    if rate >= 1:
        return counts < k
    once, twice = (int(np.count_nonzero(counts == times)) for times in (1, 2))
    holders = np.where(counts > 1, counts / rate, 1 + 2 * twice / (max(1, once) * rate))
    return np.asarray(holders < k)


def grid_step(
    column: pa.ChunkedArray,
    ends: pa.Array,
    robust: pa.Array,
    rows: int,
    k: int,
    persons: pa.ChunkedArray | None = None,
) -> float | None:
    """The step of a grid whose cells have about k people each; None where there can be none.

    ``column``, ``rows`` and ``persons`` are as of `rare_values`; ``ends`` are the least and the
    greatest value of the whole dataset, ``robust`` those of the robust span. The step is 1, 2 or 5
    times a power of ten, of dates and timestamps in days.
    """
    if len(ends) < 1 or not has_grid(ends.type) or ends[0].equals(ends[-1]):
        return None
    line, span = _line(ends), float(np.ptp(_line(robust)))
    is_moment = pa.types.is_temporal(ends.type)
    span = span or float(np.ptp(line))  # nearly all rows have one value
    if span <= 0 or (is_moment and span < _DAYS):
        return None
    values, counts = _counts(column, persons)
    is_rare = _is_rare(counts, len(column), rows, k)
    order = np.argsort(_line(values), kind="stable")
    rare = np.repeat(_line(values)[order], (counts * is_rare)[order])
    step = _rounded(min(_distance(rare, len(column) / max(1, rows), k), span / _CELLS))
    if pa.types.is_integer(ends.type) or is_moment:
        step = max(1.0, step)
    if not DecimalUnits([step, 0.0]).holds(line):
        return None
    if is_moment and not _FIRST_DAY + step <= line[0] <= line[-1] <= _LAST_DAY - step:
        return None
    return step


def _closed_tails(
    job: Job, rows: int, quantiles: Mapping[str, pa.Array], steps: Mapping[str, float]
) -> dict[str, list[str]]:
    """The `sparse_tails` of columns with a grid that the job does not leave open, if any."""
    tails = dict[str, list[str]]()
    for quasi in job.quasi_identifiers:
        if quasi.name in steps:
            of_column = quantiles[quasi.name]
            robust = robust_ends(of_column, quasi.name)
            sparse = sparse_tails(of_column, robust, steps[quasi.name], rows, job.k)
            tails[quasi.name] = [end for end in sparse if end not in quasi.line_options]
    return {name: ends for name, ends in tails.items() if ends}


def _check_auto(quasi: QuasiIdentifier, ends: pa.Array) -> None:
    """Refuse a grid that the job asks for where there can be none, though values differ."""
    if quasi.grid == "auto" and len(ends.unique()) > 1:
        raise JobError(
            f"quasi_identifiers: column {quasi.name!r} of type {ends.type} can have no grid: auto, "
            "because its moments span too few days or its numbers have too many digits; give the "
            "step of its grid, or a ladder, or round its values"
        )


def sparse_tails(
    quantiles: pa.Array, robust: pa.Array, step: float, rows: int, k: int
) -> Iterator[str]:
    """The ends of a column, bottom and top, whose cells hold less than half of k rows on average.

    An end is what lies beyond the ``robust`` span, about a hundredth of the ``rows``.
    """
    if not len(robust):
        return
    line, (low, high) = _line(quantiles.drop_null()), _line(robust)
    rows_by_value = max(1.0, rows / len(quantiles))
    for end, tail in (("bottom", line[line <= low]), ("top", line[line >= high])):
        cells = max(1.0, float(np.ptp(tail)) / step)
        if len(tail) * rows_by_value < cells * k / 2:
            yield end


def _line(values: pa.Array) -> Floats:
    """The positions of values on a line: numbers, or days."""
    if pa.types.is_temporal(values.type):
        return days(values)
    numbers: Floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _distance(line: Floats, rate: float, k: int) -> float:
    """The median distance between which k rows lie, by a sample of them, ascending."""
    among = max(math.ceil(k * rate), _NEIGHBOURS)
    if len(line) <= among:
        return math.inf
    return float(np.median(line[among:] - line[:-among])) * k * rate / among


def _rounded(width: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below a width above 0."""
    power = math.floor(math.log10(width)) if width > 0 else -_DIGITS
    steps = (float(f"{digit}e{at}") for at in (power, power + 1) for digit in (1, 2, 5))
    return next(step for step in steps if step >= width * (1 - 1e-9))
