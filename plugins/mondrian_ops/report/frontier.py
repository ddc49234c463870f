"""The frontier as lines for a terminal, as CSV, as a picture and as a page, all from one dict.

``{"input", "rows", "measured", "fragments", "drawn", "algorithm", "cut", "quasi_identifiers",
"sensitive", "points", "version", "created"}``, as :mod:`mondrian_ops.pipeline.frontier` gathers
it. A point has ``k``, ``l`` (None: not asked for) and its figures, or a ``reason`` why it cannot
be had.
"""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mondrian_ops.report import figures
from mondrian_ops.report.charts import Line, Lines, Spot, decimals, ticks
from mondrian_ops.report.figures import number, percent
from mondrian_ops.report.sections import Section, Table

__all__ = [
    "CSV_NAME",
    "DAMAGE",
    "FRONTIER_NAME",
    "HTML_NAME",
    "SVG_NAME",
    "frontier_files",
    "frontier_section",
    "frontier_text",
]

CSV_NAME, SVG_NAME, HTML_NAME = "frontier.csv", "frontier.svg", "frontier.html"
FRONTIER_NAME = "frontier.json"
"""The frontier itself, as the archive of reports keeps it."""

DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What is raised here for a frontier that is none."""

Frontier = Mapping[str, Any]
Point = Mapping[str, Any]

_CSV = (
    "k", "l", "attainable", "achieved_k", "achieved_l", "rows", "measured_rows", "suppressed",
    "equivalence_classes", "NCP", "GCP", "GCP_error", "LM", "DP", "C_avg", "risk_max", "risk_avg",
    "seconds", "reason",
)  # fmt: skip


def frontier_files(frontier: Frontier) -> dict[str, bytes]:
    """The content of the table and of both pictures, by file name."""
    return {
        CSV_NAME: _csv(frontier).encode(),
        SVG_NAME: _svg(frontier).encode(),
        HTML_NAME: _html(frontier).encode(),
    }


def frontier_text(frontier: Frontier, width: int = 100) -> str:
    """The table and what to know about it, as lines for a terminal or a task log."""
    columns = _columns(frontier)
    rows = [tuple(name for name, _ in columns)]
    rows += [tuple(write(point) for _, write in columns) for point in _attained(frontier)]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(size) for cell, size in zip(row, wide, strict=True)) for row in rows
    ]
    refusals = [f"Not attainable: {asked}. {reason}" for asked, reason in _refused(frontier)]
    for note in (*refusals, *notes(frontier)):
        lines += ["", *textwrap.wrap(figures.printable(note), width)]
    return "\n".join(lines)


def notes(frontier: Frontier) -> list[str]:
    """What the figures are measured on, and what they mean."""
    rows, measured = number(frontier["rows"]), number(frontier["measured"])
    if not frontier["drawn"]:
        on = f"Measured on all {rows} rows: every point is a run that was not published."
    else:
        on = (
            f"Measured on {measured} of {rows} rows: the dataset was divided into "
            f"{number(frontier['fragments'])} fragments, of which {number(frontier['drawn'])} were "
            "drawn and anonymized as a whole dataset's are. ± is one standard error. Classes, NCP "
            "and DP are scaled to all rows. The k and l achieved and the highest risk are those of "
            "the drawn fragments: on all rows they may come down to what is asked."
        )
    return [
        on,
        "Lost: 0 % nothing, 100 % every quasi-identifier of every row. Risk: the chance of picking "
        "the right row for a person who is known to be in the data.",
    ]


def _columns(frontier: Frontier) -> list[tuple[str, Callable[[Point], str]]]:
    """Head and text of the table's columns; the last but for what every point has."""
    columns: list[tuple[str, Callable[[Point], str]]] = [
        ("k", lambda p: number(p["k"])),
        ("l", lambda p: number(p["l"])),
        ("k got", lambda p: number(p["achieved"].get("k"))),
    ]
    if frontier["sensitive"]:
        columns.append(("l got", lambda p: number(p["achieved"].get("l"))))
    columns += [
        ("classes", lambda p: number(p["equivalence_classes"])),
        ("lost (GCP)", lambda p: percent(p["GCP"]) + _error(p)),
        ("LM", lambda p: percent(p["LM"])),
        ("C_avg", lambda p: number(p["C_avg"])),
        ("DP", lambda p: figures.size(p["DP"])),
        ("risk avg", lambda p: percent(p["risk_avg"])),
        ("max", lambda p: percent(p["risk_max"])),
    ]
    if any(point["suppressed"] for point in _attained(frontier)):
        columns.append(("suppressed", lambda p: number(p["suppressed"])))
    return [*columns, ("time", lambda p: figures.seconds(p["seconds"]))]


def _error(point: Point) -> str:
    error = point["GCP_error"]
    return "" if error is None else f" ± {100 * error:.1f}"


def _attained(frontier: Frontier) -> list[Point]:
    return [point for point in frontier["points"] if "reason" not in point]


