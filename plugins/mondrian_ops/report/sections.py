"""The charts of a release, each with a lead and its figures as a table, for file and page alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mondrian_ops.report import figures
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
    squarified,
    stacked,
    ticks,
)
from mondrian_ops.report.document import Attribute, Fragment, Report
from mondrian_ops.report.figures import number, percent, seconds, size
from mondrian_ops.report.statements import guarantees

__all__ = ["Section", "Table", "achieved", "class_sizes", "losses", "sections"]

MAX_FRAGMENTS = 1000
_MAP_RATIO = 3.0  # between that of a wide screen and that of a telephone


@dataclass(frozen=True)
class Table:
    """Cells as text; the columns from ``first_number`` to before ``end`` are figures."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    first_number: int = 1
    end: int | None = None


@dataclass(frozen=True)
class Section:
    """A chart under its title and lead, above its table; ``legend`` has styles and labels."""

    title: str
    lead: str
    chart: Bars | Columns | Lines | Map
    table: Table
    legend: tuple[tuple[str, str], ...] = ()
    wide: bool = False

    @property
    def id(self) -> str:
        return self.title.lower().replace(":", "").replace(" ", "-")


def sections(report: Report, with_conditions: bool = False) -> list[Section]:
    """The charts of a release, those first that say most.

    ``with_conditions``: those of the fragments too, which may name values of the data.
    """
    charts = (
        _class_sizes(report),
        _losses(report),
        _widths(report),
        _fragments(report, with_conditions),
        _risk(report),
    )
    return [section for section in charts if section is not None]


def achieved(report: Report) -> Bars:
    """What the weakest class reaches, and across it what was asked."""
    return Bars(
        "; ".join(f"{each.name}: {each.verdict}" for each in guarantees(report)),
        tuple(_achieved_rows(report)),
    )


def _achieved_rows(report: Report) -> Iterator[Row]:
    for each in guarantees(report):
        if each.achieved is None:
            continue
        end = max(each.asked, each.achieved) * 1.15 or 1.0
        value = f"asked {number(each.asked)} · achieved {number(each.achieved)}"
        bar = stacked([(each.achieved / end, "good" if each.met else "bad")])
        yield Row(each.name, value, (bar,), f"{each.name}: {value}", line=each.asked / end)


def _class_sizes(report: Report) -> Section | None:
    if not report.class_sizes:
        return None
    k = report.job.k
    bins = figures.bins(report.class_sizes, k)
    small = sum(each.classes for each in bins if each.low < k)
    below = f"{small:,} classes are smaller than k = {k}: red." if small else f"None is below {k}."
    smallest, largest = report.class_sizes[0][0], report.class_sizes[-1][0]
    total = sum(each.classes for each in bins) or 1
    return class_sizes(
        "People in one class cannot be told apart by their quasi-identifiers. The smallest of "
        f"{total:,} classes has {smallest:,} rows, the largest {largest:,}. {below}",
        bins,
        [("classes", [each.classes for each in bins])],
        Table(
            ("rows in a class", "classes", "share", "rows"),
            [
                (each.label, number(each.classes), percent(each.classes / total), number(each.rows))
                for each in bins
            ],
        ),
        k,
    )


def class_sizes(
    lead: str,
    bins: Sequence[figures.Bin],
    series: Sequence[tuple[str, Sequence[float]]],
    table: Table,
    k: int,
) -> Section:
    """Classes by size, of one release in numbers or of several in shares of their rows."""
    is_one = len(series) == 1
    levels = ticks(max((value for _, values in series for value in values), default=1.0))
    most, digits = levels[-1], decimals(levels[1])
    columns = [
        Column(
            each.label,
            tuple(
                (values[at] / most, "bad" if each.low < k else f"s{style}")
                for style, (_, values) in enumerate(series)
            ),
            f"{each.label} rows in a class: "
            + ", ".join(
                f"{number(values[at])} {name}" if is_one else f"{name} {percent(values[at])}"
                for name, values in series
            ),
            size(series[0][1][at]) if is_one else "",
        )
        for at, each in enumerate(bins)
    ]
    return Section(
        "Class sizes",
        lead,
        Columns(
            f"{number(sum(each.classes for each in bins))} classes by how many rows they have",
            tuple(columns),
            [(level / most, size(level) if is_one else percent(level, digits)) for level in levels],
            "rows in a class",
        ),
        table,
        _legend([name for name, _ in series]),
        wide=is_one,
    )


