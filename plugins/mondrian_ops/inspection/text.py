"""An inspection for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from mondrian_ops.inspection.inspector import InspectedColumn, Inspection
from mondrian_ops.report.number_format import number, percent, printable, seconds

_MOST_COMBINATIONS = 5
_KEPT = "\xa0"  # a blank at which no line ends
_FIGURES = 56  # signs of a line behind the name of its column
_ROLES = {
    "identifier": "identifier",
    "entity_id": "entity_id",
    "quasi_identifier": "quasi-identifier",
    "sensitive": "sensitive",
    "left_out": "left out",
    "undecided": "undecided",
}


def render_text(inspection: Inspection, width: int = 80) -> str:
    """The inspection as lines of at most ``width`` characters (60 to 120)."""
    width = min(max(width, 60), 120)
    blocks = (_head(inspection), _columns(inspection, width), _together(inspection, width),
              _dependencies(inspection))  # fmt: skip
    return "\n\n".join("\n".join(lines) for lines in map(list, blocks) if lines)


def _head(inspection: Inspection) -> Iterator[str]:
    yield printable(inspection.input)
    yield (
        f"{number(inspection.rows)} rows, {len(inspection.columns)} columns; "
        f"{number(inspection.inspected)} rows inspected in {seconds(inspection.seconds)}"
    )
    if inspection.floor.policies:
        names = ", ".join(printable(policy.name) for policy in inspection.floor.policies)
        yield f"policies: {names}; no value of fewer than {inspection.floor.k} people is shown"
    if inspection.missing_texts:
        texts = ", ".join(map(printable, inspection.missing_texts))
        yield f"read as missing values: {texts}"


def _columns(inspection: Inspection, width: int) -> Iterator[str]:
    names = [printable(column.name) for column in inspection.columns]
    wide = min(max(map(len, names), default=0), width - _FIGURES)
    titles = f"{'role':<16}  {'type':<9} {'missing':>7} {'distinct':>9} {'alone':>8}"
    yield f"{'column':<{wide}}  {titles}"
    for name, column in zip(names, inspection.columns, strict=True):
        yield (
            f"{_short(name, wide):<{wide}}  {_ROLES[column.proposal.role]:<16}  "
            f"{_short(printable(column.type), 9):<9} {percent(column.missing):>7} "
            f"{number(column.distinct):>9} {percent(column.single):>8}"
        )
        for note in _notes(column):
            lines = textwrap.wrap(note, width, initial_indent=" " * 4, subsequent_indent=" " * 6)
            yield from (line.replace(_KEPT, " ") for line in lines)
    yield from textwrap.wrap("alone: the share of people whose value nobody else has", width)


def _notes(column: InspectedColumn) -> Iterator[str]:
    how = f", as {column.proposal.generalization}" if column.proposal.generalization else ""
    yield f"{column.proposal.reason}{how}"
    if column.common:
        shown = [
            f"{_short(printable(text), 24)} ({percent(share)})" for text, share in column.common
        ]
        yield f"most frequent: {', '.join(shown)}"
    spread = column.spread
    if spread.mostly is not None and not column.common:
        yield f"nine of ten rows: {spread.mostly[0]} to {spread.mostly[1]}"
    if spread.sentinels:
        yield f"{', '.join(map(printable, spread.sentinels))}: may stand for a missing value"
    if spread.outliers:
        yield f"outliers: {percent(spread.outliers)} of the rows lie far from the others"


def _together(inspection: Inspection, width: int) -> Iterator[str]:
    together = inspection.together
    best = sorted(
        (each for each in together.combinations if len(each.columns) > 1 and each.single > 0),
        key=lambda each: (-each.minimal, each.columns),
    )[:_MOST_COMBINATIONS]
    if not best:
        return
    yield f"Who is found by few columns, of {number(together.rows)} people"
    for each in best:
        names = " + ".join(map(printable, each.columns))
        line = f"  {percent(each.single):>7}  {names}"
        if each.minimal < each.single:
            line += f"; {percent(each.minimal)} only by all of them"
        yield from textwrap.wrap(line, width, subsequent_indent=" " * 11, drop_whitespace=False)


def _dependencies(inspection: Inspection) -> Iterator[str]:
    if inspection.dependencies:
        yield "What follows from another column"
    for each in inspection.dependencies:
        yield (f"  {percent(each.share):>7}  {printable(each.of)} from {printable(each.by)}")


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
