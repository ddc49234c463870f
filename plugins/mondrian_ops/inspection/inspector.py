"""Inspects a table: its columns, alone and together, and the role that each may have."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops import publish, stores
from mondrian_ops.data.disclosing_columns import comparable
from mondrian_ops.data.named_types import name_of
from mondrian_ops.data.near_values import near_ends
from mondrian_ops.data.values import text_of
from mondrian_ops.inspection import roles, unique_rows
from mondrian_ops.inspection.columns import MANY, Column
from mondrian_ops.inspection.dependencies import Dependency, dependencies
from mondrian_ops.inspection.floor import Floor
from mondrian_ops.inspection.kinds import kind_of
from mondrian_ops.inspection.roles import Proposal
from mondrian_ops.inspection.rows import MOST_ROWS, drawn
from mondrian_ops.inspection.spread import Spread, missing_texts, spread
from mondrian_ops.inspection.unique_rows import UniqueRows
from mondrian_ops.job.source_options import Csv
from mondrian_ops.job.widths import as_width
from mondrian_ops.late_methods import dataclass
from mondrian_ops.tables.opening import kind_of as kind_of_table
from mondrian_ops.tables.opening import open_table
from mondrian_ops.version import __version__

WIDTH = "10 %"
"""Within this width of one another sensitive numbers count as similar in a proposed job."""

_COMMON = 4


@dataclass(frozen=True)
class InspectedColumn:
    """What is known of a column; shares are of the inspected rows.

    ``common``: its most frequent values with the shares of their rows, each of at least k people.
    ``fullest``: of numbers with many values, the largest share of rows whose values lie within
    `WIDTH` of one another.
    """

    name: str
    type: str
    proposal: Proposal
    missing: float = 0.0
    distinct: int = 0
    distinction: float = 0.0
    separation: float = 0.0
    single: float = 0.0
    involved: float | None = None
    kind: str | None = None
    common: Sequence[tuple[str, float]] = ()
    spread: Spread = field(default_factory=Spread)
    fullest: float | None = None


@dataclass(frozen=True)
class Inspection:
    """What an inspection found; it holds no value of fewer than ``floor.k`` people.

    ``persons``: the column that tells people apart, if they may have several rows. ``single``,
    ``common``, ``spread`` and ``together`` look at one row of each person, as this column and
    others such as e-mail addresses tell them apart. ``missing_texts`` were read as missing values.
    """

    input: str
    rows: int
    inspected: int
    columns: Sequence[InspectedColumn]
    together: UniqueRows
    dependencies: Sequence[Dependency]
    persons: str | None = None
    missing_texts: Sequence[str] = ()
    seconds: float = 0.0
    floor: Floor = field(default_factory=Floor)

    def with_role(self, role: roles.Role) -> list[InspectedColumn]:
        """The columns with a role, in the table's order."""
        return [column for column in self.columns if column.proposal.role == role]

    def to_dict(self) -> dict[str, Any]:
        """A value of JSON's types."""
        columns = []
        for column in self.columns:
            described = asdict(column)
            described |= described.pop("proposal")._asdict() | described.pop("spread")
            columns.append(described)
        found = {**asdict(replace(self, floor=Floor())), "columns": columns}
        found["floor"] = {
            "k": self.floor.k, "policies": [policy.name for policy in self.floor.policies]
        }  # fmt: skip
        return {"version": __version__, **found}


def inspect(
    url: str,
    *,
    rows: int = MOST_ROWS,
    types: Mapping[str, str] | None = None,
    csv: Csv | None = None,
) -> Inspection:
    """Inspect about ``rows`` random rows of the table at a location that jobs may read.

    ``types`` and ``csv`` as in a job. Of files, texts that may stand for a missing value are read
    as missing. Raises InputError or JobError as opening the table does.
    """
    started = time.perf_counter()
    floor = Floor(publish.check_input(url))
    csv = csv or Csv()
    inspection = _inspected(url, rows, types, csv, floor)
    missing = inspection.missing_texts
    if missing:
        again = replace(csv, missing=(*csv.missing, *missing))
        inspection = replace(_inspected(url, rows, types, again, floor), missing_texts=missing)
    return replace(inspection, seconds=round(time.perf_counter() - started, 3))


def _inspected(
    url: str, rows: int, types: Mapping[str, str] | None, csv: Csv, floor: Floor
) -> Inspection:
    table = open_table(url, types=types, csv=csv)
    publish.check_locations(table)
    sample = drawn(table, rows)
    coded = [
        Column.of(each.name, sample[each.name], each.type)
        for each in table.schema
        if comparable(each.type)
    ]
    sampled = len(sample) < table.rows
    persons = _persons(coded, floor, sampled)
    one_each = _one_row_each(coded, persons, len(sample))
    people = {column.name: column.taken(one_each) for column in coded}
    found = {
        column.name: _alone(column, people[column.name], column is persons, sampled, floor)
        for column in coded
    }
    looked_at = _looked_at(people, found)
    together = UniqueRows.of(looked_at)
    columns = [found[each.name] if each.name in found else _nested(each) for each in table.schema]
    of_files = kind_of_table(url) is None  # of other tables a job says neither types nor csv
    if not of_files:
        columns = [_without_types(column) for column in columns]
    return Inspection(
        stores.shown(url),
        table.rows,
        len(sample),
        [_with_involved(column, together) for column in columns],
        together,
        list(dependencies(looked_at)),
        None if persons is None else persons.name,
        sorted(
            {text for each in people.values() for text in missing_texts(each, floor.k)}
            if of_files
            else ()
        ),
        floor=floor,
    )


