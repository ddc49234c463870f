"""Two releases side by side: their figures, and both in one chart."""

from __future__ import annotations

from collections.abc import Sequence

from mondrian_ops.report import figures
from mondrian_ops.report.figures import number, percent, seconds
from mondrian_ops.web.details import Report, Section
from mondrian_ops.web.releases import Release

__all__ = ["compared", "figures_of_both"]


def figures_of_both(pair: Sequence[Release]) -> list[tuple[str, str, str, str]]:
    """Each figure of both releases: name, A, B, and by how much B is more or less."""
    told = (
        ("k asked", "k", number),
        ("k achieved", "achieved_k", number),
        ("l asked", "l", number),
        ("l achieved", "achieved_l", number),
        ("Rows read", "rows_input", number),
        ("Rows published", "rows_published", number),
        ("Rows suppressed", "rows_suppressed", number),
        ("Classes", "equivalence_classes", number),
        ("Information lost (GCP)", "GCP", percent),
        ("NCP", "NCP", number),
        ("Loss (LM)", "LM", percent),
        ("Discernibility (DP)", "DP", number),
        ("Highest risk", "risk", percent),
        ("Average risk", "risk_avg", percent),
        ("Time", "duration_s", seconds),
    )
    found = []
    for name, field, write in told:
        a, b = (getattr(release, field) for release in pair)
        shown = ["–" if value is None else write(value) for value in (a, b)]
        found.append((name, shown[0], shown[1], _difference(a, b)))
    return found


def _difference(a: float | None, b: float | None) -> str:
    if a is None or b is None or not a or a == b:
        return ""
    return f"{100 * (b - a) / a:+z.1f} %"


def compared(pair: Sequence[Report]) -> list[Section]:
    """Two releases in one chart each: loss per column, and shares of classes by size."""
    names = sorted({name for report in pair for name in report["attributes"]})
    loss: list[list[float | None]] = [
        [report["attributes"].get(name, {}).get("NCP") for name in names] for report in pair
    ]
    return [
        {
            "title": "Information lost per quasi-identifier",
            "lead": "A column that one of them does not have has no bar.",
            "chart": {
                "kind": "across",
                "label": "; ".join(
                    f"{name}: {_or_dash(a)} and {_or_dash(b)}"
                    for name, a, b in zip(names, *loss, strict=True)
                ),
                "percent": True,
                "labels": names,
                "series": [
                    {"name": letter, "values": values}
                    for letter, values in zip("AB", loss, strict=True)
                ],
            },
            "head": ("column", "A", "B"),
            "rows": [
                (name, _or_dash(a), _or_dash(b)) for name, a, b in zip(names, *loss, strict=True)
            ],
        },
        _sizes_compared(pair),
    ]


def _sizes_compared(pair: Sequence[Report]) -> Section:
    k = min(int(report["job"]["k"]) for report in pair)
    merged: dict[int, int] = {}
    for size, classes in (each for report in pair for each in report["class_sizes"]):
        merged[size] = merged.get(size, 0) + classes
    bins = figures.bins(sorted(merged.items()), k)
    shares = [_shares(report["class_sizes"], bins) for report in pair]
    labels = [each.label for each in bins]
    return {
        "title": "Class sizes",
        "lead": "The share of each release's rows that are in classes of a size.",
        "chart": {
            "kind": "bars",
            "label": "; ".join(
                f"{label} rows: {percent(a)} and {percent(b)}"
                for label, a, b in zip(labels, *shares, strict=True)
            ),
            "axis": "rows in a class",
            "percent": True,
            "labels": labels,
            "series": [
                {"name": letter, "values": values}
                for letter, values in zip("AB", shares, strict=True)
            ],
        },
        "head": ("rows in a class", "A", "B"),
        "rows": [
            (label, percent(a), percent(b)) for label, a, b in zip(labels, *shares, strict=True)
        ],
    }


def _shares(sizes: Sequence[Sequence[int]], bins: Sequence[figures.Bin]) -> list[float]:
    rows = sum(size * classes for size, classes in sizes) or 1
    return [
        sum(
            size * classes
            for size, classes in sizes
            if size >= each.low and (each.high is None or size <= each.high)
        )
        / rows
        for each in bins
    ]


def _or_dash(share: float | None) -> str:
    return "–" if share is None else percent(share)
