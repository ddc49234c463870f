"""Sentences on columns that show values as they are: what they disclose, and whom they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mondrian_ops.report.number_format import number, percent


def disclosures(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """What each column discloses that shows values as they are, by `data.finding.Finding`."""
    by_column: dict[tuple[str, bool], list[Mapping[str, Any]]] = {}
    for each in findings:
        by_column.setdefault((each["column"], each["how"] == "jointly"), []).append(each)
    return [_sentence(column, of_column) for (column, _), of_column in by_column.items()]


def _sentence(column: str, findings: Sequence[Mapping[str, Any]]) -> str:
    if findings[0]["how"] == "set":
        return _of_sets(column, findings[0])
    what = " and ".join(map(_disclosure, findings))
    if not column:
        return (
            f"what stays as it is, all columns of it together, {what}; make one of them a "
            "quasi-identifier or an identifier, or leave it out"
        )
    return (
        f"{column!r} stays as it is and {what}; make it a quasi-identifier or an identifier, or "
        "leave it out"
    )


def _of_sets(column: str, finding: Mapping[str, Any]) -> str:
    share, k = percent(finding["share"], 0), finding["fewer_than"]
    return (
        f"{column!r} is published as sets of its values, and fewer than k = {k} have the value "
        f"of {share} of the rows: the sets show such values word for word; generalize it by "
        "prefix or a hierarchy, or leave it out"
    )


def _disclosure(finding: Mapping[str, Any]) -> str:
    share, quasi_identifier = percent(finding["share"], 0), finding["quasi_identifier"]
    match finding["how"]:
        case "value":
            return f"gives away {quasi_identifier!r} (in {share} of the rows)"
        case "order":
            return f"gives away {quasi_identifier!r} (by its order, {share})"
        case "alone" if finding["fewer_than"] == 2:
            return f"singles out {share} of the rows (nobody else has their value)"
        case "alone":
            fewer = f"fewer than k = {finding['fewer_than']} have their value"
            return f"singles out {share} of the rows ({fewer})"
        case "jointly":
            return (
                f"singles out {share} of the rows in their classes (predicted from all "
                "quasi-identifiers together)"
            )
    return "has a type whose values cannot be compared (flatten it, or make it text or a number)"


def singled_out(figures: Sequence[Mapping[str, Any]]) -> str:
    """Whom columns that stay as they are find, by `singling_out.SingledOut`; or nothing."""
    if not figures:
        return ""
    most = sorted((each for each in figures if each["found"]), key=lambda each: -each["found"])
    by = [
        f"{percent(each['found'])} by {each['column']!r}"
        if each["column"] is not None
        else f"{percent(each['found'])} by all such columns together"
        for each in most[:3]
    ]
    return (
        f"of {number(figures[0]['rows'])} rows, an attacker who predicts the columns that stay as "
        f"they are from all quasi-identifiers finds {', '.join(by) or 'none'}"
    )
