"""How numbers and names are written, and how many classes make one bar. No markup here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

MAX_BARS = 16
MAX_NAMES = 20
NAMELESS = "''"
_NARROW = 24
_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Bin:
    """Classes of `low` to `high` rows; `high` is None for "and more"."""

    low: int
    high: int | None
    classes: int
    rows: int

    @property
    def label(self) -> str:
        if self.high is None:
            return f"{self.low:,} or more"
        if self.high == self.low:
            return f"{self.low:,}"
        return f"{self.low:,}–{self.high:,}"


@dataclass(frozen=True)
class Guarantee:
    """One requirement beside what the release reaches; `met` is None where it cannot be said."""

    name: str
    asked: float
    achieved: float | None
    met: bool | None
    meaning: str


def bins(class_sizes: Sequence[Sequence[int]], k: int) -> list[Bin]:
    """Group (size, classes) pairs into at most about MAX_BARS bars; sizes below k stay apart.

    One bar per size where sizes are few; else equal widths up to the 99th percentile of the
    classes; else, when sizes span orders of magnitude, each bar twice as wide as the one before.
    """
    pairs = sorted((int(size), int(classes)) for size, classes in class_sizes if classes)
    small = [pair for pair in pairs if pair[0] < k]
    large = [pair for pair in pairs if pair[0] >= k]
    found = [_bin(small[0][0], k - 1, small)] if small else []
    if not large:
        return found
    first, last = large[0][0], large[-1][0]
    if last - first < _NARROW:
        steps = [(size, size) for size in range(first, last + 1)]
        return found + [_bin(low, high, large) for low, high in steps]
    edges = _edges(first, _percentile(large, 0.99))
    found += [_bin(low, high - 1, large) for low, high in pairwise(edges)]
    if last >= edges[-1]:
        found.append(_bin(edges[-1], None, large))
    return found


def _edges(first: int, most: int) -> list[int]:
    if most >= 16 * first:
        edges = [first]
        while edges[-1] <= most and len(edges) < MAX_BARS:
            edges.append(edges[-1] * 2)
        return edges
    width, step = 1, 0
    while (most - first) // width >= MAX_BARS:
        step += 1
        width = _STEPS[step % 3] * 10 ** (step // 3)
    return list(range(first, most + width + 1, width))


def _percentile(pairs: Sequence[tuple[int, int]], share: float) -> int:
    wanted = share * sum(classes for _, classes in pairs)
    seen = 0
    for size, classes in pairs:
        seen += classes
        if seen >= wanted:
            return size
    return pairs[-1][0]


def _bin(low: int, high: int | None, pairs: Sequence[tuple[int, int]]) -> Bin:
    inside = [(s, n) for s, n in pairs if s >= low and (high is None or s <= high)]
    return Bin(low, high, sum(n for _, n in inside), sum(s * n for s, n in inside))


def guarantees(report: Mapping[str, Any]) -> list[Guarantee]:
    """k, l and t: asked beside achieved, with what each means in a sentence."""
    job, achieved = report["job"], report["achieved"]
    sensitive = ", ".join(report.get("columns", {}).get("sensitive", ())) or "the sensitive value"
    found = [
        _guarantee(
            "k-anonymity", "k", job, achieved,
            "Everybody looks the same as at least {less} others in every quasi-identifier."
            + (" Persons are counted, not rows." if job.get("entity_id") else ""),
        )
    ]  # fmt: skip
    if job.get("l") is not None:
        kinds = {
            "distinct": "Each class holds at least {asked} different values of " + sensitive + ".",
            "entropy": "The values of " + sensitive + " in each class are as uncertain as {asked} "
            "equally frequent ones.",
            "recursive": "In each class no single value of " + sensitive + " outweighs the values "
            "from the {asked}. most frequent on.",
        }
        diversity = str(job.get("diversity", "distinct"))
        name = "l-diversity" if diversity == "distinct" else f"l-diversity ({diversity})"
        sentence = kinds.get(diversity, "")
        if job.get("missing_sensitive") == "value":
            sentence += " A missing one counts as a value."
        found.append(_guarantee(name, "l", job, achieved, sentence))
    if job.get("t") is not None:
        found.append(
            _guarantee(
                "t-closeness", "t", job, achieved,
                "The distribution of " + sensitive + " in each class is within {asked} of the "
                "distribution over the whole release.",
            )
        )  # fmt: skip
    return found


def warning(report: Mapping[str, Any]) -> str:
    """What to mind about diversity that was not asked for; empty when there is nothing to."""
    reached = weakest(report["achieved"].get("l"), min)
    if report["job"].get("l") is not None or reached is None or reached >= 2:
        return ""
    sensitive = ", ".join(report.get("columns", {}).get("sensitive", ()))
    return (
        "l-diversity was not asked for, and in at least one class all rows that have a value of "
        f"{sensitive} have the same: whoever is known to be in that class is known to have it. Set "
        "l to prevent this."
    )


def raw_columns(columns: Mapping[str, Any]) -> list[str]:
    """The columns that went out raw though the job does not name them, of a report's columns."""
    return list(columns.get("unlisted", ())) if columns.get("unlisted_policy") == "publish" else []


def published_raw(columns: Mapping[str, Any]) -> str:
    """The first lines of a report with such columns; empty where there are none."""
    raw = raw_columns(columns)
    if not raw:
        return ""
    named = ", ".join(raw[:MAX_NAMES])
    if len(raw) > MAX_NAMES:
        named += f" and {len(raw) - MAX_NAMES:,} more"
    count = "1 column goes" if len(raw) == 1 else f"{len(raw):,} columns go"
    return (
        f"{count} out raw, as unlisted: publish asks: {named}. k, l, t and the risks in this "
        "report cover the columns that the job names, and not these: who knows a person's value in "
        "one of them may find that person's row by it."
    )


