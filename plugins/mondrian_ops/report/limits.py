"""What a release does not stop, given its job: the sentences at the end of every report.

The attacks are those of ``docs/privacy.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["limits_of"]

_ALWAYS = (
    "k-anonymity limits linking a row to a person through the quasi-identifiers listed here, and "
    "nothing else."
)
_KNOWN_ALGORITHM = "Who knows the algorithm can undo a part of what it did (minimality, downcoding)"
_RECODED_FILES = (
    "Some rows that are published alike lie in several files, too few of them in one, and the "
    "files tell fragments apart: pass the rows on as one table, or raise partitioning.max_rows."
)


def limits_of(
    job: Mapping[str, Any],
    columns: Mapping[str, Any],
    generalizations: Mapping[str, str],
    split_classes: int = 0,
) -> str:
    """The sentences for a job (``Job.to_dict()``) and the report's columns.

    ``split_classes``: classes of which some file holds too few rows.
    """
    recoded = job.get("algorithm") in ("samarati", "tds")
    tight = not recoded and _has_tight_intervals(job, generalizations)
    said = [
        _ALWAYS,
        _of_sensitive(job),
        _of_unlisted(columns),
        _KNOWN_ALGORITHM
        + ("; tight intervals tell their ends, a grid does not." if tight else "."),
        _RECODED_FILES if split_classes else "",
        _of_several(job),
    ]
    return " ".join(filter(None, said))


def _of_sensitive(job: Mapping[str, Any]) -> str:
    if not job.get("sensitive"):
        return (
            "No column is named sensitive, so nothing keeps the rows of a class from agreeing in "
            "what should stay secret (homogeneity)."
        )
    if job.get("t") is not None:
        return "t bounds how much a class tells of the sensitive columns; it is not nothing."
    if job.get("l") is not None:
        counted = ""
        if job.get("missing_sensitive") == "value":
            counted = (
                " A missing value counts as one: in a class of one other value, who knows that a "
                "person has a value knows which."
            )
        return (
            "l-diversity does not stop inference from values that are skewed or alike (t does), or "
            f"by who can rule some of them out.{counted}"
        )
    return "Neither l nor t was asked for: a class whose sensitive values agree gives them away."


def _of_unlisted(columns: Mapping[str, Any]) -> str:
    unlisted = columns.get("unlisted")
    if not unlisted or columns.get("unlisted_policy") != "publish":
        return ""
    count = f"{len(unlisted)} columns that the job does not name are"
    if len(unlisted) == 1:
        count = "A column that the job does not name is"
    return f"{count} published unchanged, and may be known to somebody: no risk here covers that."


def _of_several(job: Mapping[str, Any]) -> str:
    rows = "one person who owns several rows counts as several, and "
    if job.get("entity_id"):
        rows = "what the many rows of one person in a class have in common is told, and "
    return f"{rows}releases of overlapping people can be intersected.".capitalize()


def _has_tight_intervals(job: Mapping[str, Any], generalizations: Mapping[str, str]) -> bool:
    """Whether some quasi-identifier may be published as an interval between values of the data."""
    on_grid = {
        each["name"]
        for each in job.get("quasi_identifiers", ())
        if isinstance(each, Mapping) and each.get("grid") is not None
    }
    return any(how == "interval" and name not in on_grid for name, how in generalizations.items())
