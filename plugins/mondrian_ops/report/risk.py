"""Risks beside that of picking a row: before the release, by people, and in a population."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mondrian_ops.late_methods import dataclass

Pairs = Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskBefore:
    """The risk of the raw quasi-identifiers, by a sample of rows.

    ``unique``: the share of rows whose values nobody else has. ``average``: the chance of picking
    the right row. Both are None where these rows, or the others, are of fewer than k persons.
    ``rows_by_people``: pairs (least people, share of rows), by how many people have the values of a
    row.
    """

    unique: float | None = None
    average: float | None = None
    rows_by_people: tuple[tuple[int, float], ...] = ()


def risks_beside(
    sizes: Pairs, k: int, before: Mapping[str, Any] | None, fraction: float | None
) -> dict[str, Any]:
    """The further entries of a report's ``risk``.

    ``sizes``: pairs (size, classes), or triples of persons (persons, classes, rows of these).
    ``fraction``: the share of its population that the dataset has, if the job says it.
    """
    risks: dict[str, Any] = {}
    if before is not None:
        risks |= {"before": dict(before), "rows_by_people": _after(sizes, k)}
    if fraction is not None and sizes:
        each = [(_population_risk(size, fraction), size * count) for size, count, *_ in sizes]
        risks |= {
            "k_map": max(1, math.floor(1 / each[0][0] + 1e-9)),
            "population_max": each[0][0],
            "population_avg": sum(risk * rows for risk, rows in each) / sum(n for _, n in each),
        }
    return risks


def _after(sizes: Pairs, k: int) -> list[list[float]]:
    """Pairs (least people, share of rows) of the release."""
    from mondrian_ops.data.raw_risk import rows_by_people

    people = [size for size, *_ in sizes]
    rows = [each[2] if len(each) > 2 else each[0] * each[1] for each in sizes]
    return [[least, count / sum(rows)] for least, count in rows_by_people((people, rows), k)]


def _population_risk(size: int, fraction: float) -> float:
    """The expected value of 1 / (people of the population in a class), given ``size`` in the data.

    The people beyond the data are taken to follow a negative binomial distribution (Benedetti and
    Franconi 1998); for three and more by the approximation of the manual of mu-Argus.
    """
    if fraction >= 1:
        return 1 / size
    rest = 1 - fraction
    if size == 1:
        return -fraction / rest * math.log(fraction)
    if size == 2 and rest < 0.01:  # as a series: the terms of the formula cancel out
        return fraction * sum(rest**n / ((n + 1) * (n + 2)) for n in range(9))
    if size == 2:
        return fraction / rest**2 * (fraction * math.log(fraction) + rest)
    return fraction / (size - rest)
