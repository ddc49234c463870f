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

from mondrian_ops.report import figures, markup
from mondrian_ops.report.charts import Drawing, Line, Spot, text, ticks
from mondrian_ops.report.figures import number, percent

__all__ = [
    "CSV_NAME",
    "FRONTIER_NAME",
    "HTML_NAME",
    "SVG_NAME",
    "frontier_files",
    "frontier_text",
]

CSV_NAME, SVG_NAME, HTML_NAME = "frontier.csv", "frontier.svg", "frontier.html"
FRONTIER_NAME = "frontier.json"
"""The frontier itself, as the archive of reports keeps it."""

Frontier = Mapping[str, Any]
Point = Mapping[str, Any]

_CSV = (
    "k", "l", "attainable", "achieved_k", "achieved_l", "rows", "measured_rows", "suppressed",
    "equivalence_classes", "NCP", "GCP", "GCP_error", "LM", "DP", "C_avg", "risk_max", "risk_avg",
    "seconds", "reason",
)  # fmt: skip

_LOST = "Information lost (GCP)"
_RISK = "Average risk"


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
    said = [f"Not attainable: {asked}. {reason}" for asked, reason in _refused(frontier)]
    for note in (*said, *notes(frontier)):
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
    draw = Drawing()
    captions = (
        "How much of the quasi-identifiers' information is gone. Look for the k from which on the "
        "line climbs fast.",
        "The chance of picking the right row for a person known to be in the data, averaged over "
        "the rows; the thin line is the most that k allows.",
    )
    charts = (_loss_chart(frontier, draw), _risk_chart(frontier, draw))
    shown = "".join(
        markup.figure(title, caption, chart)
        for title, caption, chart in zip((_LOST, _RISK), captions, charts, strict=True)
    )
    said = "".join(f"<p>{text(note)}</p>" for note in notes(frontier))
    body = (
        markup.section("Loss and risk against k", "", f'<div class="two">{shown}</div>')
        + markup.section("All points", "", _table(frontier))
        + markup.section("How to read this", "", said)
    )
    return markup.document(
        heading="Privacy frontier",
        title=frontier["input"],
        subtitle=(frontier["input"], _made(frontier)),
        body=body,
        footer=f"Made by mondrian_ops {frontier['version']}, "
        f"{frontier['created'].replace('T', ' ').replace('+00:00', ' UTC')}. It holds figures, and "
        "no person's values.",
    )


def _made(frontier: Frontier) -> str:
    names = ", ".join(frontier["quasi_identifiers"])
    return f"{frontier['algorithm']}, quasi-identifiers {names}"


def _table(frontier: Frontier) -> str:
    columns = _columns(frontier)
    head = tuple(name for name, _ in columns)
    rows = [tuple(write(point) for _, write in columns) for point in _attained(frontier)]
    table = markup.table(head, rows, right=range(len(head)))
    refused = _refused(frontier)
    return table + (markup.table(("not attainable", "why"), refused) if refused else "")


def _svg(frontier: Frontier) -> str:
    """Both charts beside each other as a picture of its own, in light or dark as its viewer is."""
    draw = Drawing()
    charts = ((_LOST, _loss_chart(frontier, draw)), (_RISK, _risk_chart(frontier, draw)))
    drawn = "".join(
        f'<text class="label" x="{x}" y="66">{text(title)}</text>'
        f'<svg x="{x}" y="82" width="440" height="320" overflow="visible">{chart}</svg>'
        for x, (title, chart) in zip((24, 496), charts, strict=True)
    )
    first = notes(frontier)[0]
    on = first if len(first) < 100 else first[: first.index(":")]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 960 420" width="960" '
        f'height="420" role="img" aria-labelledby="t d"><title id="t">Privacy frontier</title>'
        f'<desc id="d">{text(_described(frontier))}</desc><style>{markup.stylesheet()}</style>'
        '<rect class="ground" width="960" height="420" rx="8"/>'
        f'<text class="heading" x="24" y="34">{text(_name(frontier))}</text>'
        f'<text class="tick end" x="936" y="34">{text(on)}</text>{drawn}</svg>\n'
    )


def _name(frontier: Frontier) -> str:
    """The last part of the input's place."""
    return f"Loss and risk against k: {frontier['input'].rstrip('/').rpartition('/')[2]}"


def _described(frontier: Frontier) -> str:
    return "; ".join(
        f"{_asked(point)}: lost {percent(point['GCP'])}, average risk {percent(point['risk_avg'])}"
        for point in _attained(frontier)
    )


def _loss_chart(frontier: Frontier, draw: Drawing) -> str:
    most = max((p["GCP"] + (p["GCP_error"] or 0) for p in _attained(frontier)), default=0.0)
    return _chart(frontier, draw, _LOST, "GCP", most, bound=False)


def _risk_chart(frontier: Frontier, draw: Drawing) -> str:
    most = 1 / min(point["k"] for point in frontier["points"])
    return _chart(frontier, draw, _RISK, "risk_avg", most, bound=True)


def _chart(
    frontier: Frontier, draw: Drawing, title: str, figure: str, most: float, bound: bool
) -> str:
    levels = ticks(most)
    ks = sorted({point["k"] for point in frontier["points"]})
    place = _places(ks)
    lines = []
    for style, (asked, points) in enumerate(_by_l(frontier)):
        spots = tuple(
            Spot(
                place[p["k"]],
                p[figure] / levels[-1],
                f"k = {p['k']}, {percent(p[figure])}",
                (p["GCP_error"] or 0.0) / levels[-1] if figure == "GCP" else 0.0,
            )
            for p in points
            if "reason" not in p
        )
        crosses = tuple(
            (place[p["k"]], f"k = {p['k']}, not attainable") for p in points if "reason" in p
        )
        lines.append(Line(_l(asked), style, spots, crosses))
    allowed = tuple(Spot(place[k], 1 / k / levels[-1], f"{percent(1 / k)}") for k in ks)
    upward = [(level / levels[-1], percent(level, _digits(levels[1]))) for level in levels]
    return draw.lines(
        f"{title} against k",
        _described(frontier),
        lines,
        ([(place[k], str(k)) for k in ks], upward),
        "k",
        Line("1 / k", 0, allowed) if bound else None,
    )


def _by_l(frontier: Frontier) -> Iterator[tuple[float | None, list[Point]]]:
    points: Sequence[Point] = frontier["points"]
    for asked in sorted({point["l"] for point in points}, key=lambda l: l or 1):  # noqa: E741
        yield asked, [point for point in points if point["l"] == asked]


def _places(ks: Sequence[int]) -> dict[int, float]:
    """Where each k stands on an axis of even ratios."""
    first, span = math.log(ks[0]), math.log(ks[-1] / ks[0]) or 1.0
    return {k: (math.log(k) - first) / span if len(ks) > 1 else 0.5 for k in ks}


def _digits(step: float) -> int:
    """Decimals of a per cent that tell steps apart."""
    return max(0, math.ceil(-math.log10(100 * step) - 1e-9))
