"""The frontier as lines for a terminal, as CSV, as a picture and as a page, all from one dict.

``{"input", "rows", "measured", "fragments", "drawn", "algorithm", "cut", "quasi_identifiers",
"sensitive", "job", "points", "version", "created"}``, as :mod:`mondrian_ops.pipeline.frontier`
gathers it; ``job`` has the options `OF_CURVE`. A point has ``k``, ``l`` (None: no diversity is
required) and its figures or, if it cannot be attained, a ``reason``.
"""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mondrian_ops.report import number_format
from mondrian_ops.report.charts import Line, Lines, Spot, decimals, ticks
from mondrian_ops.report.number_format import number, percent
from mondrian_ops.report.sections import Section, Table

FRONTIER_NAME = "frontier.json"
"""The name of the frontier itself in the catalogue."""

DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What functions of this module raise for a dict that is not a frontier."""

Frontier = Mapping[str, Any]
Point = Mapping[str, Any]
Pins = Mapping[str, tuple[float, float]]
"""k and loss of releases, by name."""

OF_CURVE = ("quasi_identifiers", "entity_id", "algorithm", "cut", "relaxed")
"""Options of a job that say which curve its releases lie on."""

_CSV = (
    "k", "l", "attainable", "achieved_k", "achieved_l", "rows", "measured_rows", "suppressed",
    "equivalence_classes", "NCP", "GCP", "GCP_error", "GCP_robust", "information_lost", "LM", "DP",
    "C_avg", "risk_max", "risk_avg", "query_error", "seconds", "reason",
)  # fmt: skip


def frontier_files(frontier: Frontier) -> dict[str, bytes]:
    """The contents of the table, the picture and the page, by file name."""
    return {
        "frontier.csv": _csv(frontier).encode(),
        "frontier.svg": _svg(frontier).encode(),
        "frontier.html": _html(frontier).encode(),
    }


def frontier_text(frontier: Frontier, width: int = 100) -> str:
    """The table and the notes on it, as lines for a terminal or a task log."""
    table = _table(frontier)
    rows = [table.head, *table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(size) for cell, size in zip(row, widths, strict=True)) for row in rows
    ]
    refusals = [f"Not attainable: {points}. {reason}" for points, reason in _refused(frontier)]
    for note in (*refusals, *_notes(frontier)):
        lines += ["", *textwrap.wrap(number_format.printable(note), width)]
    return "\n".join(lines)


def _notes(frontier: Frontier) -> list[str]:
    """On how many rows the figures were measured, and what they mean."""
    rows, measured = number(frontier["rows"]), number(frontier["measured"])
    if not frontier["drawn"]:
        basis = f"Measured on all {rows} rows: each point is a run whose release was not published."
    else:
        basis = (
            f"Measured on {measured} of {rows} rows: the dataset was divided into "
            f"{number(frontier['fragments'])} fragments, and {number(frontier['drawn'])} of them, "
            "sampled evenly, were anonymized. ± is one standard error. Classes, NCP and DP are "
            "scaled to all rows. The k and l achieved and the highest risk are those of the drawn "
            "fragments: on all rows k and l may be as low, and the risk as high, as required."
        )
    return [
        basis,
        "Lost: 0 % is nothing, 100 % is every quasi-identifier of every row; robust: the same by "
        "spans without extreme values; bits: compares columns of different kinds. Counts: the "
        "median relative error of random counts. Risk: the chance of picking the right row for a "
        "person who is known to be in the data.",
    ]


def _table(frontier: Frontier) -> Table:
    """The figures of the attained points."""
    points = _attained(frontier)
    columns: list[tuple[str, Callable[[Point], str]]] = [
        ("k", lambda p: number(p["k"])),
        ("l", lambda p: number(p["l"])),
        ("k achieved", lambda p: number(p["achieved"].get("k"))),
        ("l achieved", lambda p: number(p["achieved"].get("l"))),
        ("classes", lambda p: number(p["equivalence_classes"])),
        ("lost (GCP)", _loss),
        ("robust", lambda p: percent(p["GCP_robust"])),
        ("bits", lambda p: percent(p["information_lost"])),
        ("LM", lambda p: percent(p["LM"])),
        ("counts", _error_of_counts),
        ("C_avg", lambda p: number(p["C_avg"])),
        ("DP", lambda p: number_format.size(p["DP"])),
        ("risk avg", lambda p: percent(p["risk_avg"])),
        ("max", lambda p: percent(p["risk_max"])),
        ("suppressed", lambda p: number(p["suppressed"])),
        ("time", lambda p: number_format.seconds(p["seconds"])),
    ]
    hidden = set() if frontier["sensitive"] else {"l achieved"}
    if not any(point["suppressed"] for point in points):
        hidden.add("suppressed")
    columns = [column for column in columns if column[0] not in hidden]
    rows = [tuple(write(point) for _, write in columns) for point in points]
    return Table(tuple(name for name, _ in columns), rows, 0)


def _loss(point: Point) -> str:
    error = point["GCP_error"]
    return percent(point["GCP"]) + ("" if error is None else f" ± {100 * error:.1f}")


def _error_of_counts(point: Point) -> str:
    error = point.get("query_error")
    return "–" if error is None else percent(error)


def _attained(frontier: Frontier) -> list[Point]:
    return [point for point in frontier["points"] if "reason" not in point]


def _refused(frontier: Frontier) -> list[tuple[str, str]]:
    """The points that cannot be attained and the reason; those of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for point in frontier["points"]:
        if "reason" in point:
            by_reason.setdefault(point["reason"], []).append(_k_and_l(point))
    return [("; ".join(points), reason) for reason, points in by_reason.items()]


