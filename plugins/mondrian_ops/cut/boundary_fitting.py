"""The boundaries of a series of releases: fitted on its first night, measured on every night.

Mondrian cuts a sample of the first night without boundaries. The ends of its classes say where a
column should be divided: the boundaries of a column are quantiles of these ends, each class
counting by its rows, so that as many intervals end in one cell as in another. Of 16, 32, 64, ...
boundaries per column the fewest are taken with which the sample loses at most a tenth more than
without any. (The most frequent ends instead of their quantiles lose up to four times as much: they
lie close together.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from mondrian_ops.cut.algorithms.mondrian import CutPolicy, loss
from mondrian_ops.cut.anonymizer import Anonymizer
from mondrian_ops.cut.criteria import KAnonymity, Privacy
from mondrian_ops.cut.cut_policy import pilot_k
from mondrian_ops.data.encoding import positions
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.profile import Profile
from mondrian_ops.data.values import after, read_value
from mondrian_ops.generalize.attributes import Classes, IntervalAttribute, OrderedAttribute
from mondrian_ops.generalize.encoded import Encoded
from mondrian_ops.generalize.rounding import round_between
from mondrian_ops.generalize.series_boundaries import (
    ColumnBoundaries,
    SeriesBoundaries,
    drift,
    generalized_by,
    rows_by_cell,
)
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass
from mondrian_ops.native.arrays import Floats

_NUMBERS = (16, 32, 64, 128, 256, 512, 1024)  # of boundaries per column
_LOSS_ALLOWED = 1.1
_LITTLE = 1e-3
_ROOM = 50  # the outer boundaries lie up to this part of the range beyond the data
_CUT = CutPolicy("gain")


@dataclass(frozen=True)
class NightBoundaries:
    """The boundaries of a night, and what they cost.

    Attributes:
        boundaries: those of the night, and of the nights after it.
        fitted: why they were fitted in this night: ``first``, ``asked``, ``drift``; else empty.
        loss: of a sample, cut with them: NCP per row and quasi-identifier.
        loss_nightly: the same of the sample cut without boundaries.
        drift: by column, see `series_boundaries.drift`; of a night that fits them anew, against
            those before.
    """

    boundaries: SeriesBoundaries
    fitted: str
    loss: float
    loss_nightly: float
    drift: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """A JSON value that `from_json` reads back."""
        return {**vars(self), "boundaries": self.boundaries.to_json(), "drift": dict(self.drift)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> NightBoundaries:
        """The night that `to_json` described."""
        boundaries = SeriesBoundaries.from_json(value["boundaries"])
        return cls(**{**value, "boundaries": boundaries})


def settle(
    job: Job,
    profile: Profile,
    hierarchies: Mapping[str, Hierarchy],
    pilot: pa.Table,
    known: SeriesBoundaries | None,
    night: int,
    refit: bool = False,
) -> NightBoundaries:
    """The boundaries of night number ``night``: the ``known`` ones of its series, or new ones.

    ``pilot``: rows of the night, at random. New ones are fitted in the first night, where a person
    asked to ``refit``, and where the drift exceeds the job's ``refit_above``. Raises JobError where
    the quasi-identifiers are no longer generalized as in the nights before.
    """
    sample = _Sample(job, profile, hierarchies, pilot)
    generalized = generalized_by(job, profile.types, hierarchies)
    drifts: dict[str, float] = {}
    if known is not None and not refit:
        known.check(generalized)
        arrays = known.arrays(profile.types)
        drifts = {
            name: drift(known.columns[name].rows, rows_by_cell(values, pilot[name]))
            for name, values in arrays.items()
        }
        limit = job.series.refit_above if job.series else None
        if limit is None or max(drifts.values(), default=0.0) <= limit:
            return NightBoundaries(known, "", sample.loss(arrays), sample.loss({}), drifts)
    fitted = sample.fitted()
    columns = {name: ColumnBoundaries.of(each, pilot[name]) for name, each in fitted.items()}
    why = "first" if known is None else "asked" if refit else "drift"
    time = datetime.now(UTC).isoformat(timespec="seconds")
    boundaries = SeriesBoundaries(night, time, columns, generalized)
    return NightBoundaries(boundaries, why, sample.loss(fitted), sample.loss({}), drifts)


class _Sample:
    """Rows of a night, cut as deep as all rows are with the job's k."""

    def __init__(
        self, job: Job, profile: Profile, hierarchies: Mapping[str, Hierarchy], pilot: pa.Table
    ) -> None:
        self._job, self._profile, self._hierarchies = job, profile, hierarchies
        self._pilot = pilot
        self._privacy = Privacy(KAnonymity(pilot_k(job, profile, pilot)), ())

    def loss(self, boundaries: Mapping[str, pa.Array]) -> float:
        """The loss with these boundaries, per row and quasi-identifier."""
        coded = self._anonymizer(boundaries).encode(self._pilot, self._privacy)
        return loss(coded, _CUT) / coded.rows.codes.size

    def fitted(self) -> dict[str, pa.Array]:
        """New boundaries of the columns that need some."""
        anonymizer = self._anonymizer({})
        coded = anonymizer.encode(self._pilot, self._privacy)
        classes = _CUT.classes(coded)
        allowed = _LOSS_ALLOWED * loss(coded, _CUT) / coded.rows.codes.size
        columns = {
            attribute.name: _Column(encoded, classes, self._profile.domains[attribute.name])
            for attribute, encoded in zip(anonymizer.attributes, coded.encoded, strict=True)
            if isinstance(attribute, IntervalAttribute)
            and not isinstance(attribute, OrderedAttribute)
            and attribute.cells is None
        }
        for wanted in _NUMBERS:
            fitted = {name: each.boundaries(wanted, self._job.k) for name, each in columns.items()}
            if self.loss(fitted) <= allowed:
                break
        return fitted

    def _anonymizer(self, boundaries: Mapping[str, pa.Array]) -> Anonymizer:
        profile = replace(self._profile, boundaries=boundaries)
        return Anonymizer(self._job, profile, self._hierarchies, _CUT)


