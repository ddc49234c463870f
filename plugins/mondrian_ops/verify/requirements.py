"""Whether a release may be published: the job's requirements, checked on the release as written.

This module shares no code with the cutting. It checks each criterion of
:mod:`mondrian_ops.verify.criteria` on every class, by the counts of
:mod:`mondrian_ops.verify.counts`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import PrivacyError, did_you_mean
from mondrian_ops.job.checks import with_codes
from mondrian_ops.job.job import Job
from mondrian_ops.job.widths import widths_of
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.counts import (
    HELD,
    ReleaseCount,
    ReleaseCounter,
)
from mondrian_ops.verify.criteria import criteria_of
from mondrian_ops.verify.figures import ClassCounts
from mondrian_ops.verify.loss import columns_of
from mondrian_ops.verify.published_labels import PublishedLabels
from mondrian_ops.verify.unions import no_bounds, no_unions

# Entropies and distances are sums of rounded numbers: exactly l equal shares must count as l.
TOLERANCE = 1e-9

Floats = NDArray[np.float64]
Measure = NDArray[Any]  # one number per class


@dataclass(frozen=True)
class Verdict:
    """The outcome of :func:`check`.

    Attributes:
        passed: the release may be published.
        achieved: ``k``; ``l``, by the job's definition, of the sensitive column with the lowest;
            ``t``, where the job requires it, of the column with the highest.
        checked: the requirements, one line each.
        failures: one line each, with numbers and sizes of classes, but no values.
    """

    passed: bool
    achieved: dict[str, float]
    checked: tuple[str, ...]
    failures: tuple[str, ...]


def published_columns(job: Job, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of a release that define its classes.

    With ``interval_style: bounds`` an interval is published as three, ``age_min``, ``age_max`` and
    ``age_hidden``.

    Raises:
        PrivacyError: a quasi-identifier is not among ``columns``.
    """
    names: list[str] = []
    for name in job.quasi_identifier_names:
        bounds = columns_of(name, [each for each in columns if each != name])
        has_bounds = job.interval_style == "bounds" and set(bounds) <= set(columns)
        if has_bounds:
            names += bounds
        if name in columns:
            names.append(name)
        elif not has_bounds:
            raise PrivacyError(
                f"quasi-identifier {name!r} is not a column of the release"
                f"{did_you_mean(name, columns)}; the release cannot be checked"
            )
    return tuple(names)


def counter_of(
    job: Job,
    columns: Sequence[str],
    rows_only: bool = False,
    spill: IO[bytes] | None = None,
    held: int = HELD,
    labels: Mapping[str, PublishedLabels] | None = None,
) -> ReleaseCounter:
    """A counter of a release with these columns, for :func:`check` with this job.

    ``rows_only``: count no persons, as in a release that is checked without its source. ``spill``,
    ``held``, ``labels``: as :class:`ReleaseCounter` takes them.

    Raises:
        PrivacyError: a quasi-identifier is not among ``columns``.
    """
    with_persons = job.entity_id is not None and not rows_only
    names = published_columns(job, columns)
    return ReleaseCounter(
        *(
            names,
            job.sensitive,
            job.identifiers,
            with_persons,
            spill,
            held,
            job.has_counterfeits,
            labels,
        ),
        widths=widths_of(job.l_width),
        of_codes=with_codes(job),
    )


def check(
    count: ReleaseCount,
    job: Job,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    rows_only: bool = False,
    boundaries: Mapping[str, Any] | None = None,
) -> Verdict:
    """Check every requirement of the job on every class of the release.

    Args:
        count: from a counter of :func:`counter_of`.
        job: the requirements.
        hierarchies: by sensitive column, for the hierarchical distance of t-closeness.
        rows_only: where the job counts persons, check k rows instead.
        boundaries: those of its series as the catalogue has them, of whose cells each published
            interval must be a union.

    Raises:
        PrivacyError: something that the job requires was not counted.
    """
    requirements = measured(count, job, hierarchies, rows_only)
    no_cells = () if boundaries is None else no_unions_in(count, boundaries)
    return concluded(requirements, count, job, boundaries, no_cells)


def measured(
    count: ReleaseCount,
    job: Job,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    rows_only: bool = False,
) -> list[Requirement]:
    """How the classes of a count meet each requirement; the arguments are those of `check`."""
    requirements: list[Requirement] = []
    for classes in count.partitions() if count.rows else ():
        found = _requirements(classes, job, hierarchies or {}, rows_only)
        requirements = list(map(Requirement.joined, requirements, found)) or found
    return requirements


def concluded(
    requirements: Sequence[Requirement],
    count: ReleaseCount,
    job: Job,
    boundaries: Mapping[str, Any] | None = None,
    no_cells: Sequence[str] = (),
) -> Verdict:
    """The verdict on all classes; ``no_cells``: what :func:`no_unions_in` found."""
    if not count.rows:
        return Verdict(False, {}, (), ("the release has no rows",))
    failures = _wrong_columns(count, job)
    failures += filter(None, (requirement.failure(count) for requirement in requirements))
    failures += no_cells
    checked = [r.name for r in requirements if r.level is not None]
    if boundaries is not None:
        checked.append(f"boundaries of the series, fitted in night {boundaries['night']}")
    return Verdict(
        passed=not failures,
        achieved=_achieved(requirements),
        checked=tuple(checked),
        failures=tuple(failures),
    )


