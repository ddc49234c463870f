"""Checks of a job and its dataset before any work, and of the number of released rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from mondrian_ops import publish, stores, tables
from mondrian_ops.cut.anonymizer import columns_to_read, unlisted_columns
from mondrian_ops.data.column_types import extension_name
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.near_values import check_width, is_measurable, is_of_time
from mondrian_ops.engines.handover import RunState
from mondrian_ops.errors import (
    InputError,
    JobError,
    PrivacyError,
    UnattainableError,
    did_you_mean,
)
from mondrian_ops.job.job import Job
from mondrian_ops.job.widths import widths_of
from mondrian_ops.report.raw_columns import disclosures
from mondrian_ops.verify.singling_out import SingledOut, findings_of

_log = logging.getLogger(__name__)

# pyarrow.dataset adds columns of these names, and then finds two of one name.
_ARROWS_OWN = {"__fragment_index", "__batch_index", "__last_in_fragment", "__filename"}


def hierarchies_of(job: Job, of_sensitive: bool = False) -> dict[str, Hierarchy]:
    """The hierarchies that the job names, by column; ``of_sensitive``: of those columns only."""
    files = dict(job.sensitive_hierarchy)
    if not of_sensitive:
        files |= {q.name: q.hierarchy for q in job.quasi_identifiers if q.hierarchy is not None}
    trees = {
        name: stores.read_hierarchy(stores.find_hierarchy(name, job.base_dir))
        for name in dict.fromkeys(files.values())
    }
    return {column: trees[name] for column, name in files.items()}


def open_input(
    job: Job,
    known: Mapping[str, str] | None = None,
    may_be_empty: bool = True,
    gathered: tables.GatheredRows | None = None,
) -> tables.Table:
    """The input of a job that fits it; ``known`` and ``gathered`` as for :func:`open_table`."""
    source = tables.open_table(
        str(job.input),
        job.named_columns,
        job.unlisted == "publish",
        may_be_empty=may_be_empty,
        types=job.types,
        csv=job.csv,
        known=known,
        gathered=gathered,
    )
    publish.check_source(job, source)
    check_columns(job, source)
    return source


def check_columns(job: Job, source: tables.Table) -> None:
    """Raise JobError or InputError where the job does not fit the columns of its source."""
    names = source.schema.names
    roles = {
        "identifiers": job.identifiers,
        "quasi_identifiers": job.quasi_identifier_names,
        "sensitive": job.sensitive,
    }
    present = set(names)
    is_alien = present.isdisjoint(chain(*roles.values()))
    for role, columns in roles.items():
        for column in columns:
            if column not in present:
                # Without a header the input's names are personal values: none is suggested.
                hint = (
                    ", nor any other column that the job names; check that it is the right file "
                    "and has a header"
                    if is_alien
                    else did_you_mean(column, names)
                )
                raise JobError(f"{role}: the input has no column {column!r}{hint}")
    _refuse_types_of_others(job, names)
    _refuse_widths(job, source)
    for name in sorted(_ARROWS_OWN & {*columns_to_read(job, list(names))}):
        raise InputError(
            f"column {name!r} has a name that Arrow's readers reserve for themselves; rename "
            "it, or leave it out"
        )
    for field in source.declared:
        kind = extension_name(field)
        if field.name in job.quasi_identifier_names and kind not in (None, "arrow.json"):
            raise JobError(
                f"quasi_identifiers: column {field.name!r} of type {kind} cannot be generalized; "
                "make it text, a number or a date"
            )
    if job.follows_persons:
        _refuse_columns_beside(job, names)
    for name in job.quasi_identifier_names if job.interval_style == "bounds" else ():
        ends = {f"{name}_{end}" for end in ("min", "max", "hidden")}
        for taken in sorted(ends & {*columns_to_read(job, list(names))}):
            raise JobError(
                f"interval_style: {name!r} would be published as {taken!r}, a name that the input "
                "has already; rename that column, drop it, or use interval_style: text"
            )


def _refuse_types_of_others(job: Job, names: Sequence[str]) -> None:
    """Raise JobError for a type of a column that is not among ``names``."""
    for column in job.types:
        if column not in names:
            hint = did_you_mean(column, names)
            raise JobError(f"types: the input has no column {column!r}{hint}; remove it")


def _refuse_widths(job: Job, source: tables.Table) -> None:
    """Raise JobError for a width that the values of its column do not have."""
    for name, width in widths_of(job.l_width).items():
        check_width(name, source.schema.field(name).type, width)


def _refuse_columns_beside(job: Job, names: Sequence[str]) -> None:
    """Raise JobError where a raw column would tell persons apart, from night to night.

    A row that is made up would lack its value, too.
    """
    if job.unlisted == "publish" and (others := unlisted_columns(job, list(names))):
        raise JobError(
            f"series.protect: intersection publishes no other column as it is, because whoever "
            f"knows a person's {others[0]!r} finds the person's row among those of the class by "
            f"it; leave {', '.join(map(repr, others))} out with unlisted: drop, or list them as "
            "quasi-identifiers"
        )
    if job.has_counterfeits and "counterfeits" in job.quasi_identifier_names:
        raise JobError(
            "series.unmatched: counterfeit publishes a column 'counterfeits' beside the release; "
            "rename the quasi-identifier of that name"
        )


def check_rows(job: Job, rows: int) -> None:
    """Raise InputError for no rows, UnattainableError for fewer than k."""
    if not rows:
        raise InputError("the input has no rows; nothing can be anonymized")
    if rows < job.k:
        raise UnattainableError(
            f"k: the input has {rows} rows, fewer than k = {job.k}; lower k or wait for more rows"
        )


def lost_rows(job: Job, rows: int, published: int, suppressed: int, held: int = 0) -> list[str]:
    """The errors in the number of released rows; none if each is published, suppressed or held."""
    wrong = []
    if published + suppressed + held != rows:
        left_out = f", {suppressed} were suppressed" if suppressed else ""
        left_out += f", {held} wait" if held else ""
        wrong.append(f"{rows} rows were read, but {published} are in the release{left_out}")
    allowed = rows if job.series is not None else job.suppressible(rows)
    if suppressed > allowed:
        wrong.append(f"{suppressed} rows are suppressed, and at most {allowed} may be")
    return wrong


def column_roles(job: Job, names: Sequence[str], index: Sequence[str] = ()) -> dict[str, Any]:
    """The role of each column of the source; ``index``: a pandas index, which is left out."""
    return {
        "identifiers": list(job.identifiers),
        "identifier_policy": job.identifier_policy,
        "quasi_identifiers": list(job.quasi_identifier_names),
        "sensitive": list(job.sensitive),
        "unlisted": unlisted_columns(job, list(names)),
        "unlisted_policy": job.unlisted,
        "index": list(index),
    }


def constant_note(names: Sequence[str]) -> str:
    """The note of a report on quasi-identifiers with one value in all rows; empty without any."""
    if not names:
        return ""
    listed = ", ".join(map(repr, names))
    return f"quasi-identifiers with the same value in all rows, which tell nobody apart: {listed}"


def refuse_disclosing(job: Job, findings: Sequence[Mapping[str, Any]]) -> None:
    """Raise PrivacyError where columns disclose others, and the job refuses that."""
    if findings and job.dependencies == "refuse":
        what = "; ".join(disclosures(findings))
        raise PrivacyError(f"dependencies: the release is refused and not published: {what}")


def warn_of_disclosing(findings: Sequence[Mapping[str, Any]]) -> None:
    """Log a warning for each disclosing column."""
    for text in disclosures(findings):
        _log.warning("%s", text)


def warn_of_numbers(job: Job, source: tables.Table) -> None:
    """Log a warning for each number or date whose values ``l`` counts, however close they are."""
    for name in job.sensitive if job.l is not None else ():
        if name not in job.l_width and is_measurable(source.schema.field(name).type):
            example = "30 days" if is_of_time(source.schema.field(name).type) else "10 %"
            _log.warning(
                "l counts the different values of %r, however close to one another; set a width in "
                "l_width, such as %s",
                name,
                example,
            )


def with_singled_out(state: RunState, figures: Sequence[Mapping[str, Any]]) -> RunState:
    """The state with ``figures`` (`singling_out.SingledOut`), and a warning where there is harm."""
    found = [finding.to_dict() for finding in findings_of([SingledOut(**each) for each in figures])]
    warn_of_disclosing(found)
    return replace(state, dependencies=[*state.dependencies, *found], singled_out=figures)
