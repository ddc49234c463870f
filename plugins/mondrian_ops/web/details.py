"""One release in figures, charts and tables, from its report; nothing of it is markup.

A report is data that somebody else wrote: whoever builds a page of one has to expect that it lacks
a part, or is no report at all (:data:`DAMAGE`). The conditions of the fragments are left out: they
may name values of the data, if common ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mondrian_ops.report import figures
from mondrian_ops.report.figures import number, percent, seconds
from mondrian_ops.web.releases import Release

__all__ = ["DAMAGE", "Chart", "Section", "cards", "columns", "frontier", "making", "sections"]

Report = Mapping[str, Any]

Chart = dict[str, Any]
"""What :file:`static/charts.js` draws: ``kind``, ``label`` (its text alternative) and figures."""

Section = dict[str, Any]
"""A chart and its figures as a table: ``title, lead, chart, head, rows``."""

DAMAGE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What a report raises here that is not one."""

MAX_FRAGMENTS = 1000


def cards(report: Report) -> list[tuple[str, str, str]]:
    """The figures to see first: name, value, note."""
    rows, metrics, risk = report["rows"], report["metrics"], report["risk"]
    classes, suppressed = report["equivalence_classes"], report["rows"]["suppressed"]
    mean = rows["published"] / classes if classes else 0
    share = suppressed / rows["input"] if rows["input"] else 0
    return [
        ("Rows published", number(rows["published"]), f"of {number(rows['input'])} read"),
        ("Rows suppressed", number(suppressed), percent(share)),
        ("Classes", number(classes), f"{number(mean, 1)} rows each on average"),
        ("Information lost (GCP)", percent(metrics["GCP"]), f"NCP {number(metrics['NCP'], 1)}"),
        ("Loss (LM)", percent(metrics["LM"]), "with suppressed rows counted"),
        ("Discernibility (DP)", number(metrics["DP"]), f"C_avg {number(metrics['C_avg'])}"),
        ("Highest risk", percent(risk["prosecutor_max"]),
         f"{percent(risk['prosecutor_avg'])} on average"),
        ("Time", seconds(sum(report["timings_s"].values())), "all phases"),
    ]  # fmt: skip


def sections(report: Report) -> list[Section]:
    """The charts of a release, those first that say most."""
    found = (_classes, _loss, _widths, _risk, _fragments)
    return [section for build in found if (section := build(report))]


def guarantees(report: Report) -> list[tuple[str, str, str, bool | None, str]]:
    """k, l and t: name, asked, achieved, whether it is met, what it means."""
    return [
        (each.name, number(each.asked), number(each.achieved), each.met, each.meaning)
        for each in figures.guarantees(report)
    ]


def _classes(report: Report) -> Section | None:
    if not report.get("class_sizes"):
        return None
    k = int(report["job"]["k"])
    bins = figures.bins(report["class_sizes"], k)
    total = sum(each.classes for each in bins)
    small = sum(each.classes for each in bins if each.low < k)
    lead = "People in one class cannot be told apart by their quasi-identifiers. "
    lead += (
        f"{number(small)} classes are smaller than k = {k}." if small else f"None is below k = {k}."
    )
    return {
        "title": "Class sizes",
        "lead": lead,
        "chart": {
            "kind": "bars",
            "label": f"{number(total)} classes by how many rows they have",
            "axis": "rows in a class",
            "labels": [each.label for each in bins],
            "series": [{"name": "classes", "values": [each.classes for each in bins]}],
            "bad": [at for at, each in enumerate(bins) if each.low < k],
        },
        "head": ("rows in a class", "classes", "share", "rows"),
        "rows": [
            (each.label, number(each.classes), percent(each.classes / total), number(each.rows))
            for each in bins
        ],
    }


