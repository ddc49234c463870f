"""The report for a terminal or a task log: lines that need neither colour nor a wide screen."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mondrian_ops.report import number_format, outcome, statements, use
from mondrian_ops.report.document import Metrics, Report
from mondrian_ops.report.number_format import number, percent, printable
from mondrian_ops.report.sensitive import gains, narrow_classes

MAX_FRAGMENTS = 16
MAX_ATTRIBUTES = 40
Paint = Callable[[str, str], str]
_BLOCKS = " ▏▎▍▌▋▊▉█"
_COLOURS = {"good": "\x1b[1;32m", "bad": "\x1b[1;31m", "head": "\x1b[1m", "soft": "\x1b[2m"}


def render_text(report: Report | Mapping[str, Any], width: int = 80, colour: bool = False) -> str:
    """The report as lines of at most `width` characters (60 to 120). Raises ReportError."""
    report = Report.of(report).named()
    width = min(max(width, 60), 120)

    def paint(style: str, text: str) -> str:
        return f"{_COLOURS[style]}{text}\x1b[0m" if colour else text

    blocks: tuple[list[str], ...] = (
        _head(report, width, paint),
        _first(report, width, paint),
        _guarantees(report, paint),
        _figures(report, width),
        _attributes(report, width, paint),
        _classes(report, width, paint),
        _fragments(report, width, paint),
        _rest(report, width, paint),
    )
    if not report.is_measured:
        blocks = blocks[:1]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(report: Report, width: int, paint: Paint) -> list[str]:
    title, _, rest = statements.headline(report).partition(": ")
    style = {outcome.PUBLISHED: "good", outcome.WAITING: "head", outcome.HELD: "head"}
    output = printable(report.job.output or "in-memory table")
    if not rest:
        rest = _short(output, width - len(title) - 2)
        output = ""
    facts = [("Dataset", output), *statements.facts(report)]
    return [
        paint(style.get(report.state, "bad"), title.upper()) + "  " + rest,
        *_hanging([(name.lower(), printable(text)) for name, text in facts], 18, width),
    ]


def _first(report: Report, width: int, paint: Paint) -> list[str]:
    texts = map(printable, statements.first(report))
    return [paint("bad", line) for text in texts for line in textwrap.wrap(text, width)]


def _guarantees(report: Report, paint: Paint) -> list[str]:
    lines = [paint("head", f"{'':<26}{'required':>10}{'achieved':>12}")]
    verdicts = {True: paint("good", "met"), False: paint("bad", "NOT MET"), None: "not measured"}
    for each in statements.guarantees(report):
        lines.append(
            f"{each.name:<26}{number(each.required):>10}{number(each.achieved):>12}  "
            f"{verdicts[each.met]}"
        )
    return lines


def _figures(report: Report, width: int) -> list[str]:
    rows, metrics, risk = report.rows, report.metrics, report.risk
    classes = report.equivalence_classes
    mean = rows.in_classes / classes if classes else 0
    covered = ", by the columns that the job names" if report.columns.raw else ""
    pairs = (
        ("rows", statements.rows_read(report)),
        ("classes", f"{number(classes)}, {number(mean, 1)} rows on average"),
        ("risk", f"at most {percent(risk.prosecutor_max)}, on average "
                 f"{percent(risk.prosecutor_avg)}{covered}"),
        ("information lost", f"GCP {percent(metrics.GCP)}, LM {percent(metrics.LM)}, "
                             f"NCP {number(metrics.NCP, 1)}{_by_robust_spans(metrics)}"),
        ("class size", f"DP {number(metrics.DP)}, C_avg {number(metrics.C_avg)}"),
        *_sensitive(report),
        *_use(report),
        ("time", ", ".join(f"{phase.replace('_', ' ')} {number_format.seconds(taken)}"
                           for phase, taken in report.timings_s.items())),
    )  # fmt: skip
    return _hanging(pairs, 18, width)


def _by_robust_spans(metrics: Metrics) -> str:
    """The losses that extreme values and numerous values do not make small."""
    if metrics.GCP_robust is None or metrics.information_lost is None:
        return ""
    return (
        f", robust GCP {percent(metrics.GCP_robust)}, bits lost {percent(metrics.information_lost)}"
    )


def _sensitive(report: Report) -> list[tuple[str, str]]:
    similar = [
        (f"similar {name}", f"{share} {note}") for name, share, note in narrow_classes(report)
    ]
    gained = [(f"gain, {name}", f"{gain}: {note}") for name, gain, note in gains(report)]
    return [(_short(printable(name), 16), text) for name, text in (*similar, *gained)]


def _use(report: Report) -> list[tuple[str, str]]:
    figures = [(name.lower(), f"{value}: {note}") for name, value, note in use.figures(report.use)]
    return [(_short(printable(name), 16), printable(text)) for name, text in figures]


def _attributes(report: Report, width: int, paint: Paint) -> list[str]:
    attributes = list(report.attributes.items())
    rows = report.rows.in_classes or 1
    wide = min(max((len(printable(name)) for name, _ in attributes), default=0), 24)
    wide = max(wide, len("quasi-identifier"))
    most = max((a.NCP for _, a in attributes), default=0) or 1
    head = f"{'quasi-identifier':<{wide}}  {'kind':<9} {'lost':>7} {'exact':>7}"
    lines = [paint("head", head)]
    for name, a in attributes[:MAX_ATTRIBUTES]:
        exact = "–" if a.rows_exact is None else percent(a.rows_exact / rows)
        lines.append(
            f"{_short(printable(name), wide):<{wide}}  "
            f"{a.generalization or '':<9.9} {percent(a.NCP):>7} {exact:>7}  "
            f"{_bar(a.NCP / most, width - wide - 30)}".rstrip()
        )
    return _more(lines, len(attributes) - MAX_ATTRIBUTES)


def _classes(report: Report, width: int, paint: Paint) -> list[str]:
    if not report.class_sizes:
        return []
    bins = number_format.bins(report.class_sizes, report.job.k)
    most = max(b.classes for b in bins) or 1
    lines = [paint("head", f"{'rows in a class':<16}  {'classes':>11}")]
    for b in filter(lambda b: b.classes, bins):
        bar = _bar(b.classes / most, width - 32)
        lines.append(f"{b.label:<16}  {b.classes:>11,}  {bar}".rstrip())
    return lines


def _fragments(report: Report, width: int, paint: Paint) -> list[str]:
    fragments = report.fragments
    columns = len(report.attributes) or 1
    lines = [paint("head", f"{'fragment':>8} {'rows':>12} {'classes':>10} {'lost':>7}  where")]
    for f in fragments[:MAX_FRAGMENTS]:
        lost = percent(f.NCP / (f.rows * columns or 1))
        where = _short(printable(f.where or "all rows"), width - 42)
        lines.append(f"{f.id:>8} {f.rows:>12,} {f.equivalence_classes:>10,} {lost:>7}  {where}")
    return _more(lines, len(fragments) - MAX_FRAGMENTS)


def _rest(report: Report, width: int, paint: Paint) -> list[str]:
    cut, parts, columns = report.cut, report.partitioning, report.columns
    kept = "published unchanged" if statements.is_published(report) else "would be published"
    policy = kept if columns.raw else "dropped"
    facts = (
        ("warning", statements.warning(report)),
        ("read as", statements.source(report)),
        ("algorithm", report.job.algorithm),
        ("cut", ": ".join(filter(None, (cut.used, cut.reason))) if cut else ""),
        ("recoding", report.recoding.summary if report.recoding else ""),
        ("partitioning", parts.note if parts else ""),
        ("not in the job", f"{', '.join(columns.unlisted)}: {policy}" if columns.unlisted else ""),
        ("pandas index", f"{', '.join(columns.index)}: left out" if columns.index else ""),
        *(("note", note) for note in report.notes),
        ("policies", ", ".join(report.policies)),
        ("limits", report.limits),
    )
    texts = [(name, printable(text)) for name, text in facts if text]
    return [paint("soft", line) for line in _hanging(texts, 16, width)]


def _bar(share: float, width: int) -> str:
    eighths = round(max(min(share, 1.0), 0.0) * width * 8)
    eighths = max(eighths, 1 if share > 0 else 0)
    whole, part = divmod(eighths, 8)
    return "█" * whole + (_BLOCKS[part] if part else "")


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 1)] + "…"


def _hanging(facts: Iterable[tuple[str, str]], indent: int, width: int) -> list[str]:
    """Wrapped lines of each name and its text; a name without a text is left out."""
    lines: list[str] = []
    for name, text in facts:
        lines += textwrap.wrap(text, width, initial_indent=f"{name:<{indent}}",
                               subsequent_indent=" " * indent)  # fmt: skip
    return lines


def _more(lines: Sequence[str], left: int) -> list[str]:
    return [*lines, f"… and {left:,} more"] if left > 0 else list(lines)
