"""What a report says in sentences: what happened, what is guaranteed, what nothing prevents.

The page, the terminal, the question to an approver and notifications use the same words. The
attacks named are those of ``docs/privacy.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mondrian_ops.late_methods import dataclass
from mondrian_ops.report import outcome
from mondrian_ops.report.number_format import number, percent
from mondrian_ops.report.sensitive import similar, spread

if TYPE_CHECKING:
    from mondrian_ops.report.document import Choice, Columns, Partitioning, Report

MAX_NAMES = 20
_FORMATS = {"csv": "CSV", "parquet": "Parquet"}
_NAMELESS = "''"
_SLACK = 1e-9  # of rounding, in entropy and t


@dataclass(frozen=True)
class Guarantee:
    """A requirement of the job, and what the release achieves; None where nobody measured it."""

    name: str
    required: float
    achieved: float | None
    meaning: str
    at_most: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the release meets the requirement; None where nobody measured it."""
        if self.achieved is None:
            return None
        if self.at_most:
            return self.achieved <= self.required + _SLACK
        return self.achieved >= self.required - _SLACK

    @property
    def verdict(self) -> str:
        return {True: "met", False: "not met", None: "not measured"}[self.met]


def guarantees(report: Report) -> list[Guarantee]:
    """k and, where the job requires them, l, t and others; what they mean for the people."""

    def said(meaning: str) -> str:
        if is_published(report):
            return meaning[:1].upper() + meaning[1:]
        return f"The job requires: {meaning}" if meaning else ""

    job = report.job
    sensitive = " and of ".join(report.columns.sensitive) or "the sensitive value"
    meaning = (
        "each person shares the published values of all quasi-identifiers with at least "
        f"{number(job.k - 1)} others."
    )
    if job.entity_id:
        meaning += " Persons are counted, not rows."
    requirements = [Guarantee("k-anonymity", job.k, report.achieves("k"), said(meaning))]
    if job.l is not None:
        kind = "" if job.diversity == "distinct" else f" ({job.diversity})"
        meaning = {
            "distinct": f"each class holds at least {number(job.l)} different values of "
            f"{sensitive}.",
            "entropy": f"in each class the values of {sensitive} are at least as diverse as "
            f"{number(job.l)} equally frequent ones.",
            "recursive": f"in each class the most frequent value of {sensitive} is less than "
            f"{number(job.c)} times as frequent as the value of rank {number(job.l)} and all rarer "
            "ones together.",
        }.get(job.diversity, "")
        meaning += spread(job)
        if job.missing_sensitive == "value":
            meaning += " A missing value counts as a value."
        reached = report.achieves("l")
        requirements.append(Guarantee(f"l-diversity{kind}", job.l, reached, said(meaning)))
    if job.t is not None:
        meaning = (
            f"the distribution of {sensitive} in each class is within {number(job.t)} of the "
            "distribution over the whole release."
        )
        if job.entity_id:
            meaning += " Rows are counted, not persons."
        requirements.append(
            Guarantee("t-closeness", job.t, report.achieves("t"), said(meaning), at_most=True)
        )
    for each in report.criteria:
        achieved = report.achieves(each.key)
        requirements.append(
            Guarantee(each.title, each.required, achieved, said(each.means), each.at_most)
        )
    return requirements


def lines_of(report: Report) -> str:
    """How the bars of the requirements are read."""
    others = "".join(
        f" {each.title} must {'not cross' if each.at_most else 'reach'} it."
        for each in report.criteria
    )
    return f"k and l must reach the line, t must not cross it.{others}"


_HEADLINES = {
    outcome.PUBLISHED: "Published",
    outcome.HELD: "Held: nothing was published tonight",
    outcome.WAITING: "Waits for approval: nothing is published yet",
    outcome.REFUSED: "Refused: nothing was published",
    outcome.REJECTED: "Rejected: nothing was published",
    outcome.EXPIRED: "Not approved in time: nothing was published",
    outcome.FAILED: "Failed: nothing was published",
}
_UNKNOWN = "State unknown: this report does not say whether anything was published"


def headline(report: Report) -> str:
    """What became of the release, in a few words; what follows a colon may be left out."""
    return _HEADLINES.get(report.state, _UNKNOWN)


def is_published(report: Report) -> bool:
    """Whether the report says that its release is published."""
    return report.state == outcome.PUBLISHED