def _refused(frontier: Frontier) -> list[tuple[str, str]]:
    """The points that cannot be had and why; those of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for point in frontier["points"]:
        if "reason" in point:
            by_reason.setdefault(point["reason"], []).append(_asked(point))
    return [("; ".join(asked), reason) for reason, asked in by_reason.items()]


def _asked(point: Point) -> str:
    return f"k = {number(point['k'])}, {_l(point['l'])}"


def _l(asked: float | None) -> str:
    return "no l" if asked is None else f"l = {number(asked)}"


def _csv(frontier: Frontier) -> str:
    """One row a point, shares and not per cent; l = 1 where none is asked for."""
    sink = io.StringIO()
    table = csv.DictWriter(sink, _CSV, restval="", extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    for point in frontier["points"]:
        attainable = "reason" not in point
        achieved = {f"achieved_{key}": value for key, value in point.get("achieved", {}).items()}
        measured = {"measured_rows": frontier["measured"]} if attainable else {}
        table.writerow(
            {**point, **achieved, **measured, "l": point["l"] or 1, "attainable": int(attainable)}
        )
    return sink.getvalue()


def _html(frontier: Frontier) -> str:
    from mondrian_ops.report.page import render

    columns = _columns(frontier)
    head = tuple(name for name, _ in columns)
    rows = [tuple(write(point) for _, write in columns) for point in _attained(frontier)]
    return render(
        "frontier.html",
        frontier=frontier,
        drawings=_charts(frontier),
        points=Table(head, rows, 0),
        refused=Table(("not attainable", "why"), _refused(frontier), 2),
        notes=notes(frontier),
    )


def _svg(frontier: Frontier) -> str:
    """Both charts beside each other as a picture of its own, in light or dark as its viewer is."""
    from mondrian_ops.report.page import render

    first = notes(frontier)[0]
    return render(
        "frontier.svg",
        drawings=_charts(frontier),
        name=frontier["input"].rstrip("/").rpartition("/")[2],
        measured=first if len(first) < 100 else first[: first.index(":")],
    )


def frontier_section(frontier: Frontier, at: Mapping[str, tuple[float, float]]) -> Section | None:
    """Loss against k for each l, with k and loss of releases in it, by name.

    Returns None where no point is attainable; raises one of DAMAGE for what is no frontier.
    """
    points = _attained(frontier)
    if not points:
        return None
    rows = [(number(p["k"]), _l(p["l"]), percent(p["GCP"]), percent(p["risk_avg"])) for p in points]
    return Section(
        "Frontier: loss against k",
        "What other values of k and l would have cost, as measured on this input.",
        loss_chart(frontier, at),
        Table(("k", "l", "information lost (GCP)", "average risk"), rows, 0),
    )


def _charts(frontier: Frontier) -> list[tuple[str, str, Lines]]:
    """Title, lead and chart of what is lost and of the risk."""
    return [
        (
            "Information lost (GCP)",
            "How much of the quasi-identifiers' information is gone. Look for the k from which on "
            "the line climbs fast.",
            loss_chart(frontier),
        ),
        (
            "Average risk",
            "The chance of picking the right row for a person known to be in the data, averaged "
            "over the rows; the thin line is the most that k allows.",
            _risk_chart(frontier),
        ),
    ]


def loss_chart(frontier: Frontier, at: Mapping[str, tuple[float, float]] | None = None) -> Lines:
    """Loss against k for each l; ``at`` has k and loss of releases to show in it, by name."""
    pins = dict(at or {})
    most = [p["GCP"] + (p.get("GCP_error") or 0) for p in _attained(frontier)]
    most += [loss for _, loss in pins.values()]
    levels = ticks(max(most, default=0.0))
    return _chart(frontier, "GCP", levels, pins=pins)


def _risk_chart(frontier: Frontier) -> Lines:
    levels = ticks(1 / min(point["k"] for point in frontier["points"]))
    return _chart(frontier, "risk_avg", levels, bound=True)


def _chart(
    frontier: Frontier,
    figure: str,
    levels: Sequence[float],
    bound: bool = False,
    pins: Mapping[str, tuple[float, float]] | None = None,
) -> Lines:
    pins = pins or {}
    most = levels[-1]
    ks = sorted({point["k"] for point in frontier["points"]})
    place = _places(sorted({*ks, *(k for k, _ in pins.values())}))
    lines = []
    for style, (asked, points) in enumerate(_by_l(frontier)):
        spots = tuple(
            Spot(
                place[p["k"]],
                p[figure] / most,
                f"k = {number(p['k'])}, {percent(p[figure])}",
                (p.get("GCP_error") or 0.0) / most if figure == "GCP" else 0.0,
            )
            for p in points
            if "reason" not in p
        )
        crosses = tuple(
            (place[p["k"]], f"k = {number(p['k'])}, not attainable")
            for p in points
            if "reason" in p
        )
        lines.append(Line(_l(asked), style, spots, crosses))
    allowed = tuple(Spot(place[k], 1 / k / most, "") for k in ks)
    digits = decimals(levels[1])
    return Lines(
        _described(frontier),
        tuple(lines),
        [(place[k], number(k)) for k in ks],
        [(level / most, percent(level, digits)) for level in levels],
        "k",
        Line("1 / k", 0, allowed) if bound else None,
        tuple(
            (name, Spot(place[k], loss / most, f"{name}: k = {number(k)}, {percent(loss)}"))
            for name, (k, loss) in pins.items()
        ),
    )


def _described(frontier: Frontier) -> str:
    return "; ".join(
        f"{_asked(point)}: lost {percent(point['GCP'])}, average risk {percent(point['risk_avg'])}"
        for point in _attained(frontier)
    )


def _by_l(frontier: Frontier) -> Iterator[tuple[float | None, list[Point]]]:
    points: Sequence[Point] = frontier["points"]
    for asked in sorted({point["l"] for point in points}, key=lambda l: l or 1):  # noqa: E741
        yield asked, [point for point in points if point["l"] == asked]


def _places(ks: Sequence[float]) -> dict[float, float]:
    """Where each k stands on an axis of even ratios."""
    first, span = math.log(ks[0]), math.log(ks[-1] / ks[0]) or 1.0
    return {k: (math.log(k) - first) / span if len(ks) > 1 else 0.5 for k in ks}
