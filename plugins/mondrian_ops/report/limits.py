"""What a release does not prevent: the sentences at the end of each report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mondrian_ops.report.document import Columns


def limits_of(
    job: Mapping[str, Any],
    columns: Columns,
    generalizations: Mapping[str, str],
    split_classes: int = 0,
    criteria: Sequence[str] = (),
) -> str:
    """What a release does not prevent, given its job (``Job.to_dict()``) and columns.

    ``split_classes``: equivalence classes of which some file holds fewer than k rows.
    ``criteria``: the titles of those of installed packages.
    """
    algorithm = (
        "Somebody who knows the algorithm can undo a part of what it did (minimality, downcoding)"
    )
    if _has_tight_intervals(job, generalizations):
        algorithm += "; tight intervals show their ends, a grid does not"
    sentences = [
        "k-anonymity makes it hard to link a row to a person by the quasi-identifiers listed here, "
        "and does nothing else.",
        _limits_of_sensitive(job, criteria),
        _limits_of_similar(job),
        _limits_of_unlisted(columns),
        f"{algorithm}.",
        _SPLIT_CLASSES if split_classes else "",
        _PERSONS_IN_CLASSES if job.get("entity_id") else _ROWS_OF_A_PERSON,
        _limits_of_distributions(job, criteria),
        "Somebody who has several releases about the same people can intersect them.",
    ]
    return " ".join(filter(None, sentences))


_SPLIT_CLASSES = (
    "Some equivalence classes lie in several files, one of which holds fewer than k of their rows, "
    "and a file shows which fragment its rows belong to: pass the rows on as one table, or raise "
    "partitioning.max_rows."
)
_ROWS_OF_A_PERSON = "A person who has several rows counts as several persons."
_PERSONS_IN_CLASSES = (
    "If most rows of a class are one person's, so are most of its sensitive values."
)


def _limits_of_sensitive(job: Mapping[str, Any], criteria: Sequence[str]) -> str:
    if not job.get("sensitive"):
        return (
            "No column is named sensitive, so nothing keeps the rows of a class from having the "
            "same value in a column that should stay secret (homogeneity)."
        )
    if job.get("t") is not None:
        return (
            "t limits what a class reveals about the sensitive columns, but does not reduce it to "
            "nothing."
        )
    if criteria and job.get("l") is None:
        return (
            f"Of what a class reveals about the sensitive columns, {' and '.join(criteria)} limits "
            "only what its definition says: the job requires neither l nor t."
        )
    if job.get("l") is None:
        return (
            "The job requires neither l nor t: a class whose rows share a sensitive value reveals "
            "it."
        )
    limits = (
        "l-diversity does not prevent inference from values that are skewed (t limits it), or by "
        "somebody who can rule some of them out."
    )
    if job.get("missing_sensitive") == "value":
        limits += (
            " A missing value counts as a value: in a class with one other value, whoever knows "
            "that a person's value is present knows the value."
        )
    return limits


def _limits_of_similar(job: Mapping[str, Any]) -> str:
    """That the values of a class may be alike, but for the columns that a width keeps apart."""
    if job.get("l") is None and job.get("t") is None:
        return ""
    widths = job.get("l_width") or {}
    names = list(job.get("sensitive", ()))
    apart = [name for name in names if name in widths]
    alike = [name for name in names if name not in widths]
    sentences = []
    if alike:
        sentences.append(
            f"The values of {', '.join(alike)} in a class may be similar, so that a class reveals "
            "them roughly: l and t do not prevent it (of numbers and dates, l_width does)."
        )
    if apart:
        listed = ", ".join(f"{name} ({widths[name]})" for name in apart)
        sentences.append(f"A guess may be wider than the width of l_width, and right: {listed}.")
    return " ".join(sentences)


def _limits_of_distributions(job: Mapping[str, Any], criteria: Sequence[str]) -> str:
    """That t and criteria of packages count rows, though k counts persons."""
    names = [*(["t"] if job.get("t") is not None else []), *criteria]
    if not names or not job.get("entity_id"):
        return ""
    count = "counts" if len(names) == 1 else "count"
    return (
        f"k counts persons, but {' and '.join(names)} {count} rows: where persons have different "
        "numbers of rows, the values of a class's persons may be further from those of all persons."
    )


def _limits_of_unlisted(columns: Columns) -> str:
    if not columns.raw:
        return ""
    some = f"{len(columns.raw)} columns" if len(columns.raw) > 1 else "a column"
    return (
        f"The job publishes {some} unchanged without a role, and somebody may know such a "
        "value: no risk in this report covers that."
    )


def _has_tight_intervals(job: Mapping[str, Any], generalizations: Mapping[str, str]) -> bool:
    """Whether some quasi-identifier may be published as an interval between values of the data."""
    if job.get("algorithm") in ("samarati", "tds"):
        return False
    series = job.get("series")
    if isinstance(series, Mapping) and series.get("boundaries") == "stable":
        return False
    on_grid = {
        each["name"]
        for each in job.get("quasi_identifiers", ())
        if isinstance(each, Mapping) and each.get("grid") is not None
    }
    return any(how == "interval" and name not in on_grid for name, how in generalizations.items())
