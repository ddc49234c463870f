"""Two releases side by side: what differs in their jobs, their figures, and charts of both."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from operator import eq
from typing import Any, NamedTuple

from mondrian_ops.report import number_format, statements
from mondrian_ops.report.document import Report
from mondrian_ops.report.number_format import number, percent, printable, seconds, size
from mondrian_ops.report.sections import Section, Table, class_sizes, losses
from mondrian_ops.web.release_list import Release

_NONE = "–"
_MOST = 200
"""Characters of a value that are shown."""


class _Figure(NamedTuple):
    """A figure of the list; ``better``: 1 if more is better, -1 if less is, 0 if neither."""

    name: str
    field: str
    write: Callable[[float], str]
    better: int = 0

    def difference(self, a: float | None, b: float | None) -> str:
        """What B has more than A, and whether that is better."""
        if a is None or b is None or a == b:
            return ""
        text = _points(b - a) if self.write is percent else _more(a, b, self.write)
        if not self.better:
            return text
        return f"{text}, {'better' if (b - a) * self.better > 0 else 'worse'}"


_FIGURES = (
    _Figure("k required", "k", number),
    _Figure("k achieved", "achieved_k", number, 1),
    _Figure("l required", "l", number),
    _Figure("l achieved", "achieved_l", number, 1),
    _Figure("t achieved", "achieved_t", number, -1),
    _Figure("Rows read", "rows_input", number),
    _Figure("Rows published", "rows_published", number),
    _Figure("Rows suppressed", "rows_suppressed", number, -1),
    _Figure("Classes", "equivalence_classes", number),
    _Figure("Information lost (GCP)", "GCP", percent, -1),
    _Figure("NCP", "NCP", size),
    _Figure("Loss (LM)", "LM", percent, -1),
    _Figure("Discernibility (DP)", "DP", size),
    _Figure("Highest risk", "risk", percent, -1),
    _Figure("Average risk", "risk_avg", percent, -1),
    _Figure("Time", "duration_s", seconds),
)
_OF_A_NIGHT = ("achieved_k", "achieved_l", "rows_published", "rows_suppressed", "GCP", "risk")


def figures_of_both(pair: Sequence[Release]) -> Table:
    """Each figure of both releases, and the difference of B from A."""
    rows = []
    for figure in _FIGURES:
        a, b = (getattr(release, figure.field) for release in pair)
        texts = (_NONE if value is None else figure.write(value) for value in (a, b))
        rows.append((figure.name, *texts, figure.difference(a, b)))
    return Table(("", "A", "B", "difference"), rows)


def since(before: Release | None, release: Release) -> list[str]:
    """How the figures of a release differ from those of the one before; empty if they do not."""
    if before is None or release.rows_published is None:
        return []
    found = []
    for figure in _FIGURES:
        if figure.field in _OF_A_NIGHT:
            a, b = getattr(before, figure.field), getattr(release, figure.field)
            difference = figure.difference(a, b)
            found += [f"{figure.name}: {difference}"] if difference else []
    return found


def _points(difference: float) -> str:
    points = 100 * difference
    return f"{points:+.1f} points" if abs(points) >= 0.05 else f"{points:+.1g} points"


def _more(a: float, b: float, write: Callable[[float], str]) -> str:
    text = f"{'+' if b > a else '-'}{write(abs(b - a))}"
    return f"{text} ({100 * (b - a) / a:+.1f} %)" if a else text


def differences(pair: Sequence[Report]) -> Table:
    """What was asked and decided otherwise for B than for A."""
    requests = [dict(_request(report)) for report in pair]
    rows = []
    for name in dict.fromkeys([*requests[0], *requests[1]]):
        a, b = (each.get(name) or _NONE for each in requests)
        if a != b:
            same = sum(1 for _ in takewhile(bool, map(eq, a, b)))
            rows.append((name, _excerpt(a, same), _excerpt(b, same)))
    return Table(("", "A", "B"), rows, first_number=3)


def _request(report: Report) -> Iterator[tuple[str, str]]:
    """What a person asked, required or decided, by name."""
    job = dict(report.content["job"])
    for each in job.pop("quasi_identifiers", ()):
        name = each.get("name") if isinstance(each, dict) else each
        yield f"quasi-identifier {name}", _text(each)
    for option, value in job.items():
        yield option, _text(value)
    yield "published although not listed", ", ".join(report.columns.raw)
    for name, attribute in report.attributes.items():
        yield f"generalization of {name}", attribute.generalization or ""
    yield "policies", ", ".join(report.policies)
    yield "made by", statements.maker(report.made_by)
    yield "requested by", report.requested_by or ""
    if report.outcome is not None and report.outcome.decision:
        yield "decision", f"{report.outcome.decision} by {report.outcome.decided_by}"
    yield "version", report.version


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _excerpt(text: str, same: int) -> str:
    """A long text around the place from which on two texts differ."""
    start = 0 if len(text) <= _MOST else max(0, same - _MOST // 4)
    shown = text[start : start + _MOST]
    cut = start > 0, start + _MOST < len(text)
    return printable(f"{'…' if cut[0] else ''}{shown}{'…' if cut[1] else ''}")


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
