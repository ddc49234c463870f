"""A series of releases as pictures: loss, rows that wait, people protected and drift, by night."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mondrian_ops.report.charts import Column, Columns, Line, Lines, Spot, Ticks, decimals, ticks
from mondrian_ops.report.number_format import number, percent, size
from mondrian_ops.report.sections import Section, Table

MOST_NIGHTS = 90
"""The last so many nights are drawn."""

_MOST_LABELS = 10


class NightFigures(NamedTuple):
    """The figures of a night, as the catalogue has them; None where there is none.

    ``loss`` is the GCP of the release; ``sample_loss`` that of a sample cut with the boundaries of
    the series, ``sample_loss_nightly`` without; ``refitted``: new ones were fitted in it.
    ``persons`` are followed through all nights, and ``least_common`` is the least number of
    sensitive values left for one of them.
    """

    number: int
    label: str
    state: str
    rows_in: int
    rows_published: int
    rows_suppressed: int
    rows_waiting: int
    loss: float | None
    sample_loss: float | None
    sample_loss_nightly: float | None
    drift: float | None
    refitted: bool
    persons: int | None
    least_common: int | None

    @property
    def name(self) -> str:
        """The night by its number and date."""
        return f"night {self.number}, {self.label}"


def series_sections(nights: Sequence[NightFigures]) -> list[Section]:
    """The charts of a series, oldest night first; of its last `MOST_NIGHTS`."""
    shown = nights[-MOST_NIGHTS:]
    charts = (_loss(shown), _waiting(shown), _people(shown), _drift(shown))
    return [section for section in charts if section is not None]


def _loss(nights: Sequence[NightFigures]) -> Section | None:
    if all(night.loss is None for night in nights):
        return None
    lead = "The share of the quasi-identifiers' information that is gone, of each release."
    series = {"released": [night.loss for night in nights]}
    head = ["night", "rows published", "information lost"]
    columns: list[Callable[[NightFigures], str]] = [
        lambda night: night.name,
        lambda night: number(night.rows_published),
        lambda night: _share(night.loss),
    ]
    if any(night.sample_loss is not None for night in nights):
        series["shared"] = [night.sample_loss for night in nights]
        series["nightly"] = [night.sample_loss_nightly for night in nights]
        lead += (
            " Of a sample: cut with the boundaries that the nights share, and with none, as a night"
            " by itself would be."
        )
        head += ["sample, shared boundaries", "sample, its own"]
        columns += [
            lambda night: _share(night.sample_loss),
            lambda night: _share(night.sample_loss_nightly),
        ]
    refits = [night for night in nights if night.refitted]
    if refits:
        lead += (
            " New boundaries were fitted at each circle; counts before and after it cannot be "
            "compared."
        )
    return Section(
        "Information lost by night",
        lead,
        _lines(nights, series, pins=refits),
        Table(tuple(head), [tuple(column(night) for column in columns) for night in nights]),
    )


def _waiting(nights: Sequence[NightFigures]) -> Section:
    """What waits after each night, and what it left out."""
    levels = ticks(max(max(night.rows_waiting, night.rows_suppressed) for night in nights))
    most = levels[-1]
    left_out = any(night.rows_suppressed for night in nights)
    columns = []
    for night in nights:
        bars = [(night.rows_waiting / most, "s1")]
        says = f"{night.name}: {number(night.rows_waiting)} rows wait"
        if left_out:
            bars.append((night.rows_suppressed / most, "bad"))
            says += f", {number(night.rows_suppressed)} left out"
        columns.append(Column(number(night.number), tuple(bars), says))
    waits = nights[-1].rows_waiting
    now = f"{number(waits)} rows wait" if waits else "No row waits"
    legend = [("s1", "wait after the night"), ("bad", "left out of it, and counted")]
    return Section(
        "Rows that wait",
        "Rows that a night cannot publish, or only at too great a loss, wait for the next ones. "
        f"{now} after the last night.",
        Columns(
            f"{now}; rows that wait after each of {len(nights)} nights",
            tuple(columns),
            [(level / most, size(level)) for level in levels],
            "night",
            _MOST_LABELS,
        ),
        Table(
            ("night", "came", "published", "left out", "wait"),
            [
                (
                    night.name,
                    number(night.rows_in),
                    number(night.rows_published),
                    number(night.rows_suppressed),
                    number(night.rows_waiting),
                )
                for night in nights
            ],
        ),
        legend if left_out else (),
    )


def _people(nights: Sequence[NightFigures]) -> Section:
    """The people whom the series protects, or where it follows nobody, the rows published."""
    followed = any(night.persons is not None for night in nights)
    counts = [(night.persons if followed else night.rows_published) or 0 for night in nights]
    levels = ticks(max(counts))
    most, what = levels[-1], "people" if followed else "rows"
    columns = []
    for night, count in zip(nights, counts, strict=True):
        says = f"{night.name}: {number(count)} {what}"
        if night.least_common is not None:
            says += f", at least {number(night.least_common)} values left for each"
        columns.append(Column(number(night.number), ((count / most, "s2"),), says))
    least = [night.least_common for night in nights if night.least_common is not None]
    lead = (
        "The rows of each release. People who are in several are not protected against those who "
        "hold these: that takes protect: intersection."
    )
    if followed:
        left = number(min(least)) if least else "no"
        lead = (
            "The people of each release, followed through all nights by keyed hashes. Whoever "
            f"holds all these releases is left with {left} sensitive values or more for each."
        )
    return Section(
        "People protected" if followed else "Rows published",
        lead,
        Columns(
            f"{what} in each of {len(nights)} releases",
            tuple(columns),
            [(level / most, size(level)) for level in levels],
            "night",
            _MOST_LABELS,
        ),
        Table(
            ("night", what, "values left at least"),
            [
                (night.name, number(count), number(night.least_common))
                for night, count in zip(nights, counts, strict=True)
            ],
        ),
    )


def _drift(nights: Sequence[NightFigures]) -> Section | None:
    if all(night.drift is None for night in nights):
        return None
    return Section(
        "Drift by night",
        "The share of a night's rows that lie between other boundaries than in the night of the "
        "fit, less what chance explains. Of all columns the one with the largest share counts.",
        _lines(nights, {"drift": [night.drift for night in nights]}),
        Table(("night", "drift"), [(night.name, _share(night.drift)) for night in nights]),
    )


def _lines(
    nights: Sequence[NightFigures],
    series: dict[str, list[float | None]],
    pins: Sequence[NightFigures] = (),
) -> Lines:
    """Figures by night; ``pins``: the nights at which the first line has a mark."""
    levels = ticks(max(value or 0.0 for values in series.values() for value in values))
    most, digits = levels[-1], decimals(levels[1])
    last = max(1, len(nights) - 1)
    x_of = {night.number: at / last for at, night in enumerate(nights)}
    lines = tuple(
        Line(
            label,
            style,
            tuple(
                Spot(x_of[night.number], value / most, f"{night.name}, {_share(value)}")
                for night, value in zip(nights, values, strict=True)
                if value is not None
            ),
        )
        for style, (label, values) in enumerate(series.items())
    )
    (first, *_) = series.values()
    description = "; ".join(
        f"night {night.number}: {_share(value)}" for night, value in zip(nights, first, strict=True)
    )
    return Lines(
        description,
        lines,
        _numbers(nights, x_of),
        [(level / most, percent(level, digits)) for level in levels],
        "night",
        pins=tuple(
            (
                "refit",
                Spot(
                    x_of[night.number],
                    (night.loss or 0.0) / most,
                    f"{night.name}: {_share(night.loss)}",
                ),
            )
            for night in pins
        ),
    )


def _numbers(nights: Sequence[NightFigures], x_of: dict[int, float]) -> Ticks:
    """The numbers of some nights along an axis."""
    step = -(-len(nights) // _MOST_LABELS)
    return [(x_of[night.number], number(night.number)) for night in nights[::step]]


def _share(share: float | None) -> str:
    return "–" if share is None else percent(share)