class _Column:
    """An interval column of a sample, cut into ``classes``; ``ends``: of all rows of the night."""

    def __init__(self, encoded: Encoded, classes: Classes, ends: pa.Array) -> None:
        self._values = encoded.values  # ascending
        self._rows = np.bincount(encoded.codes, minlength=encoded.size)[1:]
        self._ends = ends
        self._weights = self._interval_ends(encoded, classes)

    def boundaries(self, wanted: int, k: int) -> pa.Array:
        """About ``wanted`` boundaries between the values, and one on either side of them."""
        if not len(self._ends):  # a column without values
            return self._ends
        cumulated = np.cumsum(self._weights)
        quantiles = (np.arange(wanted) + 0.5) / wanted * cumulated[-1] if len(cumulated) else []
        places = np.unique(np.searchsorted(cumulated, quantiles))
        inner = (_between(self._values[at], self._values[at + 1]) for at in places.tolist())
        edges = [self._first(k), *inner, *self._last()]
        return pa.array(edges, self._ends.type).unique()

    def _interval_ends(self, encoded: Encoded, classes: Classes) -> Floats:
        """(values - 1,): rows whose class ends between a value and the next, or begins there.

        Every row counts a little by itself, so that a column that is not cut has boundaries too.
        """
        low, high = classes.extent(encoded.codes)
        present = low > 0
        sizes = classes.sizes[present]
        weights = np.zeros(encoded.size + 1)
        np.add.at(weights, low[present] - 1, sizes)
        np.add.at(weights, high[present], sizes)
        return weights[1:-2] + _LITTLE * self._rows[:-1]

    def _first(self, k: int) -> pa.Scalar:
        """The boundary at or below the least value: that of a single person is not shown."""
        least = self._ends[0]
        rows = self._rows[0] if self._values[0].equals(least) else 0
        below = None if rows >= k else self._beyond(-1)
        rounded = None if below is None else round_between(below, least)
        return least if rounded is None else read_value(rounded.value, least.type)

    def _last(self) -> list[pa.Scalar]:
        """The boundary above the greatest value, if the type has one."""
        greatest = self._ends[1]
        above = self._beyond(1)
        rounded = None if above is None else round_between(greatest, above)
        if rounded is not None:
            return [read_value(rounded.value, greatest.type)]
        following = _following(greatest)
        return [] if following is None else [following]

    def _beyond(self, direction: int) -> pa.Scalar | None:
        """A value somewhat below (-1) or above (1) the data; None where the type ends before."""
        ends, type_ = self._ends, self._ends.type
        at = 0 if direction < 0 else 1
        try:
            if pa.types.is_decimal(type_):
                room = (ends[1].as_py() - ends[0].as_py()) / _ROOM
                end = ends[at].as_py() + direction * room
                return pa.array([end.quantize(Decimal(1).scaleb(-type_.scale))], type_)[0]
            line = positions(ends, "")
            end = line[at] + direction * (line[1] - line[0]) / _ROOM
            if pa.types.is_floating(type_):
                return pa.scalar(end, pa.float64()).cast(type_)
            ticks = pa.int32() if type_.bit_width == 32 else pa.int64()
            whole = int(end) + direction * 2  # so that a whole number lies between
            return pa.array([whole], ticks if pa.types.is_temporal(type_) else type_).cast(type_)[0]
        except (pa.ArrowInvalid, ArithmeticError, OverflowError):
            return None


def _between(low: pa.Scalar, high: pa.Scalar) -> pa.Scalar:
    """A value above ``low`` and up to ``high``, as round as there is one."""
    rounded = round_between(low, _following(high) or high)
    return high if rounded is None else read_value(rounded.value, high.type)


def _following(value: pa.Scalar) -> pa.Scalar | None:
    """The next value of the type; None where the type ends."""
    try:
        following = after(pa.array([value], value.type))[0]
    except pa.ArrowInvalid:
        return None
    return following if following.is_valid else None