def _losses(report: Report) -> Section | None:
    if not report.attributes:
        return None
    return losses(
        "How wide the published values are beside the whole column, on average: 0 % is every "
        "value exact, 100 % is nothing left.",
        [("information lost", report.attributes)],
        Table(
            ("column", "generalization", "NCP", "LM"),
            [
                (name, generalization(report, name), percent(each.NCP), percent(each.LM))
                for name, each in report.attributes.items()
            ],
            2,
        ),
    )


def losses(
    lead: str, series: Sequence[tuple[str, Mapping[str, Attribute]]], table: Table
) -> Section:
    """Information lost per quasi-identifier, of one release or of several."""
    names = list(dict.fromkeys(name for _, attributes in series for name in attributes))
    limit = nice_limit(each.NCP for _, attributes in series for each in attributes.values()) or 1.0
    rows = []
    for name in names:
        lost = [attributes[name].NCP if name in attributes else None for _, attributes in series]
        texts = ["–" if loss is None else percent(loss) for loss in lost]
        labelled = texts
        if len(series) > 1:
            labelled = [f"{each[0]} {text}" for each, text in zip(series, texts, strict=True)]
        bars = tuple(stacked([((loss or 0.0) / limit, f"s{at}")]) for at, loss in enumerate(lost))
        rows.append(Row(name, " · ".join(labelled), bars, f"{name}: {', '.join(labelled)}"))
    return Section(
        "Information lost per quasi-identifier",
        lead,
        Bars("; ".join(row.says for row in rows), tuple(rows), ("0 %", percent(limit, 0))),
        table,
        _legend([name for name, _ in series]),
    )


