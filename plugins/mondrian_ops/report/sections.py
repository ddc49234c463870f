"""The charts of a release, each with a lead and its figures as a table, for file and page alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mondrian_ops.late_methods import dataclass
from mondrian_ops.report import number_format
from mondrian_ops.report.charts import (
    Bars,
    Column,
    Columns,
    Lines,
    Map,
    Row,
    Tile,
    decimals,
    nice_limit,
    stacked,
    ticks,
    treemap,
)
from mondrian_ops.report.document import Attribute, FragmentFigures, Report, Risk
from mondrian_ops.report.number_format import number, percent, seconds, size
from mondrian_ops.report.statements import guarantees

MAX_FRAGMENTS = 1000
_MAP_RATIO = 3.0  # between that of a wide screen and that of a telephone


@dataclass(frozen=True)
class Table:
    """Cells as text; the columns from ``first_number`` on are figures."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    first_number: int = 1


@dataclass(frozen=True)
class Section:
    """A chart under its title and lead, above its table; ``legend`` has styles and labels."""

    title: str
    lead: str
    chart: Bars | Columns | Lines | Map
    table: Table
    legend: Sequence[tuple[str, str]] = ()
    wide: bool = False

    @property
    def id(self) -> str:
        return self.title.lower().replace(":", "").replace(" ", "-")


def sections(report: Report, with_conditions: bool = False) -> list[Section]:
    """The charts of a release, the most important ones first.

    ``with_conditions``: show the conditions of fragments, which may name values of the data.
    """
    if not report.is_measured:
        return []
    charts = (
        _class_sizes(report),
        _losses(report),
        _widths(report),
        _distances(report),
        _fragments(report, with_conditions),
        _risk(report),
    )
    return [section for section in charts if section is not None]


def achieved(report: Report) -> Bars:
    """What the weakest class achieves, and across it what the job requires."""
    rows = []
    for each in guarantees(report):
        if each.achieved is None:
            continue
        end = max(each.required, each.achieved) * 1.15 or 1.0
        value = f"required {number(each.required)} · achieved {number(each.achieved)}"
        bar = stacked([(each.achieved / end, "good" if each.met else "bad")])
        says = f"{each.name}: {value}"
        rows.append(Row(each.name, value, (bar,), says, line=each.required / end))
    description = "; ".join(f"{each.name}: {each.verdict}" for each in guarantees(report))
    return Bars(description, tuple(rows))


def _class_sizes(report: Report) -> Section | None:
    if not report.class_sizes:
        return None
    k = report.job.k
    bins = number_format.bins(report.class_sizes, k)
    small = sum(each.classes for each in bins if each.low < k)
    total = sum(each.classes for each in bins) or 1
    below = (
        f"{small:,} classes, in red, have fewer than k = {k}."
        if small
        else f"No class is below k = {k}."
    )
    smallest, largest = report.class_sizes[0][0], report.class_sizes[-1][0]
    rows = [
        (each.label, number(each.classes), percent(each.classes / total), number(each.rows))
        for each in bins
    ]
    return class_sizes(
        "Nobody can tell the people of a class apart by their quasi-identifiers. The smallest of "
        f"{total:,} classes has {smallest:,} rows, the largest {largest:,}. {below}",
        bins,
        {"classes": [each.classes for each in bins]},
        Table(("rows in a class", "classes", "share", "rows"), rows),
        k,
    )


def class_sizes(
    lead: str,
    bins: Sequence[number_format.Bin],
    series: Mapping[str, Sequence[float]],
    table: Table,
    k: int,
) -> Section:
    """Classes by size: of one release their number, of several releases the share of rows."""
    is_one = len(series) == 1
    levels = ticks(max((value for values in series.values() for value in values), default=1.0))
    most, digits = levels[-1], decimals(levels[1])
    columns = []
    for at, each in enumerate(bins):
        values = {name: of_bins[at] for name, of_bins in series.items()}
        bars = tuple(
            (value / most, "bad" if each.low < k else f"s{style}")
            for style, value in enumerate(values.values())
        )
        texts = [
            f"{number(value)} {name}" if is_one else f"{name} {percent(value)}"
            for name, value in values.items()
        ]
        says = f"{each.label} rows in a class: {', '.join(texts)}"
        columns.append(Column(each.label, bars, says, size(each.classes) if is_one else ""))
    description = f"{number(sum(each.classes for each in bins))} classes by how many rows they have"
    grid = [(level / most, size(level) if is_one else percent(level, digits)) for level in levels]
    chart = Columns(description, tuple(columns), grid, "rows in a class", 12 if is_one else 8)
    return Section("Class sizes", lead, chart, table, _legend(series), wide=is_one)


