"""The report as one HTML page: no script, no outside request, every text escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mondrian_ops.report import figures
from mondrian_ops.report.charts import Bar, Drawing, Part, nice_limit, text
from mondrian_ops.report.figures import number, percent
from mondrian_ops.report.markup import details as _details
from mondrian_ops.report.markup import document
from mondrian_ops.report.markup import figure as _figure
from mondrian_ops.report.markup import legend as _legend
from mondrian_ops.report.markup import section as _section
from mondrian_ops.report.markup import table as _table

MAX_FRAGMENT_BARS = 16

_OK = '<svg class="ok" viewBox="0 0 16 16" aria-hidden="true"><path class="stroke" d="M3 8.5l3.2 3.2L13 4.5"/></svg>'  # noqa: E501
_NO = '<svg class="no" viewBox="0 0 16 16" aria-hidden="true"><path class="stroke" d="M4 4l8 8M12 4l-8 8"/></svg>'  # noqa: E501

_TERMS = (
    ("Class", "All rows of the release that share the same values in every quasi-identifier."),
    ("Quasi-identifier", "A column that others may know about a person, such as age or postcode."),
    ("NCP", "Normalized certainty penalty: per value, the width of what is published over the "
            "width of the whole column; summed over rows and quasi-identifiers."),
    ("GCP", "NCP divided by rows and quasi-identifiers: 0 % nothing lost, 100 % all lost."),
    ("LM", "Iyengar's loss: like GCP, counted on the leaves of a hierarchy, a suppressed row "
           "counting as lost altogether."),
    ("DP", "Discernibility penalty: the sum of the squared class sizes; smaller is better."),
    ("C_avg", "Average class size divided by k; 1 is the best that can be reached."),
    ("Risk", "The chance of picking the right row for a person who is known to be in the data."),
)  # fmt: skip


def render_html(report: Mapping[str, Any]) -> str:
    """Return the page; what the report lacks (an older or a refused run) is left out."""
    report = figures.named(report)
    draw = Drawing()
    sections = (
        _banner(report),
        _guarantees(report, draw),
        _summary(report),
        _columns(report),
        _attributes(report, draw),
        _classes(report, draw),
        _fragments(report, draw),
        _making(report),
        _verification(report),
        _limits(report),
        _reference(report),
    )
    release = report["job"].get("output") or "in-memory table"
    return document(
        heading="Anonymization report",
        title=str(release),
        subtitle=(str(release), _when(report)),
        body="\n".join(section for section in sections if section),
        footer=f"Made by mondrian_ops {report.get('version', '')} from _report.json beside "
        "this page. It holds counts and conditions, and no person's values.",
    )


def passed(report: Mapping[str, Any]) -> bool:
    return bool(report.get("verification", {}).get("passed"))


def _when(report: Mapping[str, Any]) -> str:
    return str(report.get("created", "")).replace("T", " ").replace("+00:00", " UTC")


def _banner(report: Mapping[str, Any]) -> str:
    verification = report.get("verification", {})
    if passed(report):
        rows, job = report["rows"], report["job"]
        asked = ", ".join(f"{key} = {number(job[key])}" for key in ("k", "l", "t") if job.get(key))
        said = (
            f"{number(rows['published'])} of {number(rows['input'])} rows, in "
            f"{number(report['equivalence_classes'])} classes, with {asked}. "
            "Every requirement was checked again on the files as written, by a program path that "
            "shares no code with the one that made them."
        )
        title, look = "Published", "published"
        if figures.waits(report):
            title, look = "Waits for approval", "waiting"
        elif figures.denied(report):
            title, look = "Not approved: nothing was published", "refused"
        return _section(title, "", f"{_raw(report)}<p>{text(said)}</p>", f"banner {look}")
    reasons = "".join(f"<li>{text(failure)}</li>" for failure in verification.get("failures", ()))
    return _section(
        "Refused: nothing was published",
        "",
        f"{_raw(report)}<p>The result did not meet what was asked. The release that stood before, "
        f"if there was one, is untouched.</p><ul>{reasons}</ul>",
        "banner refused",
    )


def _raw(report: Mapping[str, Any]) -> str:
    said = figures.published_raw(report.get("columns", {}))
    return f'<p class="warn"><b>{text(said)}</b></p>' if said else ""


def _guarantees(report: Mapping[str, Any], draw: Drawing) -> str:
    bars, items, rows = [], [], []
    for found in figures.guarantees(report):
        asked, reached = number(found.asked), number(found.achieved)
        if found.achieved is not None:
            end = max(found.asked, found.achieved) * 1.15 or 1
            style = "good" if found.met else "bad"
            part = Part(found.achieved / end, style, f"asked {asked}, achieved {reached}")
            value = f"asked {asked} · achieved {reached}"
            bars.append(Bar(found.name, value, (part,), mark=found.asked / end))
        sign = {True: _OK, False: _NO, None: ""}[found.met]
        items.append(f"<li>{sign}<b>{text(found.name)}</b> {text(found.meaning)}</li>")
        verdict = {True: "met", False: "not met", None: "not measured"}[found.met]
        rows.append((found.name, asked, reached, verdict))
    caption = (
        "The bar is what the release reaches, measured on its weakest class; the line across it "
        "is what was asked. k and l must reach the line, t must stay left of it."
    )
    warning = figures.warning(report)
    warning = f'<p class="warn">{text(warning)}</p>' if warning else ""
    chart = draw.bars("Asked and achieved", "; ".join(f"{r[0]}: {r[3]}" for r in rows), bars)
    table = _details(
        "These figures as a table",
        _table(("requirement", "asked", "achieved", "verdict"), rows, right=(1, 2)),
    )
    return _section(
        "What is guaranteed",
        "",
        f'<div class="two">{_figure("Asked and achieved", caption, chart + table)}'
        f'<div><h3>What this asks for</h3><ul class="checks">{"".join(items)}</ul></div></div>'
        + warning,
    )


def _summary(report: Mapping[str, Any]) -> str:
    rows, metrics, risk = report["rows"], report["metrics"], report["risk"]
    classes = report["equivalence_classes"]
    mean = rows["published"] / classes if classes else 0
    suppressed = rows["suppressed"]
    share = suppressed / rows["input"] if rows["input"] else 0
    raw = figures.raw_columns(report.get("columns", {}))
    of_all = "over all rows, by the columns that the job names" if raw else "over all rows"
    picked = (
        "of being picked out by the columns that the job names" if raw else "of being picked out"
    )
    cards = (
        ("Rows published", number(rows["published"]), f"of {number(rows['input'])} read"),
        ("Rows suppressed", number(suppressed), f"{percent(share)} of the rows read"),
        ("Classes", number(classes), f"{number(mean, 1)} rows each on average"),
        ("Highest risk", percent(risk["prosecutor_max"]), f"{picked}, in any class"),
        ("Average risk", percent(risk["prosecutor_avg"]), of_all),
        ("Information lost", percent(metrics["GCP"]), f"GCP; NCP {number(metrics['NCP'], 1)}"),
        ("Loss (LM)", percent(metrics["LM"]), "with suppressed rows counted"),
        ("C_avg", number(metrics["C_avg"]), f"DP {number(metrics['DP'])}"),
    )
    drawn = "".join(
        f'<div><dt>{text(name)}</dt><dd>{text(value)}</dd><dd class="note">{text(note)}</dd></div>'
        for name, value, note in cards
    )
    return _section("In figures", "", f'<dl class="cards">{drawn}</dl>')


def _columns(report: Mapping[str, Any]) -> str:
    columns = report.get("columns")
    if not columns:
        return ""
    dropped = columns.get("identifier_policy", "drop") == "drop"
    unlisted = columns.get("unlisted", [])
    open_columns = unlisted if columns.get("unlisted_policy") == "publish" else []
    generalized = {name: a.get("generalization") for name, a in report["attributes"].items()}
    rows = [
        *((name, "direct identifier", "dropped" if dropped else "redacted")
          for name in columns.get("identifiers", [])),
        *((name, "quasi-identifier", f"generalized: {generalized.get(name) or 'by type'}")
          for name in columns.get("quasi_identifiers", [])),
        *((name, "sensitive", "published as it is") for name in columns.get("sensitive", [])),
        *((name, "not listed in the job",
           "published as it is" if open_columns else "dropped") for name in unlisted),
        *((name, "pandas index", "left out") for name in columns.get("index", [])),
    ]  # fmt: skip
    warning = ""
    if open_columns:
        names = ", ".join(open_columns)
        warning = (
            f'<p class="warn"><b>Check these:</b> {text(names)}. The job names them nowhere, so '
            "they are published unchanged. If one of them can be known about a person, it belongs "
            "among the quasi-identifiers; <code>unlisted: drop</code> leaves such columns out.</p>"
        )
    lead = "Every column of the source, what it was taken for, and what became of it."
    return _section("Columns", lead, _table(("column", "role", "treatment"), rows) + warning)


def _attributes(report: Mapping[str, Any], draw: Drawing) -> str:
    attributes = report["attributes"]
    published = report["rows"]["published"] or 1
    limit = nice_limit([a["NCP"] for a in attributes.values()])
    loss = [
        Bar(name, percent(a["NCP"]), (Part(a["NCP"] / (limit or 1), "main", percent(a["NCP"])),))
        for name, a in attributes.items()
    ]
    left_chart = draw.bars(
        "Information lost per quasi-identifier",
        "; ".join(f"{name} {percent(a['NCP'])}" for name, a in attributes.items()),
        loss,
        axis=("0 %", percent(limit, 0)),
    )
    right_chart, rows = "", []
    if all("rows_exact" in a for a in attributes.values()):
        shares = {name: _shares(a, published) for name, a in attributes.items()}
        seen = [_shares_bar(name, *share) for name, share in shares.items()]
        right_chart = _figure(
            "What a reader still sees",
            "Share of the rows in which the value is exact, replaced by a range or a group, or "
            "hidden altogether (*).",
            draw.bars(
                "Exact, generalized and hidden values per quasi-identifier",
                "; ".join(f"{bar.label}: {bar.value}{bar.more}" for bar in seen),
                seen,
            ),
            _legend((("main", "exact"), ("mid", "generalized"), ("rest", "hidden (*)"))),
        )
        rows = [
            (name, str(a.get("generalization") or ""), percent(a["NCP"]), percent(a["LM"]),
             *(percent(share) for share in shares[name]))
            for name, a in attributes.items()
        ]  # fmt: skip
    else:
        rows = [(name, str(a.get("generalization") or ""), percent(a["NCP"]),
                 percent(a.get("LM", 0))) for name, a in attributes.items()]  # fmt: skip
    head = ("column", "generalization", "NCP", "LM", "exact", "generalized", "hidden")
    table = _table(head[: len(rows[0])] if rows else head, rows, right=range(2, 7))
    left = _figure(
        "Information lost",
        "How wide the published values are beside the whole column, on average: 0 % is every "
        "value exact, 100 % is nothing left.",
        left_chart,
    )
    levels = report.get("levels")
    said = ""
    if levels:
        said = "Generalization levels: " + ", ".join(f"{n} {v}" for n, v in levels.items()) + "."
    return _section(
        "Quasi-identifiers",
        text(said),
        f'<div class="two">{left}{right_chart}</div>' + _details("These figures as a table", table),
    )


def _shares(attribute: Mapping[str, Any], rows: int) -> tuple[float, float, float]:
    exact, star = attribute["rows_exact"] / rows, attribute["rows_star"] / rows
    return exact, max(1 - exact - star, 0.0), star


def _shares_bar(name: str, exact: float, general: float, star: float) -> Bar:
    parts = (
        Part(exact, "main", f"{percent(exact)} exact"),
        Part(general, "mid", f"{percent(general)} generalized"),
        Part(star, "rest", f"{percent(star)} hidden"),
    )
    value, more = f"{percent(exact, 0)} exact", f" · {percent(star, 0)} hidden"
    return Bar(name, value, parts, more=more)


def _classes(report: Mapping[str, Any], draw: Drawing) -> str:
    sizes = report.get("class_sizes")
    if not sizes:
        return ""
    k = int(report["job"]["k"])
    found = figures.bins(sizes, k)
    total = sum(b.classes for b in found)
    small = sum(b.classes for b in found if b.low < k)
    smallest, largest = sizes[0][0], sizes[-1][0]
    caption = (
        f"People in one class cannot be told apart by their quasi-identifiers. The smallest of "
        f"{total:,} classes has {smallest:,} rows, the largest {largest:,}. "
        + (f"{small:,} classes are smaller than k = {k}: red." if small else f"None is below {k}.")
    )
    rows = [(b.label, f"{b.classes:,}", percent(b.classes / total), f"{b.rows:,}") for b in found]
    chart = draw.histogram("Classes by size", "; ".join(f"{r[0]} rows: {r[1]}" for r in rows),
                           found, k)  # fmt: skip
    table = _table(("rows in a class", "classes", "share", "rows"), rows, right=(1, 2, 3))
    return _section(
        "Class sizes",
        "",
        _figure("How many classes have how many rows", caption, chart)
        + _details("These figures as a table", table),
    )


def _fragments(report: Mapping[str, Any], draw: Drawing) -> str:
    fragments = report.get("fragments") or []
    if not fragments:
        return ""
    columns = len(report["attributes"]) or 1
    loss = {f["id"]: f["NCP"] / (f["rows"] * columns or 1) for f in fragments}
    shown = fragments
    note = ""
    if len(fragments) > MAX_FRAGMENT_BARS:
        shown = sorted(fragments, key=lambda f: (-f["rows"], f["id"]))[:MAX_FRAGMENT_BARS]
        note = f" The {MAX_FRAGMENT_BARS} largest of {len(fragments):,} are drawn."
    most = max(f["rows"] for f in shown) or 1
    limit = nice_limit([loss[f["id"]] for f in shown]) or 1
    sizes = [
        Bar(f"fragment {f['id']}", f"{f['rows']:,} rows",
            (Part(f["rows"] / most, "main", f"{f['rows']:,} rows"),))
        for f in shown
    ]  # fmt: skip
    losses = [
        Bar(f"fragment {f['id']}", percent(loss[f["id"]]),
            (Part(loss[f["id"]] / limit, "warm", percent(loss[f["id"]])),))
        for f in shown
    ]  # fmt: skip
    rows = [
        (str(f["id"]), f.get("where") or "all rows", f"{f['rows']:,}",
         f"{f['equivalence_classes']:,}", percent(loss[f["id"]]), number(f["DP"]),
         figures.seconds(f["seconds"]) if "seconds" in f else "")
        for f in fragments
    ]  # fmt: skip
    left = _figure(
        "Rows", "Even bars mean that the work was shared evenly." + note,
        draw.bars("Rows per fragment", f"From {min(f['rows'] for f in fragments):,} to "
                  f"{max(f['rows'] for f in fragments):,} rows", sizes),
    )  # fmt: skip
    right = _figure(
        "Information lost",
        "Uneven bars mean that some parts of the data are sparser than others.",
        draw.bars("Information lost per fragment",
                  f"From {percent(min(loss.values()))} to {percent(max(loss.values()))}",
                  losses, axis=("0 %", percent(limit, 0))),
    )  # fmt: skip
    head = ("fragment", "rows where", "rows", "classes", "lost", "DP", "time")
    how = "recoded alike" if report.get("recoding") else "anonymized on its own"
    return _section(
        "Fragments",
        f"The data was split by these conditions, and each part was {how}.",
        f'<div class="two">{left}{right}</div>'
        + _details("All fragments and their conditions", _table(head, rows, right=range(2, 7))),
    )


def _making(report: Mapping[str, Any]) -> str:
    job, cut = report["job"], report.get("cut", {})
    parts, retrieval = report.get("partitioning", {}), report.get("retrieval", {})
    rows = [("Source", str(report.get("input") or "in-memory table"))]
    if "made_by" in report:
        rows.append(("Made by", figures.maker(report["made_by"])))
    if report.get("replaces"):
        rows.append(("Replaces", figures.replaced(report)))
    rows.append(("Algorithm", str(job.get("algorithm", "mondrian"))))
    if cut:
        rows.append(("Choice of cuts", figures.used(cut)))
    if report.get("recoding"):
        rows.append(("Recoding", report["recoding"]["summary"]))
    if parts:
        said = figures.divided(parts)
        said += f"; decided on a sample of {number(parts.get('sample_rows'))}"
        said += " rows"
        if parts.get("merged"):
            said += f"; {parts['merged']} merged because they could not stand alone"
        rows.append(("Partitioning", "; ".join(filter(None, (said, parts.get("note"))))))
    if retrieval:
        rows.append(("Retrieval", figures.used(retrieval)))
    if report.get("approval"):
        rows.append(("Approval", figures.approval(report)))
    for phase, taken in report.get("timings_s", {}).items():
        rows.append((f"Time, {phase.replace('_', ' ')}", figures.seconds(taken)))
    return _section("How it was made", "", _table((), rows))


def _verification(report: Mapping[str, Any]) -> str:
    verification = report.get("verification")
    if not verification:
        return ""
    failed = list(verification.get("failures", ()))
    checked = "".join(f"<li>{text(item)}</li>" for item in verification.get("checked", ()))
    wrong = "".join(f"<li>{_NO}{text(item)}</li>" for item in failed)
    notes = "".join(f"<li>{text(item)}</li>" for item in report.get("notes", ()))
    body = f"<h3>Checked</h3><ul>{checked}</ul>" if checked else ""
    body += f'<h3>Failed</h3><ul class="checks">{wrong}</ul>' if wrong else ""
    body += f"<h3>Notes of the run</h3><ul>{notes}</ul>" if notes else ""
    read = (
        f"{number(verification['files'])} files were"
        if verification.get("files")
        else "The release was"
    )
    lead = f"{read} read back, and every class was counted again over the whole release."
    return _section("Verification", lead, body)


def _limits(report: Mapping[str, Any]) -> str:
    said = report.get("limits")
    return (
        _section("What this does not protect against", "", f"<p>{text(said)}</p>") if said else ""
    )


def _reference(report: Mapping[str, Any]) -> str:
    terms = "".join(f"<dt>{text(term)}</dt><dd>{text(said)}</dd>" for term, said in _TERMS)
    job = json.dumps(report["job"], indent=2, ensure_ascii=False)
    # Each line on its own: `text` shows a line break as a control character.
    lines = "\n".join(text(line) for line in job.split("\n"))
    return _section(
        "Reference",
        "",
        _details("What the words mean", f'<dl class="terms">{terms}</dl>')
        + _details("The job, as run", f"<pre>{lines}</pre>"),
    )