def _legend(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    if len(names) < 2:
        return ()
    return tuple((f"s{style}", name) for style, name in enumerate(names))


def generalization(report: Report, name: str) -> str:
    """How a quasi-identifier was generalized, and to which level where it was recoded whole."""
    attribute = report.attributes.get(name)
    how = (attribute.generalization if attribute else "") or "by type"
    return f"{how}, level {report.levels[name]}" if name in report.levels else how


def _widths(report: Report) -> Section | None:
    """How each column was generalized: rows by how much of the column's range is published."""
    counts = {name: _counts(each) for name, each in report.attributes.items()}
    if not counts or not all(counts.values()):
        return None
    between = dict.fromkeys(step for each in counts.values() for step in [*each][1:-1])
    steps = ["exact", *between, "hidden (*)"]
    styles = [f"q{min(at, 6)}" for at in range(len(steps) - 1)] + ["q7"]
    rows, published = [], report.rows.published or 1
    for name, each in counts.items():
        shares = [each.get(step, 0) / published for step in steps]
        shown = [
            f"{percent(share)} {step}"
            for share, step in zip(shares, steps, strict=True)
            if share
        ]  # fmt: skip
        rows.append(
            Row(
                name,
                f"{percent(shares[0], 0)} exact",
                (stacked(zip(shares, styles, strict=True)),),
                f"{name}: {', '.join(shown)}",
                f" · {percent(shares[-1], 0)} hidden",
            )
        )
    return Section(
        "How each column was generalized",
        "Rows by how wide their published value is beside the whole column: exact, up to 2 % of "
        "it, and so on, or hidden altogether (*).",
        Bars("; ".join(row.says for row in rows), tuple(rows), ("0 %", "100 % of the rows")),
        Table(
            ("column", "generalization", *steps),
            [
                (name, generalization(report, name), *(number(each.get(s, 0)) for s in steps))
                for name, each in counts.items()
            ],
            2,
        ),
        tuple(zip(styles, steps, strict=True)),
    )


def _counts(attribute: Attribute) -> dict[str, int]:
    """Rows by how much of their value is published; empty where it was not measured."""
    exact, star, by_loss = attribute.rows_exact, attribute.rows_star, attribute.rows_by_loss
    if exact is None or star is None:
        return {}
    if by_loss is None:
        return {"exact": exact, "hidden (*)": star}
    widths = {f"up to {100 * most:.0f} %": rows for most, rows in by_loss}
    return {"exact": exact, **widths, "hidden (*)": star}


_RISKS = (
    ("prosecutor_max", "Prosecutor, highest", "The chance of picking the right row for a person "
     "who is known to be in the data, in the smallest class."),
    ("prosecutor_avg", "Prosecutor, average", "The same over all rows."),
    ("journalist_max", "Journalist, at most", "For a person who may be in the data or not. The "
     "more people the population has in a class than the data, the lower it is; the data does not "
     "tell how many these are."),
    ("marketer", "Marketer", "The share of the rows that somebody names rightly who matches "
     "everybody."),
)  # fmt: skip


def _risk(report: Report) -> Section:
    risk = report.risk
    known = [(name, meaning, float(share)) for key, name, meaning in _RISKS
             if (share := getattr(risk, key)) is not None]  # fmt: skip
    limit = nice_limit(share for _, _, share in known) or 1.0
    lead = "How likely somebody is to be picked out of the release"
    lead += ", by the columns that the job names." if report.columns.raw else "."
    if risk.rows_at_most_risk is not None:
        lead += f" {number(risk.rows_at_most_risk)} rows are at the highest risk."
    rows = [
        Row(
            name,
            percent(share),
            (stacked([(share / limit, "s0")]),),
            f"{name}: {percent(share)}. {meaning}",
        )
        for name, meaning, share in known
    ]
    return Section(
        "Risk of re-identification",
        lead,
        Bars(
            "; ".join(f"{name} {percent(share)}" for name, _, share in known),
            tuple(rows),
            ("0 %", percent(limit, 0)),
        ),
        Table(
            ("attacker", "risk", "what it means"),
            [(name, percent(share), meaning) for name, meaning, share in known],
            end=2,
        ),
    )


def _fragments(report: Report, with_conditions: bool) -> Section | None:
    if not report.fragments:
        return None
    columns = len(report.attributes) or 1
    lost = {each.id: each.NCP / (each.rows * columns or 1) for each in report.fragments}
    largest = sorted(report.fragments, key=lambda each: -each.rows)[:MAX_FRAGMENTS]
    how = "recoded alike" if report.recoding else "anonymized by itself"
    lead = (
        f"The rows were divided into these parts, each of which was {how}. Area: rows. Colour: "
        "information lost. Even areas mean that the work was shared evenly."
    )
    if len(report.fragments) > len(largest):
        lead += f" The {MAX_FRAGMENTS:,} largest of {len(report.fragments):,} are drawn."
    shown = report.fragments if with_conditions else largest
    where = [(each.where or "all rows",) if with_conditions else () for each in shown]
    return Section(
        "Fragments",
        lead,
        _map(report, largest, lost),
        Table(
            ("fragment", *(("rows where",) if with_conditions else ()), "rows", "classes",
             "information lost", "DP", "time"),
            [
                (f"fragment {each.id}", *condition, number(each.rows),
                 number(each.equivalence_classes), percent(lost[each.id]), number(each.DP),
                 _time(each) or "–")
                for each, condition in zip(shown, where, strict=True)
            ],
            2 if with_conditions else 1,
        ),
        wide=True,
    )  # fmt: skip


def _map(report: Report, largest: Sequence[Fragment], lost: Mapping[int, float]) -> Map:
    most = max(lost[each.id] for each in largest) or 1.0
    places = squarified([each.rows for each in largest], _MAP_RATIO)
    tiles = []
    for each, place in zip(largest, places, strict=True):
        loss, time = percent(lost[each.id]), _time(each)
        rows = f"{number(each.rows)} rows in {number(each.equivalence_classes)} classes"
        shade = 2 + min(max(int(5 * lost[each.id] / (most * (1 + 1e-9))), 0), 4)
        tiles.append(
            Tile(
                *place,
                f"q{shade}",
                tuple(filter(None, (f"#{each.id}", f"{size(each.rows)} rows", loss, time))),
                ", ".join(filter(None, (f"fragment {each.id}: {rows}", f"{loss} lost", time))),
            )
        )
    times = [each.seconds for each in largest if each.seconds is not None]
    taken = f", {seconds(min(times))} to {seconds(max(times))} each" if times else ""
    return Map(
        f"{number(len(report.fragments))} fragments of {number(largest[-1].rows)} to "
        f"{number(largest[0].rows)} rows{taken}",
        tuple(tiles),
    )


def _time(fragment: Fragment) -> str:
    return "" if fragment.seconds is None else seconds(fragment.seconds)