def _persons(columns: Sequence[Column], floor: Floor, sampled: bool) -> Column | None:
    """The column that tells persons apart, by a policy or by its name and values."""
    by_policy = (column for column in columns if floor.is_entity_id(column.name))
    return next(by_policy, None) or roles.persons(columns, sampled=sampled)


def _one_row_each(
    columns: Sequence[Column], persons: Column | None, rows: int
) -> NDArray[np.int64]:
    """Numbers of rows of which no two are known to be one person's."""
    taken = np.arange(rows)
    keys = roles.keys_of_people(columns)
    if persons is not None and all(key is not persons for key in keys):
        keys.append(persons)
    for key in keys:
        codes = key.codes[taken]
        _, first = np.unique(codes, return_index=True)
        taken = np.sort(np.concatenate([taken[first], taken[codes == 0]]))
        taken = np.unique(taken)
    return taken


def _alone(
    column: Column, people: Column, is_persons: bool, sampled: bool, floor: Floor
) -> InspectedColumn:
    """What is known of a column, by all rows and by one row of each of the ``people``."""
    kind = kind_of(column)
    may_list = not sampled and people.distinct == column.distinct and people.fewest >= floor.k
    required = floor.role(column.name)
    proposal = roles.proposed(column, kind, may_list=may_list, required=required)
    if is_persons:
        proposal = Proposal("entity_id", "tells people apart, who may have several rows")
    is_shown = proposal.role not in ("identifier", "entity_id")
    return InspectedColumn(
        column.name,
        name_of(column.type) or str(column.type),
        proposal,
        1 - column.present / max(1, column.rows),
        column.distinct,
        column.distinction,
        column.separation,
        people.single,
        kind=kind,
        common=_common(people, floor.k) if is_shown else (),
        spread=spread(people, floor.k) if is_shown else Spread(),
        fullest=_fullest(column),
    )


def _without_types(column: InspectedColumn) -> InspectedColumn:
    """The same for a job that cannot say that whole numbers are texts."""
    if column.type == "text" or not column.proposal.generalization.startswith("ladder:postal"):
        return column
    return replace(column, proposal=column.proposal._replace(generalization=""))


def _nested(column: pa.Field) -> InspectedColumn:
    reason = "nested values cannot be compared; flatten the column"
    return InspectedColumn(column.name, str(column.type), Proposal("left_out", reason))


def _common(column: Column, k: int) -> list[tuple[str, float]]:
    """The most frequent values of a column with few, each of ``k`` people, most rows first."""
    if column.distinct > MANY:
        return []
    codes = [int(code) for code in np.argsort(-column.counts[1:], kind="stable") + 1]
    shown = [code for code in codes if column.counts[code] >= k][:_COMMON]
    texts = text_of(column.values.take(pa.array([code - 1 for code in shown], pa.int64())))
    return [
        (text, float(column.counts[code] / column.rows))
        for text, code in zip(texts.to_pylist(), shown, strict=True)
    ]


def _fullest(column: Column) -> float | None:
    if not column.is_number or column.distinct <= MANY:
        return None
    ends = near_ends(column.values, as_width(WIDTH), missing=False)
    below = np.cumsum(column.counts)
    return float((below[ends + 1] - below[:-1]).max() / column.rows)


def _looked_at(people: Mapping[str, Column], found: Mapping[str, InspectedColumn]) -> list[Column]:
    """The columns that are combined, of at most `unique_rows.MOST_ROWS` people."""
    order = ("quasi_identifier", "sensitive", "undecided")
    chosen = sorted(
        (each for each in found.values() if each.proposal.role in order and each.distinct > 1),
        key=lambda each: (order.index(each.proposal.role), -each.separation),
    )[: unique_rows.MOST_COLUMNS]
    names = {each.name for each in chosen}
    columns = [column for name, column in people.items() if name in names]
    if not columns or columns[0].rows <= unique_rows.MOST_ROWS:
        return columns
    random = np.random.default_rng(0)
    rows = np.sort(random.choice(columns[0].rows, unique_rows.MOST_ROWS, replace=False))
    return [column.taken(rows) for column in columns]


def _with_involved(column: InspectedColumn, together: UniqueRows) -> InspectedColumn:
    return replace(column, involved=together.involved.get(column.name))