class Requirement(NamedTuple):
    """One requirement, and how some classes meet it."""

    key: str  # k, l or t
    name: str
    level: float | None  # None: measured, but not required
    at_most: bool  # t is a ceiling, k and l are floors
    failing: int  # classes
    achieved: float  # by the worst class
    worst_rows: int  # its size
    worst_row: int  # its first row

    @classmethod
    def of(
        cls,
        classes: ClassCounts,
        key: str,
        name: str,
        level: float | None,
        measured: Measure,
        at_most: bool = False,
    ) -> Requirement:
        """By the measure of each class, (classes,)."""
        failing = 0
        if level is not None:
            limit = level + TOLERANCE if at_most else level * (1 - TOLERANCE)
            good = measured <= limit if at_most else measured >= limit
            failing = len(measured) - int(np.count_nonzero(good))  # NaN is not good
        worst = measured.max() if at_most else measured.min()
        # Of classes that are equally bad the first is named, however the classes were divided.
        (tied,) = np.nonzero((measured == worst) | np.isnan(measured))
        first = tied[np.argmin(classes.first_rows[tied])]
        size, row = int(classes.class_sizes[first]), int(classes.first_rows[first])
        return cls(key, name, level, at_most, failing, worst.item(), size, row)

    def to_json(self) -> list[Any]:
        """A JSON value; None stands for what could not be measured."""
        achieved = None if math.isnan(self.achieved) else self.achieved
        return list(self._replace(achieved=achieved))  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, value: Sequence[Any]) -> Requirement:
        """The requirement that :meth:`to_json` described."""
        requirement = cls(*value)
        achieved = math.nan if requirement.achieved is None else requirement.achieved
        return requirement._replace(achieved=achieved)

    def joined(self, other: Requirement) -> Requirement:
        """By these classes and others."""
        worst = min(self, other, key=Requirement._badness)
        return worst._replace(failing=self.failing + other.failing)

    def _badness(self) -> tuple[bool, float, int]:
        """Less is worse; what could not be measured is worst."""
        is_measured = not math.isnan(self.achieved)
        least = -self.achieved if self.at_most else self.achieved
        return is_measured, least if is_measured else 0.0, self.worst_row

    def failure(self, count: ReleaseCount) -> str | None:
        """The text of a failure; None where every class satisfies the requirement."""
        if not self.failing:
            return None
        part, row = count.locate(self.worst_row)
        return (
            f"{self.name}: {self.failing} of {count.classes} classes fail; the worst has "
            f"{self.worst_rows} rows and {self.key} = {self.achieved:.6g} "
            f"(row {row} of {part} is in it)"
        )


def _requirements(
    classes: ClassCounts,
    job: Job,
    hierarchies: Mapping[str, Hierarchy],
    rows_only: bool,
) -> list[Requirement]:
    return [
        Requirement.of(
            classes, each.key, str(each), each.level, each.measure(classes), each.at_most
        )
        for each in criteria_of(job, hierarchies, rows_only)
    ]


def _achieved(requirements: Sequence[Requirement]) -> dict[str, float]:
    achieved: dict[str, float] = {}
    for requirement in requirements:
        of_all = max if requirement.at_most else min
        achieved[requirement.key] = of_all(
            requirement.achieved, achieved.get(requirement.key, requirement.achieved)
        )
    return achieved


def _wrong_columns(count: ReleaseCount, job: Job) -> list[str]:
    """Columns that must not be published, and quasi-identifiers that were not counted."""
    expected = published_columns(job, count.columns)
    wrong = [
        f"quasi-identifier column {name!r} was not counted"
        for name in expected
        if name not in count.quasi_identifiers
    ]
    for name in job.identifiers:
        if name not in count.columns:
            continue
        if job.identifier_policy == "drop":
            wrong.append(f"identifier {name!r} is published; it must be dropped")
        elif not count.identifiers.get(name):
            wrong.append(f"identifier {name!r} is published; it must be the same in all rows")
    if job.unlisted == "drop":
        listed = {*expected, *job.sensitive, *job.identifiers}
        wrong += [
            f"column {name!r} is published, but unlisted columns must be dropped"
            for name in count.columns
            if name not in listed
        ]
    return wrong


def no_unions_in(count: ReleaseCount, boundaries: Mapping[str, Any]) -> list[str]:
    """Columns with published intervals that are no unions of the cells of the series."""
    failures = []
    for name, column in boundaries["columns"].items():
        args = column["values"], column["closed"]
        texts = {
            each: pc.cast(count.published[each], "string").to_pylist()
            for each in (name, f"{name}_min", f"{name}_max")
            if each in count.published
        }
        if name in texts:
            wrong = no_unions(texts[name], *args)
        else:
            wrong = no_bounds(texts[f"{name}_min"], texts[f"{name}_max"], *args)
        if wrong:
            failures.append(
                f"boundaries of the series: {wrong} distinct value(s) of column {name!r} do not "
                f"begin and end at those fitted in night {boundaries['night']}"
            )
    return failures
