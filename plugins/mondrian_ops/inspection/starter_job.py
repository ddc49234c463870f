"""A job to begin with, as YAML: the proposed roles, each with its reason as a comment."""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Iterable, Iterator

from mondrian_ops import publish
from mondrian_ops.errors import JobError
from mondrian_ops.inspection.inspector import WIDTH, InspectedColumn, Inspection
from mondrian_ops.job.job import Job
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.stores import documents

_PLAIN = re.compile("[A-Za-z_/][A-Za-z0-9_./=:-]*[A-Za-z0-9_]|[A-Za-z]")
_NOT_PLAIN = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def starter_job(inspection: Inspection, output: str | None = None) -> str:
    """The job; without an ``output`` it has one named after the input, outside of it.

    Without a quasi-identifier it is no job yet, and says so. What policies of the input ask beyond
    it stands at its end.
    """
    lines = [
        "# Proposed by names, types and values. Check each role: only you know what others know.",
        f"input: {_text(inspection.input)}",
        f"output: {_text(output or _output(inspection.input))}",
        f"k: {inspection.floor.k}",
        *_l(inspection),
        *_persons(inspection),
        *_types(inspection),
        *_missing(inspection),
        *_list("identifiers", "left out of the release", inspection.with_role("identifier")),
        *_quasi_identifiers(inspection),
        *_list("sensitive", "published as it is", inspection.with_role("sensitive")),
        *_rest(inspection),
    ]
    lines += _shortfalls(inspection, "\n".join(lines))
    return "\n".join(lines) + "\n"


def _shortfalls(inspection: Inspection, text: str) -> Iterator[str]:
    try:
        job = Job.from_dict(documents.parsed(text))
    except JobError:  # what is missing is said where it would stand
        return
    for number, problem in enumerate(publish.shortfalls(job, inspection.floor.policies)):
        if number == 0:
            yield "# Policies ask for more:"
        yield f"#  - {' '.join(problem.split())}"


def _output(url: str) -> str:
    folder, name = os.path.split(re.split(r"[*?\[]", url)[0].rstrip("/"))
    name = (name or os.path.basename(folder)).partition(".")[0].partition("@")[0]
    is_in_out = os.path.relpath(url).split(os.sep)[0] == "out"
    return f"{'released' if is_in_out else 'out'}/{name or 'release'}"


def _l(inspection: Inspection) -> Iterator[str]:
    sensitive = [each for each in inspection.with_role("sensitive") if each.distinct > 1]
    if not sensitive or len(sensitive) < len(inspection.with_role("sensitive")):
        return
    least = inspection.floor.l
    yield f"l: {least:g}"
    wide = [each for each in sensitive if each.fullest is not None]
    narrow = [each.name for each in wide if (each.fullest or 0) < 0.5 / least]
    if narrow:
        widths = ", ".join(f"{_text(name)}: {WIDTH}" for name in narrow)
        yield f"l_width: {{{widths}}}  # numbers within this width count as one value"


def _persons(inspection: Inspection) -> Iterator[str]:
    if inspection.persons is not None:
        yield f"entity_id: {_text(inspection.persons)}  # one person may have several rows"


def _types(inspection: Inspection) -> Iterator[str]:
    codes = [
        each.name
        for each in inspection.with_role("quasi_identifier")
        if each.type == "integer" and each.proposal.generalization.startswith("ladder:postal")
    ]
    if codes:
        yield f"types: {{{', '.join(f'{_text(name)}: text' for name in codes)}}}"


def _missing(inspection: Inspection) -> Iterator[str]:
    if inspection.missing_texts:
        listed = ", ".join(map(json.dumps, inspection.missing_texts))
        yield f"csv: {{missing: [{listed}]}}  # these texts may stand for a missing value"


def _list(key: str, what: str, columns: Iterable[InspectedColumn]) -> Iterator[str]:
    for number, column in enumerate(columns):
        if number == 0:
            yield f"{key}:  # {what}"
        yield f"  - {_text(column.name)}  # {column.proposal.reason}"


def _quasi_identifiers(inspection: Inspection) -> Iterator[str]:
    columns = inspection.with_role("quasi_identifier")
    if not columns:
        yield "quasi_identifiers: []  # none was found; list what others may know of a person"
        return
    yield "quasi_identifiers:  # generalized"
    for column in columns:
        yield f"  - {_quasi_identifier(column)}  # {column.proposal.reason}"


def _quasi_identifier(column: InspectedColumn) -> str:
    """A quasi-identifier: a short form, or a mapping where its name could be taken for one."""
    how = column.proposal.generalization
    if "=" not in column.name:
        return _text(f"{column.name}={how}" if how else column.name)
    options = QuasiIdentifier.expanded(f"x={how}", "") if how else {}
    return json.dumps({**options, "name": column.name})


def _rest(inspection: Inspection) -> Iterator[str]:
    rest = [*inspection.with_role("undecided"), *inspection.with_role("left_out")]
    if rest:
        yield "# Left out, because no list names them:"
    for column in rest:
        yield f"#  - {_text(column.name)}  # {column.proposal.reason}"


def _text(text: str) -> str:
    """A text as YAML, quoted where it would be read as something else."""
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN:
        return text
    return json.dumps(text, ensure_ascii=True)