def summary(report: Report) -> str:
    """What the headline means for the rows, and for whoever reads the dataset."""
    rows = report.rows
    made = (
        f"{number(rows.in_classes)} of {number(rows.input)} rows, in "
        f"{number(report.equivalence_classes)} classes"
    )
    if is_published(report):
        return (
            f"{made}, with {promise(report.content['job'])}. Every requirement was checked again "
            "on the files as written, by code that shares nothing with the code that made them."
        )
    if report.state == outcome.HELD:
        return f"{number(rows.waiting)} rows wait for the next night. Earlier releases stay."
    if not report.is_measured:
        return "The run ended before there were figures to report. An earlier release stays."
    if report.state == outcome.WAITING:
        return f"A person may approve it: {made}. It lies in private files until then."
    if report.state in _HEADLINES:
        return (
            f"The figures are those of the release that was checked, {made}. It is discarded, and "
            "an earlier release stays."
        )
    return f"The figures are those of the release that was checked, {made}."


def facts(report: Report) -> list[tuple[str, str]]:
    """Name and text of all that is known of what happened: why, when, who asked, who decided."""
    told = report.outcome
    named = (
        ("Reason", told.reason if told else ""),
        ("Asked for by", requested(report)),
        ("Decision", decision(report)),
        ("Decided because", told.decision_reason if told else ""),
        ("When", timestamp(told.at) if told else ""),
    )
    return [(name, text) for name, text in named if text]


def requested(report: Report) -> str:
    """Who asked for the run, or what began it; empty outside of Airflow, which does not say."""
    how = _BEGAN.get(report.run_type or "", report.run_type or "")
    if report.requested_by:
        return (
            report.requested_by if report.run_type == "manual" else f"{report.requested_by} ({how})"
        )
    return "somebody whom Airflow does not name" if report.run_type == "manual" else how


_BEGAN = {
    "manual": "by hand",
    "scheduled": "the DAG's schedule",
    "backfill": "a backfill",
    "asset_triggered": "an Asset event",
    "asset_materialization": "the materialization of an Asset",
    "operator_triggered": "another DAG",
}


def rows_read(report: Report) -> str:
    """How many rows were read and what became of them; in a series also those that waited."""
    rows = report.rows
    waited = f"{number(rows.waited)} had waited, " if report.series else ""
    waits = f", {number(rows.waiting)} wait" if report.series else ""
    checked = f"{number(rows.in_classes)} checked"
    if is_published(report) or report.state == outcome.HELD:
        checked = f"{number(rows.published)} published"
    return (
        f"{number(rows.input)} read, {waited}{checked}, {number(rows.suppressed)} suppressed{waits}"
    )


def warning(report: Report) -> str:
    """A warning about a class of one sensitive value, unless the job requires l; else empty."""
    achieved = report.achieves("l")
    if report.job.l is not None or achieved is None or achieved >= 2:
        return ""
    sensitive = ", ".join(report.columns.sensitive)
    return (
        "The job does not require l-diversity, and in at least one class all known values of "
        f"{sensitive} are the same: whoever knows that a person is in that class knows that "
        "person's value. Set l to prevent this."
    )


def sensitive_raw(columns: Columns) -> str:
    """That the job publishes sensitive columns as they are; empty where there are none."""
    if not columns.sensitive:
        return ""
    return f"To publish as they are, because they are sensitive: {_named(columns.sensitive)}."


def _named(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - MAX_NAMES:,} more" if len(columns) > MAX_NAMES else ""
    return ", ".join(columns[:MAX_NAMES]) + more


def published_raw(columns: Columns) -> str:
    """The first lines of a report with raw columns; empty where there are none."""
    raw = columns.raw
    if not raw:
        return ""
    named = _named(raw)
    count = "1 column" if len(raw) == 1 else f"{len(raw):,} columns"
    return (
        f"The job publishes {count} raw (unlisted: publish): {named}. k, l, t and the "
        "risks in this report cover only the columns that the job names. Whoever knows a person's "
        "value in a raw column may find that person's row by it."
    )


def first(report: Report) -> list[str]:
    """What a report begins with: its raw columns, what columns undo, and values that are alike."""
    raw = published_raw(report.columns)
    return [*([raw] if raw else []), *report.dependencies.notes, *similar(report)]


def maker(made_by: object) -> str:
    """Who made a release: the DAG in ``DAG_ID`` or ``DAG_ID/GROUP``, or None."""
    if made_by is None:
        return "the command line or Python"
    dag_id, _, group = str(made_by).partition("/")
    return f"the DAG {dag_id!r}" + (f" (group {group!r})" if group else "")