def maker(made_by: object) -> str:
    """Who made a release: a DAG, ``DAG_ID`` or ``DAG_ID/GROUP``, or None."""
    if made_by is None:
        return "the command line or Python"
    dag_id, _, group = str(made_by).partition("/")
    return f"the DAG {dag_id!r}" + (f" (group {group!r})" if group else "")


def promise(asked: Mapping[str, Any]) -> str:
    """What a job, or a report, says of k, l and t, in short; t only where there is one."""
    said = [f"{key} = {value:g}" if _is_number(value := asked.get(key)) else f"no {key}"
            for key in ("k", "l", "t")]  # fmt: skip
    return ", ".join(said if asked.get("t") is not None else said[:2])


def replaced(report: Mapping[str, Any]) -> str:
    """Which release the one of this report replaces; empty where there was none to replace."""
    told = report.get("replaces")
    if not told:
        return ""
    whose = f" of {maker(told['made_by'])}" if "made_by" in told else ""
    made = str(told.get("created", "")).replace("T", " ").replace("+00:00", " UTC")
    return f"It replaces the release{whose}, {promise(told)}" + (f", made {made}" if made else "")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def waits(report: Mapping[str, Any]) -> bool:
    """Whether the release, verified as it is, waits for somebody's approval."""
    return bool(report.get("approval", {}).get("decision") == "asked")


def denied(report: Mapping[str, Any]) -> bool:
    """Whether an approval was asked for and did not come."""
    return report.get("approval", {}).get("decision") in ("rejected", "expired", "abandoned")


def approval(report: Mapping[str, Any]) -> str:
    """What was decided about the release, by whom and when; empty where nobody was asked."""
    given = report.get("approval")
    if not given:
        return ""
    said = str(given["decision"]) + (f" by {given['by']}" if given.get("by") else "")
    at = str(given.get("at", "")).replace("T", " ").replace("+00:00", " UTC")
    return f"{said}, {at}" if at else said


def weakest(reached: Any, worst: Callable[[Iterable[float]], float]) -> float | None:
    """One figure; where there is one per sensitive attribute, the weakest counts."""
    return worst(reached.values()) if isinstance(reached, Mapping) else reached


def divided(parts: Mapping[str, Any]) -> str:
    """How many fragments the rows were divided into, and who asked for so many."""
    fragments = parts.get("fragments")
    why = parts.get("reason") or f"asked for {parts.get('asked')}"
    return f"{parts.get('strategy')}: {fragments} fragment{'s' * (fragments != 1)}, {why}"


def used(choice: Mapping[str, Any]) -> str:
    """What was used for something that the job may leave open, beside what was asked, and why."""
    used, asked = choice.get("used"), choice.get("asked")
    said = f"{used}, as asked" if used == asked else f"{used} (asked: {asked})"
    reason = choice.get("reason")
    return said if not reason or reason == "asked for" else f"{said}; {reason}"


def _guarantee(
    name: str, key: str, job: Mapping[str, Any], achieved: Mapping[str, Any], meaning: str
) -> Guarantee:
    asked = job[key]
    reached = weakest(achieved.get(key), max if key == "t" else min)
    met: bool | None = None
    if reached is not None:
        slack = 1e-9
        met = reached <= asked + slack if key == "t" else reached >= asked - slack
    # Not str.format: a column's name may hold braces.
    text = meaning.replace("{less}", number(asked - 1)).replace("{asked}", number(asked))
    return Guarantee(name, asked, reached, met, text)


def number(value: float | None, digits: int = 2) -> str:
    """`1,234`, `1,234.5`; an en dash for a figure that was not measured."""
    if value is None:
        return "–"
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.{digits}f}"


def percent(share: float, digits: int = 1) -> str:
    """A share as per cent; a small one is never shown as nothing, nor a large one as all."""
    if share == 0:
        return "0 %"
    low = 10**-digits
    value = 100 * share
    if 0 < value < low / 2:
        return f"< {low:.{digits}f} %"
    if 100 - low / 2 < value < 100:
        return f"> {100 - low:.{digits}f} %"
    return f"{value:.{digits}f} %"


def seconds(value: float) -> str:
    """`0.24 s`, `12.3 s`, `4 min 05 s`."""
    if value < 10:
        return f"{value:.2f} s"
    if value < 120:
        return f"{value:.1f} s"
    return f"{int(value) // 60} min {int(value) % 60:02d} s"


def size(value: float) -> str:
    """A count shortened for a tick or a card: `950`, `12.3 k`, `1.80 M`."""
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= max(0.9995 * factor, 1e4):
            return f"{value / factor:.3g} {unit}"
    return number(value)


def named(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report as it is shown: a column whose name is empty is ``''``."""
    shown = dict(report)
    for part in ("attributes", "levels"):
        if isinstance(found := report.get(part), Mapping):
            shown[part] = {name or NAMELESS: value for name, value in found.items()}
    if isinstance(roles := report.get("columns"), Mapping):
        shown["columns"] = {
            role: [each or NAMELESS for each in names] if isinstance(names, list) else names
            for role, names in roles.items()
        }
    return shown


def printable(text: object) -> str:
    """Text on one line, with control characters shown instead of obeyed by a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(text))
