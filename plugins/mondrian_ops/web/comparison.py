"""Two releases side by side: a table of their figures, and charts that show both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mondrian_ops.report import number_format
from mondrian_ops.report.document import Report
from mondrian_ops.report.number_format import number, percent, seconds, size
from mondrian_ops.report.sections import Section, Table, class_sizes, losses
from mondrian_ops.web.release_list import Release

_FIGURES = (
    ("k required", "k", number),
    ("k achieved", "achieved_k", number),
    ("l required", "l", number),
    ("l achieved", "achieved_l", number),
    ("Rows read", "rows_input", number),
    ("Rows published", "rows_published", number),
    ("Rows suppressed", "rows_suppressed", number),
    ("Classes", "equivalence_classes", number),
    ("Information lost (GCP)", "GCP", percent),
    ("NCP", "NCP", size),
    ("Loss (LM)", "LM", percent),
    ("Discernibility (DP)", "DP", size),
    ("Highest risk", "risk", percent),
    ("Average risk", "risk_avg", percent),
    ("Time", "duration_s", seconds),
)


def figures_of_both(pair: Sequence[Release]) -> Table:
    """Each figure of both releases, and the difference of B from A."""
    rows = []
    for name, field, write in _FIGURES:
        a, b = (getattr(release, field) for release in pair)
        texts = ("–" if value is None else write(value) for value in (a, b))
        rows.append((name, *texts, _difference(a, b)))
    return Table(("", "A", "B", "difference"), rows)


def _difference(a: float | None, b: float | None) -> str:
    if a is None or b is None or not a or a == b:
        return ""
    return f"{100 * (b - a) / a:+z.1f} %"


def compared(pair: Sequence[Report]) -> list[Section]:
    """Loss per column and class sizes, each in a chart that shows both releases."""
    return [_losses(pair), _class_sizes(pair)]


def _losses(pair: Sequence[Report]) -> Section:
    names = dict.fromkeys(name for report in pair for name in report.attributes)
    rows = []
    for name in names:
        attributes = [report.attributes.get(name) for report in pair]
        ncp = (None if each is None else each.NCP for each in attributes)
        bits = (None if each is None else each.information_lost for each in attributes)
        rows.append((name, *("–" if lost is None else percent(lost) for lost in (*ncp, *bits))))
    return losses(
        "A column that only one release has, has one bar.",
        {letter: report.attributes for letter, report in zip("AB", pair, strict=True)},
        Table(("column", "A", "B", "bits lost by A", "by B"), rows),
    )


def _class_sizes(pair: Sequence[Report]) -> Section:
    k = min(report.job.k for report in pair)
    classes_by_size: Counter[int] = Counter()
    for report in pair:
        classes_by_size.update(dict(report.class_sizes))
    bins = number_format.bins(list(classes_by_size.items()), k)
    shares = [_shares(report.class_sizes, bins) for report in pair]
    rows = [(each.label, percent(a), percent(b)) for each, a, b in zip(bins, *shares, strict=True)]
    return class_sizes(
        "The rows in classes of each size, as a share of the release's rows.",
        bins,
        dict(zip("AB", shares, strict=True)),
        Table(("rows in a class", "A", "B"), rows),
        k,
    )


def _shares(sizes: Sequence[Sequence[int]], bins: Sequence[number_format.Bin]) -> list[float]:
    rows = [number_format.bin_of(each.low, each.high, sizes).rows for each in bins]
    return [each / (sum(rows) or 1) for each in rows]
