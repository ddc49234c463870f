"""Whether a release may be published: the job's requirements, checked on the release as written.

This module shares no code with the cutting. It implements the papers' definitions a second time, on
the counts of :mod:`mondrian_ops.verify.counts`, and checks every requirement on every class.
l-diversity does not count the missing value of a sensitive column, unless the job has
``missing_sensitive: value``; for t-closeness it is one value like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import PrivacyError, did_you_mean
from mondrian_ops.job.checks import with_codes
from mondrian_ops.job.job import Job
from mondrian_ops.job.widths import Width, widths_of
from mondrian_ops.verify import closeness, spread
from mondrian_ops.verify.counts import (
    HELD,
    ReleaseCount,
    ReleaseCounter,
)
from mondrian_ops.verify.figures import ClassCounts
from mondrian_ops.verify.labels import PublishedLabels
from mondrian_ops.verify.spread import SensitiveCount
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

    With ``interval_style: bounds`` an interval is published as two, ``age_min`` and ``age_max``.

    Raises:
        PrivacyError: a quasi-identifier is not among ``columns``.
    """
    names: list[str] = []
    for name in job.quasi_identifier_names:
        bounds = [f"{name}_min", f"{name}_max"]
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
        *(names, job.sensitive, job.identifiers, with_persons, spill, held, job.makes_up, labels),
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
        found = _requirements(classes, count, job, hierarchies or {}, rows_only)
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
    count: ReleaseCount,
    job: Job,
    hierarchies: Mapping[str, Hierarchy],
    rows_only: bool,
) -> list[Requirement]:
    requirements = [_anonymity(classes, job, rows_only)]
    widths = widths_of(job.l_width)
    for name in job.sensitive:
        if name not in count.sensitive:
            raise PrivacyError(
                f"sensitive column {name!r} was not counted; the release cannot be checked"
            )
        sensitive = classes.sensitive[name]
        title = f"{_DIVERSITY_TITLES[job.diversity]} of {name}, "
        if job.diversity == "recursive":
            title += f"c = {job.c:g}, "
        level = "" if job.l is None else f"l = {job.l:g}"
        if job.l is not None and _counts_rows(job, rows_only):
            level += _IN_ROWS
        if job.missing_sensitive == "value":
            level += ", missing values counted as one"
            counted, sizes = sensitive, classes.class_sizes
        else:
            counted, sizes = _present(sensitive, classes.class_sizes)
        diversity = _DIVERSITIES[job.diversity](counted, sizes, job.c or math.nan)
        requirements.append(Requirement.of(classes, "l", title + level, job.l, diversity))
        if name in widths:
            title = f"l-diversity of {name} by intervals of {widths[name].text}, {level}"
            diversity = _spread(counted, sizes, name, widths[name])
            requirements.append(Requirement.of(classes, "l", title, job.l, diversity))
        if job.t is not None:
            title = f"t-closeness of {name}, t = {job.t:g}, {job.t_distance} distance"
            distance = closeness.distance(
                job.t_distance, name, sensitive, classes.class_sizes, hierarchies
            )
            requirements.append(Requirement.of(classes, "t", title, job.t, distance, at_most=True))
    return requirements


_IN_ROWS = " in rows, not persons"


def _counts_rows(job: Job, rows_only: bool) -> bool:
    """Whether l is that of rows, though the job counts persons, who may have several."""
    if job.entity_id is None or job.follows_persons:  # of whom each has one row then
        return False
    return rows_only or job.recodes_columns


def _anonymity(classes: ClassCounts, job: Job, rows_only: bool) -> Requirement:
    """k rows (Samarati 2001) or, with an entity, rows of k persons (Wang and Fung 2006)."""
    title, measured = f"k-anonymity, k = {job.k}", classes.class_sizes
    if job.entity_id is not None and rows_only:
        title += _IN_ROWS
    elif job.entity_id is not None:
        if classes.persons is None:
            raise PrivacyError(f"the persons by {job.entity_id!r} were not counted")
        title, measured = f"{title} persons by {job.entity_id}", classes.persons
    return Requirement.of(classes, "k", title, job.k, measured)


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


# l-diversity: the l that each class has


def _present(sensitive: SensitiveCount, sizes: Measure) -> tuple[SensitiveCount, Measure]:
    """The count of the rows that have a value, and the number of these in each class."""
    if not sensitive.totals[0]:  # copy nothing, as it may be large
        return sensitive, sizes
    has_value = sensitive.codes > 0
    counted = replace(
        sensitive,
        classes=sensitive.classes[has_value],
        codes=sensitive.codes[has_value],
        counts=sensitive.counts[has_value],
    )
    present = np.zeros(len(sizes), np.int64)
    np.add.at(present, counted.classes, counted.counts)
    return counted, present


def _distinct(sensitive: SensitiveCount, sizes: Measure, c: float) -> Measure:
    """Distinct values (Machanavajjhala et al. 2006, section 4.1)."""
    return np.bincount(sensitive.classes, minlength=len(sizes))


def _entropy(sensitive: SensitiveCount, sizes: Measure, c: float) -> Measure:
    """exp of the entropy of the values (definition 4.1); 0 where there are none."""
    # In one order, or the last digits would depend on how the classes were divided.
    order = np.lexsort((sensitive.counts, sensitive.classes))
    classes = sensitive.classes[order]
    shares = sensitive.counts[order] / sizes[classes]
    terms = -shares * np.log(shares)
    entropy = np.bincount(classes, weights=terms, minlength=len(sizes))
    return np.where(sizes > 0, np.exp(entropy), 0.0)


def _recursive(sensitive: SensitiveCount, sizes: Measure, c: float) -> Measure:
    """The greatest l with r1 < c (r_l + ... + r_m), 0 if there is none (definition 4.2)."""
    order = np.lexsort((-sensitive.counts, sensitive.classes))
    classes, counts = sensitive.classes[order], sensitive.counts[order]
    first = np.searchsorted(classes, classes)  # the most frequent value of the class of each
    before = np.cumsum(counts) - counts
    tails = sizes[classes] - (before - before[first])  # r_l + ... + r_m at the l-th
    enough = counts[first] < c * tails
    # Tails only fall, so the number of valid l is the greatest one.
    return np.bincount(classes, weights=enough, minlength=len(sizes)).astype(np.int64)


def _spread(sensitive: SensitiveCount, sizes: Measure, name: str, width: Width) -> Measure:
    """How often the rows of the fullest interval of a width go into all; 0 where there are none.

    It is the m of (epsilon, m)-anonymity (Li, Tao and Xiao, SIGMOD 2008), for intervals that may
    begin anywhere.
    """
    rows = spread.fullest(sensitive, len(sizes), name, width)
    return sizes / np.maximum(rows, 1)


_DIVERSITIES: dict[str, Callable[[SensitiveCount, Measure, float], Measure]] = {
    "distinct": _distinct,
    "entropy": _entropy,
    "recursive": _recursive,
}
_DIVERSITY_TITLES = {
    "distinct": "distinct l-diversity",
    "entropy": "entropy l-diversity",
    "recursive": "recursive (c, l)-diversity",
}