def _losses(report: Report) -> Section | None:
    if not report.attributes:
        return None
    rows = [
        (
            name,
            generalization(report, name),
            *map(_share, (each.NCP, each.LM, each.NCP_robust, each.information_lost)),
        )
        for name, each in report.attributes.items()
    ]
    heads = "column", "generalization", "NCP", "LM", "robust NCP", "bits lost"
    return losses(
        "The width of the published values, as a share of the whole column and on average: at 0 % "
        "every value is exact, at 100 % nothing is left. Bits lost compares columns of different "
        "kinds.",
        {"information lost": report.attributes},
        Table(heads, rows, 2),
    )


def _share(lost: float | None) -> str:
    """A loss; reports of older versions lack some."""
    return "" if lost is None else percent(lost)


def losses(lead: str, series: Mapping[str, Mapping[str, Attribute]], table: Table) -> Section:
    """Information lost per quasi-identifier, of one release or of several."""
    names = dict.fromkeys(name for attributes in series.values() for name in attributes)
    limit = nice_limit(each.NCP for of_one in series.values() for each in of_one.values()) or 1.0
    rows = []
    for name in names:
        lost = [of_one[name].NCP if name in of_one else None for of_one in series.values()]
        texts = ["–" if loss is None else percent(loss) for loss in lost]
        if len(series) > 1:
            texts = [f"{label} {text}" for label, text in zip(series, texts, strict=True)]
        bars = tuple(stacked([((loss or 0.0) / limit, f"s{at}")]) for at, loss in enumerate(lost))
        rows.append(Row(name, " · ".join(texts), bars, f"{name}: {', '.join(texts)}"))
    return Section(
        "Information lost per quasi-identifier",
        lead,
        _bars(rows, percent(limit, 0)),
        table,
        _legend(series),
    )


def _bars(rows: Sequence[Row], end: str) -> Bars:
    description = "; ".join(f"{row.label}: {row.value}{row.more}" for row in rows)
    return Bars(description, tuple(rows), ("0 %", end))


def _legend(series: Iterable[str]) -> list[tuple[str, str]]:
    """Styles and labels of several series; one needs no legend."""
    legend = [(f"s{style}", name) for style, name in enumerate(series)]
    return legend if len(legend) > 1 else []


def generalization(report: Report, name: str) -> str:
    """How a quasi-identifier was generalized, and its level where whole columns were recoded."""
    attribute = report.attributes.get(name)
    how = (attribute.generalization if attribute else "") or "by type"
    return f"{how}, level {report.levels[name]}" if name in report.levels else how


def _widths(report: Report) -> Section | None:
    """Rows of each column by how much of the column's range their value covers."""
    counts = {name: _counts(each) for name, each in report.attributes.items()}
    if not counts or not all(counts.values()):
        return None
    between = dict.fromkeys(step for each in counts.values() for step in [*each][1:-1])
    steps = ["exact", *between, "hidden (*)"]
    styles = [f"q{min(at, 6)}" for at in range(len(steps) - 1)] + ["q7"]
    published = report.rows.in_classes or 1
    rows = []
    for name, each in counts.items():
        shares = [each.get(step, 0) / published for step in steps]
        texts = [
            f"{percent(share)} {step}" for share, step in zip(shares, steps, strict=True) if share
        ]
        bar = stacked(zip(shares, styles, strict=True))
        exact, hidden = f"{percent(shares[0], 0)} exact", f" · {percent(shares[-1], 0)} hidden"
        rows.append(Row(name, exact, (bar,), f"{name}: {', '.join(texts)}", hidden))
    cells = [
        (name, generalization(report, name), *(number(each.get(step, 0)) for step in steps))
        for name, each in counts.items()
    ]
    return Section(
        "How each column was generalized",
        "Rows by the width of their published value, as a share of the whole column: exact, up to "
        "2 %, and so on, or hidden altogether (*).",
        _bars(rows, "100 % of the rows"),
        Table(("column", "generalization", *steps), cells, 2),
        list(zip(styles, steps, strict=True)),
    )


def _distances(report: Report) -> Section | None:
    """How far the distribution of each column in the release is from that of the input."""
    distances = report.use.distance if report.use else {}
    if not distances:
        return None
    limit = nice_limit(distances.values()) or 1.0
    rows = [
        Row(name, percent(each), (stacked([(each / limit, "s0")]),), f"{name}: {percent(each)}")
        for name, each in distances.items()
    ]
    return Section(
        "Distributions before and after",
        "How far what the release says of each column is from the input: the greatest distance of "
        "the distribution functions of numbers and dates, half of the sum of the distances of the "
        "shares of other values. 0 % is no distance, 100 % nothing in common.",
        _bars(rows, percent(limit, 0)),
        Table(("column", "distance"), [(name, percent(each)) for name, each in distances.items()]),
    )


def _counts(attribute: Attribute) -> dict[str, int]:
    """Rows by how much of their value is published; empty where it was not measured."""
    exact, star = attribute.rows_exact, attribute.rows_star
    if exact is None or star is None:
        return {}
    by_loss = attribute.rows_by_loss or ()
    widths = {f"up to {100 * most:.0f} %": rows for most, rows in by_loss}
    return {"exact": exact, **widths, "hidden (*)": star}