def source(report: Report) -> str:
    """How the input was read; empty where the report does not say."""
    read = report.source
    if read is None:
        return ""
    plural = "" if read.files == 1 else "s"
    facts = [f"{_FORMATS.get(read.format, read.format)}, {number(read.files)} file{plural}"]
    if read.separators:
        facts.append("separator " + " and ".join(map(_quoted, read.separators)))
    facts += [f"encoding {' and '.join(read.encodings)}"] if read.encodings else []
    facts += [f"decimal mark {_quoted(read.decimal)}"] if read.decimal != "." else []
    if read.missing:
        facts.append(f"missing values {', '.join(map(_quoted, read.missing))}")
    return "; ".join(facts)


def types(report: Report) -> str:
    """The types of columns that the job names or that were found; empty without any."""
    named = report.source.types if report.source else {}
    return ", ".join(f"{name or _NAMELESS}: {kind}" for name, kind in named.items())


def _quoted(text: str) -> str:
    return "tab" if text == "\t" else repr(text)


def numberlike(names: Iterable[str]) -> str:
    """The note on columns of text that look like numbers; empty without any."""
    listed = ", ".join(map(repr, names))
    if not listed:
        return ""
    return (
        f"columns that look like numbers but are text: {listed}. Some of their texts are not "
        "written as a number is, such as 007, +5, 1E5, or 250.10 beside 250.1; if they are "
        "numbers, say so in the job's types"
    )


def promise(job: Mapping[str, Any]) -> str:
    """The k, l and t in the dict of a job, in short; t only where there is one."""
    terms = [f"{key} = {value:g}" if _is_number(value := job.get(key)) else f"no {key}"
             for key in ("k", "l", "t")]  # fmt: skip
    return ", ".join(terms if job.get("t") is not None else terms[:2])


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def replaced(report: Report) -> str:
    """Which release this one replaces; empty where there is none."""
    other = report.replaces
    if not other:
        return ""
    whose = f" of {maker(other['made_by'])}" if "made_by" in other else ""
    made = timestamp(str(other.get("created", "")))
    return f"It replaces the release{whose}, {promise(other)}" + (f", made {made}" if made else "")


def decision(report: Report) -> str:
    """What a person decided about the release, who and when; empty where nobody did."""
    told = report.outcome
    if told is None or not told.decision:
        return ""
    by, at = f" by {told.decided_by}" if told.decided_by else "", timestamp(told.decided_at)
    return ", ".join(filter(None, (told.decision + by, at)))


def night(report: Report) -> str:
    """Which night of its series the release is; empty where it is of none."""
    series = report.series
    return "" if series is None else f"night {number(series.night)} of {series.name}"


def boundaries(report: Report) -> str:
    """Where the boundaries of the series come from, and what they cost; empty without any."""
    shared = report.series and report.series.boundaries
    if not shared:
        return ""
    facts = [
        f"those of night {number(shared.since)}",
        f"a sample loses {percent(shared.loss)} with them, {percent(shared.loss_nightly)} without",
    ]
    if shared.drift:
        name = max(shared.drift, key=shared.drift.__getitem__)
        facts.append(f"drift {percent(shared.drift[name])} ({name or repr(name)})")
    return "; ".join(facts)


def timestamp(time: str) -> str:
    """A time as people read it: ``2025-06-01 10:00:00 UTC``."""
    return time.replace("T", " ").replace("+00:00", " UTC")


def partitioning(parts: Partitioning) -> str:
    """How many fragments the rows were divided into, and why so many."""
    why = parts.reason or f"the job says {parts.asked}"
    plural = "" if parts.fragments == 1 else "s"
    facts = [f"{parts.strategy}: {parts.fragments} fragment{plural} ({why})"]
    if parts.sample_rows is not None:
        facts.append(f"planned on a sample of {number(parts.sample_rows)} rows")
    if parts.merged:
        facts.append(f"{parts.merged} merged with a neighbour: too few rows or sensitive values")
    return "; ".join([*facts, *filter(None, [parts.note])])


def used(choice: Choice) -> str:
    """The value used for an option that the job may leave to us, and why."""
    if choice.used == choice.asked:
        text = f"{choice.used}, as the job says"
    else:
        text = f"{choice.used} (the job says {choice.asked})"
    return text if choice.reason in (None, "", "asked for") else f"{text}; {choice.reason}"