def _loss(report: Report) -> Section | None:
    attributes = report["attributes"]
    if not attributes:
        return None
    names, losses = list(attributes), [float(each["NCP"]) for each in attributes.values()]
    return {
        "title": "Information lost per quasi-identifier",
        "lead": "How wide the published values are beside the whole column, on average: 0 % is "
        "every value exact, 100 % is nothing left.",
        "chart": {
            "kind": "across",
            "label": "; ".join(
                f"{name} {percent(loss)}" for name, loss in zip(names, losses, strict=True)
            ),
            "percent": True,
            "labels": names,
            "series": [{"name": "information lost", "values": losses}],
        },
        "head": ("column", "generalization", "NCP", "LM"),
        "rows": [
            (name, _generalization(report, name), percent(each["NCP"]), percent(each["LM"]))
            for name, each in attributes.items()
        ],
    }


def _generalization(report: Report, name: str) -> str:
    how = str(report["attributes"][name].get("generalization") or "")
    level = report.get("levels", {}).get(name)
    return how if level is None else f"{how}, level {level}"


def _widths(report: Report) -> Section | None:
    """How each column was generalized: rows by how much of the column's range is published."""
    attributes = report["attributes"]
    if not attributes or not all("rows_by_loss" in each for each in attributes.values()):
        return None
    counts = {name: _counts(each) for name, each in attributes.items()}
    steps = list(next(iter(counts.values())))
    published = report["rows"]["published"] or 1
    return {
        "title": "How each column was generalized",
        "lead": "Rows by how wide their published value is beside the whole column: exact, up to "
        "2 % of it, and so on, or hidden altogether (*).",
        "chart": {
            "kind": "stacked",
            "label": "; ".join(
                f"{name}: {percent(each['exact'] / published)} of the rows exact, "
                f"{percent(each['hidden (*)'] / published)} hidden"
                for name, each in counts.items()
            ),
            "percent": True,
            "labels": list(counts),
            "series": [
                {"name": step, "values": [each[step] / published for each in counts.values()]}
                for step in steps
            ],
        },
        "head": ("column", "generalization", *steps),
        "rows": [
            (name, _generalization(report, name), *(number(each[step]) for step in steps))
            for name, each in counts.items()
        ],
    }


def _counts(attribute: Mapping[str, Any]) -> dict[str, int]:
    widths = {f"up to {100 * most:.0f} %": rows for most, rows in attribute["rows_by_loss"]}
    return {"exact": attribute["rows_exact"], **widths, "hidden (*)": attribute["rows_star"]}


_RISKS = (
    ("prosecutor_max", "Prosecutor, highest", "The chance of picking the right row for a person "
     "who is known to be in the data, in the smallest class."),
    ("prosecutor_avg", "Prosecutor, average", "The same over all rows."),
    ("journalist_max", "Journalist, at most", "For a person who may be in the data or not. It is "
     "lower by as much as the population's classes are larger, which the data does not tell."),
    ("marketer", "Marketer", "The share of the rows that would be named rightly by whoever "
     "matched everybody."),
)  # fmt: skip


def _risk(report: Report) -> Section:
    risk = report["risk"]
    known = [(name, said, float(risk[key])) for key, name, said in _RISKS if key in risk]
    lead = "How likely somebody is to be picked out of the release."
    if "rows_at_most_risk" in risk:
        lead += f" {number(risk['rows_at_most_risk'])} rows are at the highest risk."
    return {
        "title": "Risk of re-identification",
        "lead": lead,
        "chart": {
            "kind": "across",
            "label": "; ".join(f"{name} {percent(share)}" for name, _, share in known),
            "percent": True,
            "labels": [name for name, _, _ in known],
            "series": [{"name": "risk", "values": [share for _, _, share in known]}],
        },
        "head": ("attacker", "risk", "what it means"),
        "rows": [(name, percent(share), said) for name, said, share in known],
    }


