"""What a report says in sentences: what is guaranteed, what to mind, and what nothing stops.

The page, the terminal and the question to an approver say it in the same words. The attacks named
are those of ``docs/privacy.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mondrian_ops.report.figures import number

if TYPE_CHECKING:
    from mondrian_ops.report.document import Asked, Choice, Columns, Partitioning, Report

__all__ = [
    "MAX_NAMES",
    "Guarantee",
    "approval",
    "divided",
    "guarantees",
    "limits_of",
    "maker",
    "outcome",
    "promise",
    "published_raw",
    "replaced",
    "timestamp",
    "used",
    "warning",
]

MAX_NAMES = 20


@dataclass(frozen=True)
class Guarantee:
    """One requirement beside what the release achieves; ``met`` is None where it cannot be said."""

    name: str
    asked: float
    achieved: float | None
    met: bool | None
    meaning: str

    @property
    def verdict(self) -> str:
        return {True: "met", False: "not met", None: "not measured"}[self.met]


def guarantees(report: Report) -> list[Guarantee]:
    """k, l and t: asked beside achieved, with what each means in a sentence."""
    job = report.job
    requirements = [_guarantee(report, "k-anonymity", "k", _of_k(job))]
    if job.l is not None:
        kind = "" if job.diversity == "distinct" else f" ({job.diversity})"
        requirements.append(_guarantee(report, f"l-diversity{kind}", "l", _of_l(job)))
    if job.t is not None:
        meaning = (
            "The distribution of {sensitive} in each class is within {asked} of the distribution "
            "over the whole release."
        )
        requirements.append(_guarantee(report, "t-closeness", "t", meaning))
    return requirements


def _of_k(job: Asked) -> str:
    counted = " Persons are counted, not rows." if job.entity_id else ""
    return (
        "Each person shares every quasi-identifier's published value with at least {less} others."
        + counted
    )


def _of_l(job: Asked) -> str:
    meaning = {
        "distinct": "Each class holds at least {asked} different values of {sensitive}.",
        "entropy": "In each class the values of {sensitive} are as uncertain as {asked} equally "
        "frequent ones.",
        "recursive": "In each class no single value of {sensitive} outweighs the values from the "
        "{asked}. most frequent on.",
    }.get(job.diversity, "")
    return meaning + (
        " A missing one counts as a value." if job.missing_sensitive == "value" else ""
    )


def _guarantee(report: Report, name: str, key: str, meaning: str) -> Guarantee:
    asked, achieved = getattr(report.job, key), report.achieves(key)
    slack, met = 1e-9, None
    if achieved is not None:
        met = achieved <= asked + slack if key == "t" else achieved >= asked - slack
    # Not str.format, and the names last: a column's name may hold braces.
    meaning = meaning.replace("{less}", number(asked - 1)).replace("{asked}", number(asked))
    sensitive = ", ".join(report.columns.sensitive) or "the sensitive value"
    return Guarantee(name, asked, achieved, met, meaning.replace("{sensitive}", sensitive))


def outcome(report: Report) -> tuple[str, str]:
    """What became of the release, as a state of the archive of reports and in words."""
    decision = report.approval.decision if report.approval else ""
    if decision == "asked":
        return "waiting", "Waits for approval"
    if decision in ("rejected", "expired", "abandoned"):
        return "rejected", "Not approved: nothing was published"
    if report.verification.passed:
        return "published", "Published"
    return "refused", "Refused: nothing was published"


def warning(report: Report) -> str:
    """What to mind about diversity that was not asked for; empty when there is nothing to."""
    reached = report.achieves("l")
    if report.job.l is not None or reached is None or reached >= 2:
        return ""
    sensitive = ", ".join(report.columns.sensitive)
    return (
        f"l-diversity was not asked for, and in at least one class all known values of {sensitive} "
        "are the same: whoever is known to be in that class is known to have that value. Set l to "
        "prevent this."
    )


def published_raw(columns: Columns) -> str:
    """The first lines of a report with raw columns; empty where there are none."""
    raw = columns.raw
    if not raw:
        return ""
    named = ", ".join(raw[:MAX_NAMES])
    if len(raw) > MAX_NAMES:
        named += f" and {len(raw) - MAX_NAMES:,} more"
    count = "1 column goes" if len(raw) == 1 else f"{len(raw):,} columns go"
    return (
        f"{count} out raw, as unlisted: publish asks: {named}. k, l, t and the risks in this "
        "report cover only the columns that the job names: who knows a person's value in a raw "
        "column may find that person's row by it."
    )


def maker(made_by: object) -> str:
    """Who made a release: a DAG, ``DAG_ID`` or ``DAG_ID/GROUP``, or None."""
    if made_by is None:
        return "the command line or Python"
    dag_id, _, group = str(made_by).partition("/")
    return f"the DAG {dag_id!r}" + (f" (group {group!r})" if group else "")


def promise(asked: Mapping[str, Any]) -> str:
    """The k, l and t in the dict of a job, in short; t only where there is one."""
    terms = [f"{key} = {value:g}" if _is_number(value := asked.get(key)) else f"no {key}"
             for key in ("k", "l", "t")]  # fmt: skip
    return ", ".join(terms if asked.get("t") is not None else terms[:2])


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def replaced(report: Report) -> str:
    """Which release this one replaces; empty where there was none to replace."""
    other = report.replaces
    if not other:
        return ""
    whose = f" of {maker(other['made_by'])}" if "made_by" in other else ""
    made = timestamp(str(other.get("created", "")))
    return f"It replaces the release{whose}, {promise(other)}" + (f", made {made}" if made else "")


def approval(report: Report) -> str:
    """What was decided about the release, by whom and when; empty where nobody was asked."""
    given = report.approval
    if given is None:
        return ""
    by, at = f" by {given.by}" if given.by else "", timestamp(given.at or "")
    return ", ".join(filter(None, (given.decision + by, at)))


def timestamp(time: str) -> str:
    """A time as people read it: ``2025-06-01 10:00:00 UTC``."""
    return time.replace("T", " ").replace("+00:00", " UTC")


def divided(parts: Partitioning) -> str:
    """How many fragments the rows were divided into, who asked for so many, and on what basis."""
    fragments = parts.fragments
    why = parts.reason or f"asked for {parts.asked}"
    facts = [f"{parts.strategy}: {fragments} fragment{'s' * (fragments != 1)}, {why}"]
    if parts.sample_rows is not None:
        facts.append(f"decided on a sample of {number(parts.sample_rows)} rows")
    if parts.merged:
        facts.append(f"{parts.merged} merged because they could not stand alone")
    return "; ".join([*facts, *filter(None, [parts.note])])


def used(choice: Choice) -> str:
    """What was used for something that the job may leave open, beside what was asked, and why."""
    as_asked = choice.used == choice.asked
    text = f"{choice.used}, as asked" if as_asked else f"{choice.used} (asked: {choice.asked})"
    return text if choice.reason in (None, "", "asked for") else f"{text}; {choice.reason}"


def limits_of(
    job: Mapping[str, Any],
    columns: Columns,
    generalizations: Mapping[str, str],
    split_classes: int = 0,
) -> str:
    """What a release does not stop, given its job (``Job.to_dict()``) and columns.

    ``split_classes``: equivalence classes of which some file holds fewer than k rows.
    """
    recoded = job.get("algorithm") in ("samarati", "tds")
    tight = not recoded and _has_tight_intervals(job, generalizations)
    ends = "tight intervals show their ends, a grid does not" if tight else ""
    sentences = [
        "k-anonymity limits linking a row to a person through the quasi-identifiers listed here, "
        "and nothing else.",
        _of_sensitive(job),
        _of_unlisted(columns),
        "; ".join(filter(None, (_KNOWN_ALGORITHM, ends))) + ".",
        _SPLIT_CLASSES if split_classes else "",
        _PERSONS_IN_CLASSES if job.get("entity_id") else _ROWS_OF_A_PERSON,
        "Releases of overlapping people can be intersected.",
    ]
    return " ".join(filter(None, sentences))


_KNOWN_ALGORITHM = (
    "Somebody who knows the algorithm can undo a part of what it did (minimality, downcoding)"
)
_SPLIT_CLASSES = (
    "The rows of some equivalence classes lie in several files, one of which holds fewer than k of "
    "them, and the files tell fragments apart: pass the rows on as one table, or raise "
    "partitioning.max_rows."
)
_ROWS_OF_A_PERSON = "A person who owns several rows counts as several."
_PERSONS_IN_CLASSES = "What the rows of one person in a class have in common is published."


def _of_sensitive(job: Mapping[str, Any]) -> str:
    if not job.get("sensitive"):
        return (
            "No column is named sensitive, so nothing keeps the rows of a class from having the "
            "same value in a column that should stay secret (homogeneity)."
        )
    if job.get("t") is not None:
        return "t bounds how much a class reveals of the sensitive columns; it is not nothing."
    if job.get("l") is None:
        return "Neither l nor t was asked for: a class whose sensitive values agree reveals them."
    missing = ""
    if job.get("missing_sensitive") == "value":
        missing = (
            " A missing value counts as a value: in a class with one other value, who knows that a "
            "person's value is present knows which it is."
        )
    return (
        "l-diversity does not stop inference from values that are skewed or similar (t does), or "
        f"by somebody who can rule some of them out.{missing}"
    )


def _of_unlisted(columns: Columns) -> str:
    if not columns.raw:
        return ""
    count = f"{len(columns.raw)} columns that the job does not name are"
    if len(columns.raw) == 1:
        count = "A column that the job does not name is"
    return f"{count} published unchanged and may be known to somebody: no risk here covers that."


def _has_tight_intervals(job: Mapping[str, Any], generalizations: Mapping[str, str]) -> bool:
    """Whether some quasi-identifier may be published as an interval between values of the data."""
    on_grid = {
        each["name"]
        for each in job.get("quasi_identifiers", ())
        if isinstance(each, Mapping) and each.get("grid") is not None
    }
    return any(how == "interval" and name not in on_grid for name, how in generalizations.items())
