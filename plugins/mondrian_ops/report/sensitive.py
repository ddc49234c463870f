"""What a report says about its sensitive columns: values that are alike, and rare ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mondrian_ops.report.number_format import number, percent

if TYPE_CHECKING:
    from mondrian_ops.report.document import Report, ReportedJob


def spread(job: ReportedJob) -> str:
    """What ``l_width`` means for the people of a release; empty without."""
    return "".join(
        f" At most 1/{number(job.l)} of a class have values of {name} within {width} of one "
        "another."
        for name, width in job.l_width.items()
    )


def similar(report: Report) -> list[str]:
    """A warning for each number or date whose values l counts, however close they are.

    Only where people are in classes of similar values.
    """
    if report.job.l is None:
        return []
    return [
        f"l counts the different values of {name!r}, however close to one another: "
        f"{percent(each.narrow)} of the people are in classes whose values all lie within "
        f"{each.width}. Set l_width to prevent this."
        for name, each in report.sensitive.items()
        if each.narrow and name not in report.job.l_width
    ]


def narrow_classes(report: Report) -> list[tuple[str, str, str]]:
    """Column, share, and what it is of: people in classes all whose values are similar."""
    return [
        (
            name,
            percent(each.narrow),
            f"of the people are in classes whose values all lie within {each.width}",
        )
        for name, each in report.sensitive.items()
        if each.narrow is not None
    ]


def gains(report: Report) -> list[tuple[str, str, str]]:
    """Column, gain, and what it is of: the value whose share a class raises most."""
    return [
        (
            name,
            number(each.gain, 1),
            f"a class raises the share of a value from {percent(each.gain_from)} to "
            f"{percent(each.gain_to)} at most",
        )
        for name, each in report.sensitive.items()
        if each.gain is not None and each.gain_from is not None and each.gain_to is not None
    ]