def _k_and_l(point: Point) -> str:
    return f"k = {number(point['k'])}, {_l(point['l'])}"


def _l(required: float | None) -> str:
    return "no l" if required is None else f"l = {number(required)}"


def _csv(frontier: Frontier) -> str:
    """One row for each point, with shares instead of per cent, and l = 1 for no diversity."""
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

    return render(
        "frontier.html",
        frontier=frontier,
        drawings=_charts(frontier),
        points=_table(frontier),
        refused=Table(("not attainable", "why"), _refused(frontier), 2),
        notes=_notes(frontier),
    )


def _svg(frontier: Frontier) -> str:
    """Both charts side by side, in light or dark as the viewer is."""
    from mondrian_ops.report.page import render

    first = _notes(frontier)[0]
    return render(
        "frontier.svg",
        drawings=_charts(frontier),
        name=frontier["input"].rstrip("/").rpartition("/")[2],
        measured=first if len(first) < 100 else first[: first.index(":")],
    )


def is_on_curve(frontier: Frontier, job: Mapping[str, Any]) -> bool:
    """Whether a release by ``job`` lies on the curve: of the same columns, made in the same way."""
    measured = frontier.get("job")
    return measured is not None and all(measured.get(key) == job.get(key) for key in OF_CURVE)


def frontier_section(frontier: Frontier, pins: Pins) -> Section | None:
    """Loss against k for each l, and where releases lie in it.

    Returns None where no point is attainable. Raises one of DAMAGE for a dict that is not a
    frontier.
    """
    points = _attained(frontier)
    if not points:
        return None
    rows = [(number(p["k"]), _l(p["l"]), percent(p["GCP"]), percent(p["risk_avg"])) for p in points]
    return Section(
        "Frontier: loss against k",
        "What other values of k and l would cost on this input.",
        _loss_chart(frontier, pins),
        Table(("k", "l", "information lost (GCP)", "average risk"), rows, 0),
    )


def _charts(frontier: Frontier) -> list[tuple[str, str, Lines]]:
    """Title, lead and chart of the loss and of the risk."""
    highest_risk = 1 / min(point["k"] for point in frontier["points"])
    return [
        (
            "Information lost (GCP)",
            "How much of the quasi-identifiers' information is gone. Look for the k after which "
            "the line climbs fast.",
            _loss_chart(frontier, {}),
        ),
        (
            "Average risk",
            "The chance of picking the right row for a person who is known to be in the data, "
            "averaged over the rows; the thin line is the highest that k allows.",
            _chart(frontier, "risk_avg", highest_risk, {}),
        ),
    ]


def _loss_chart(frontier: Frontier, pins: Pins) -> Lines:
    losses = [point["GCP"] + (point.get("GCP_error") or 0) for point in _attained(frontier)]
    losses += [loss for _, loss in pins.values()]
    return _chart(frontier, "GCP", max(losses, default=0.0), pins)


def _chart(frontier: Frontier, figure: str, highest: float, pins: Pins) -> Lines:
    """A figure against k, with a line for each l; over the risk, with its bound 1 / k."""
    points: Sequence[Point] = frontier["points"]
    levels = ticks(highest)
    most, digits = levels[-1], decimals(levels[1])
    ks = sorted({point["k"] for point in points})
    x_of = _positions(sorted({*ks, *(k for k, _ in pins.values())}))

    def spot(point: Point) -> Spot:
        error = (point.get("GCP_error") or 0.0) / most if figure == "GCP" else 0.0
        says = f"k = {number(point['k'])}, {percent(point[figure])}"
        return Spot(x_of[point["k"]], point[figure] / most, says, error)

    lines = []
    for style, l in enumerate(sorted({p["l"] for p in points}, key=lambda l: l or 1)):  # noqa: E741
        of_l = [point for point in points if point["l"] == l]
        spots = tuple(spot(point) for point in of_l if "reason" not in point)
        crosses = tuple(
            (x_of[point["k"]], f"k = {number(point['k'])}, not attainable")
            for point in of_l
            if "reason" in point
        )
        lines.append(Line(_l(l), style, spots, crosses))
    allowed = tuple(Spot(x_of[k], 1 / k / most, "") for k in ks)
    description = "; ".join(
        f"{_k_and_l(p)}: lost {percent(p['GCP'])}, average risk {percent(p['risk_avg'])}"
        for p in _attained(frontier)
    )
    return Lines(
        description,
        tuple(lines),
        [(x_of[k], number(k)) for k in ks],
        [(level / most, percent(level, digits)) for level in levels],
        "k",
        Line("1 / k", 0, allowed) if figure == "risk_avg" else None,
        tuple(
            (name, Spot(x_of[k], loss / most, f"{name}: k = {number(k)}, {percent(loss)}"))
            for name, (k, loss) in pins.items()
        ),
    )


def _positions(ks: Sequence[float]) -> dict[float, float]:
    """The place of each k on a logarithmic axis."""
    first, span = math.log(ks[0]), math.log(ks[-1] / ks[0]) or 1.0
    return {k: (math.log(k) - first) / span if len(ks) > 1 else 0.5 for k in ks}