_RISKS = (
    ("prosecutor_max", "Prosecutor, highest", "The chance of picking the right row for a person "
     "who is known to be in the data, in the smallest class."),
    ("prosecutor_avg", "Prosecutor, average", "The same, averaged over all rows."),
    ("journalist_max", "Journalist, at most", "The chance for a person who may be in the data or "
     "not. It is lower where the population has more people in a class than the data, but the data "
     "does not tell how many."),
    ("marketer", "Marketer", "The share of rows re-identified correctly by somebody who matches "
     "everybody."),
    ("population_max", "Population, highest", "An estimate of the chance for a person of the "
     "population, of which the data is a sample, in the smallest class."),
    ("population_avg", "Population, average", "The same, averaged over all rows."),
)  # fmt: skip


def _risk(report: Report) -> Section:
    risk = report.risk
    measured = [(name, meaning, float(share)) for key, name, meaning in _RISKS
                if (share := getattr(risk, key)) is not None]  # fmt: skip
    limit = nice_limit(share for _, _, share in measured) or 1.0
    lead = "How likely somebody picks a person's row out of the release"
    lead += ", by the columns that the job names." if report.columns.raw else "."
    if risk.rows_at_most_risk is not None:
        lead += f" {number(risk.rows_at_most_risk)} rows are at the highest risk."
    lead += _before(risk)
    rows, cells = [], []
    for name, meaning, share in measured:
        bar = stacked([(share / limit, "s0")])
        rows.append(Row(name, percent(share), (bar,), f"{name}: {percent(share)}. {meaning}"))
        cells.append((name, meaning, percent(share)))
    return Section(
        "Risk of re-identification",
        lead,
        _bars(rows, percent(limit, 0)),
        Table(("attacker", "what it means", "risk"), cells, 2),
    )


def _before(risk: Risk) -> str:
    """A sentence on the risk before the release, of the raw quasi-identifiers."""
    before = risk.before
    if before is None:
        return ""
    if before.unique is None or before.average is None:
        return (
            " How many rows were the only one with their values before is not shown: these, or the "
            "others, are of fewer than k persons."
        )
    return (
        f" Before, {percent(before.unique)} of the rows were the only one with their values, and "
        f"the average risk was {percent(before.average)}."
    )


def _fragments(report: Report, with_conditions: bool) -> Section | None:
    if not report.fragments:
        return None
    columns = len(report.attributes) or 1
    lost = {each.id: each.NCP / (each.rows * columns or 1) for each in report.fragments}
    largest = sorted(report.fragments, key=lambda each: -each.rows)[:MAX_FRAGMENTS]
    how = "recoded like all others" if report.recoding else "anonymized by itself"
    lead = (
        f"The parts into which the rows were divided; each was {how}. Area: rows. Colour: "
        "information lost. Tiles of one size mean that the work was shared evenly."
    )
    if len(report.fragments) > len(largest):
        lead += f" The chart shows the {MAX_FRAGMENTS:,} largest of {len(report.fragments):,}."
    head = ("fragment", *(("rows where",) if with_conditions else ()), "rows", "classes",
            "information lost", "DP", "time")  # fmt: skip
    cells = [
        (f"fragment {each.id}", *((each.where or "all rows",) if with_conditions else ()),
         number(each.rows), number(each.equivalence_classes), percent(lost[each.id]),
         number(each.DP), _time(each) or "–")
        for each in (report.fragments if with_conditions else largest)
    ]  # fmt: skip
    table = Table(head, cells, 2 if with_conditions else 1)
    return Section("Fragments", lead, _map(report, largest, lost), table, wide=True)


def _map(report: Report, largest: Sequence[FragmentFigures], lost: Mapping[int, float]) -> Map:
    most = max(lost[each.id] for each in largest) or 1.0
    tiles = []
    for each, box in zip(
        largest, treemap([each.rows for each in largest], _MAP_RATIO), strict=True
    ):
        loss, time = percent(lost[each.id]), _time(each)
        rows = f"{number(each.rows)} rows in {number(each.equivalence_classes)} classes"
        shade = 2 + min(max(int(5 * lost[each.id] / (most * (1 + 1e-9))), 0), 4)
        lines = tuple(filter(None, (f"#{each.id}", f"{size(each.rows)} rows", loss, time)))
        says = ", ".join(filter(None, (f"fragment {each.id}: {rows}", f"{loss} lost", time)))
        tiles.append(Tile(*box, f"q{shade}", lines, says))
    times = [each.seconds for each in largest if each.seconds is not None]
    each_took = f", {seconds(min(times))} to {seconds(max(times))} each" if times else ""
    return Map(
        f"{number(len(report.fragments))} fragments of {number(largest[-1].rows)} to "
        f"{number(largest[0].rows)} rows{each_took}",
        tuple(tiles),
    )


def _time(fragment: FragmentFigures) -> str:
    return "" if fragment.seconds is None else seconds(fragment.seconds)