def _fragments(report: Report) -> Section | None:
    fragments = report.get("fragments") or []
    if not fragments:
        return None
    columns = len(report["attributes"]) or 1
    largest = sorted(fragments, key=lambda each: -each["rows"])[:MAX_FRAGMENTS]
    told = [
        {
            "name": f"fragment {each['id']}",
            "rows": each["rows"],
            "loss": each["NCP"] / (each["rows"] * columns or 1),
            "seconds": each.get("seconds"),
            "classes": each["equivalence_classes"],
        }
        for each in largest
    ]
    lead = "Area: rows. Colour: information lost. Even areas mean that the work was shared evenly."
    if len(fragments) > len(told):
        lead += f" The {MAX_FRAGMENTS} largest of {number(len(fragments))} are shown."
    times = [each["seconds"] for each in told if each["seconds"] is not None]
    rows = [each["rows"] for each in told]
    return {
        "title": "Fragments",
        "lead": lead,
        "chart": {
            "kind": "map",
            "label": f"{number(len(fragments))} fragments of {number(min(rows))} to "
            f"{number(max(rows))} rows"
            + (f", {seconds(min(times))} to {seconds(max(times))} each" if times else ""),
            "items": told,
        },
        "head": ("fragment", "rows", "classes", "information lost", "time"),
        "rows": [
            (
                each["name"],
                number(each["rows"]),
                number(each["classes"]),
                percent(each["loss"]),
                "–" if each["seconds"] is None else seconds(each["seconds"]),
            )
            for each in told
        ],
    }


def columns(report: Report) -> list[tuple[str, str, str, bool]]:
    """Every column of the source: name, role, what became of it, and whether to look twice."""
    told = report.get("columns") or {}
    dropped = told.get("identifier_policy", "drop") == "drop"
    is_open = told.get("unlisted_policy") == "publish"
    return [
        *((name, "direct identifier", "dropped" if dropped else "redacted", False)
          for name in told.get("identifiers", ())),
        *((name, "quasi-identifier", f"generalized: {_generalization(report, name)}", False)
          for name in told.get("quasi_identifiers", ())),
        *((name, "sensitive", "published as it is", False) for name in told.get("sensitive", ())),
        *((name, "named nowhere in the job",
           "published untouched" if is_open else "dropped", is_open)
          for name in told.get("unlisted", ())),
        *((name, "pandas index", "left out", False) for name in told.get("index", ())),
    ]  # fmt: skip


def making(report: Report) -> list[tuple[str, str]]:
    """How the release was made, and what was decided about it."""
    job, parts = report["job"], report.get("partitioning") or {}
    found = [("Source", str(report.get("input") or "")), ("Algorithm", str(job.get("algorithm")))]
    for name, key in (("Choice of cuts", "cut"), ("Retrieval", "retrieval")):
        if report.get(key):
            found.append((name, figures.used(report[key])))
    if report.get("recoding"):
        found.append(("Recoding", str(report["recoding"].get("summary", ""))))
    if parts:
        found.append(("Partitioning", figures.divided(parts)))
    for phase, taken in report["timings_s"].items():
        found.append((f"Time, {phase.replace('_', ' ')}", seconds(taken)))
    if report.get("approval"):
        found.append(("Approval", figures.approval(report)))
    return found


def frontier(told: Mapping[str, Any], at: Mapping[str, Release]) -> Section | None:
    """Loss against k for each l, as it was measured, and where releases lie, by name."""
    points = [point for point in told["points"] if "reason" not in point]
    if not points:
        return None
    asked = sorted({point["l"] or 1 for point in points})
    names = {l: "no l" if l == 1 else f"l = {number(l)}" for l in asked}  # noqa: E741
    return {
        "title": "Frontier: loss against k",
        "lead": "What other values of k and l would have cost, as measured on this input.",
        "chart": {
            "kind": "lines",
            "label": "; ".join(
                f"k = {point['k']}, {names[point['l'] or 1]}: {percent(point['GCP'])} lost"
                for point in points
            ),
            "series": [
                {
                    "name": names[l],
                    "points": [[p["k"], p["GCP"]] for p in points if (p["l"] or 1) == l],
                }
                for l in asked  # noqa: E741
            ],
            "at": [
                {"name": name, "point": [release.k, release.GCP]}
                for name, release in at.items()
                if release.k is not None and release.GCP is not None
            ],
        },
        "head": ("k", "l", "information lost (GCP)", "average risk"),
        "rows": [
            (number(p["k"]), names[p["l"] or 1], percent(p["GCP"]), percent(p["risk_avg"]))
            for p in points
        ],
    }
