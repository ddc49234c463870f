"""The contract of a dataset: the columns of its last release, and how a drop differs from it.

A column has a role, a type and, as a quasi-identifier, a generalization. Columns that are left out
of the release have a role only: it does not matter to anybody whether they are there. No value of
the data is part of a contract.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Self

import pyarrow as pa

from mondrian_ops.data.encoding import value_type
from mondrian_ops.data.generalizations import described, generalization_of
from mondrian_ops.data.grid_steps import GRID
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.named_types import is_text
from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.late_methods import dataclass

LEFT_OUT = "left out"
_QUASI, _SENSITIVE, _RAW = "quasi-identifier", "sensitive", "published unchanged"
_REDACTED, _ENTITY = "redacted", "tells persons apart"
_NO_VALUES = str(pa.null())
_INTERVAL = "interval"
_MAX_NAMES = 20
_NUMBERS = ("int", "uint", "float", "halffloat", "double", "decimal")
_NAMED = {
    "text": "text",
    "int64": "integer",
    "double": "number",
    "decimal128": "decimal",
    "bool": "boolean",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "timestamp[us, tz=UTC]": "timestamp",
}
"""The types of CSV files."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column in a contract.

    ``type`` is empty where no value of it counts. ``generalization``, of a quasi-identifier, has
    the steps of a grid or a ladder, and a digest of the hierarchy. ``chosen``: what its values
    decide where the job does not, in full: ``interval``, ``grid 20``, ``set`` or ``prefix``; empty
    in a night whose rows all wait; None before it is decided, and of releases of earlier versions.
    """

    role: str
    type: str = ""
    generalization: str = ""
    chosen: str | None = None

    @property
    def is_published(self) -> bool:
        """Whether it matters to the release, even if only to count persons."""
        return self.role != LEFT_OUT

    @property
    def has_values(self) -> bool:
        """Whether its type is known; that of a column without any value is not."""
        return self.type != _NO_VALUES

    @property
    def without_values(self) -> Self:
        """The column as it is where it has no values, so that its type is not known."""
        return replace(self, type=_NO_VALUES) if self.type else self

    def agrees(self, other: Column | None) -> bool:
        """Whether a release may have the one column in place of the other."""
        if other is None or self.role != other.role:
            return False
        if not (self.has_values and other.has_values):
            return True
        if self.chosen and other.chosen and self.chosen != other.chosen:
            return False
        return self == replace(other, chosen=self.chosen)

    def kept_from(self, *others: Column | None) -> Column:
        """The column with the type, if it has no values, and the choice of the first that agrees.

        Earlier versions chose no grid, so that the intervals of theirs stay without one.
        """
        for other in others:
            if other is None or not self.agrees(other):
                continue
            kept = other if other.has_values and not self.has_values else self
            chosen = self.chosen or other.chosen
            return replace(kept, chosen=_INTERVAL if other._is_old_interval else chosen)
        last = others[0]
        if last is not None and last._is_old_interval and self.generalization.startswith(_INTERVAL):
            return replace(self, chosen=_INTERVAL)
        return self

    @property
    def _is_old_interval(self) -> bool:
        return self.chosen is None and self.generalization.startswith(_INTERVAL)

    def __str__(self) -> str:
        how = self.generalization
        if self.chosen and self.chosen != how.partition(" ")[0]:
            how += f", by its values {self.chosen}"
        how = f" ({how})" if how else ""
        return ", ".join(filter(None, (self.type, self.role + how)))


Contract = Mapping[str, Column]
"""The columns of a source by name."""


@dataclass(frozen=True, slots=True)
class Change:
    """A column that is not as in the last release; ``before`` or ``after`` is None if it lacks."""

    name: str
    before: Column | None
    after: Column | None

    def __str__(self) -> str:
        if self.before is None:
            return f"column {self.name!r} is new ({self.after})"
        if self.after is None:
            return f"column {self.name!r} is missing, and was {self.before}"
        return f"column {self.name!r} is {self.after}, and was {self.before}"

    def to_json(self) -> dict[str, Any]:
        """A JSON value."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The change that :meth:`to_json` gave."""
        before, after = (value[key] and Column(**value[key]) for key in ("before", "after"))
        return cls(value["name"], before, after)

    @staticmethod
    def digest_of(changes: Sequence[Change]) -> str:
        """A text that is the same for the same changes only."""
        named = json.dumps([each.to_json() for each in changes], sort_keys=True)
        return hashlib.sha256(named.encode()).hexdigest()

    @staticmethod
    def text_of(changes: Sequence[Change]) -> str:
        """Changes in words."""
        more = len(changes) - _MAX_NAMES
        shown = [str(each) for each in changes[:_MAX_NAMES]]
        return "; ".join([*shown, *([f"and {more} more"] if more > 0 else [])])


def contract_of(
    job: Job,
    schema: pa.Schema,
    hierarchies: Mapping[str, Hierarchy],
    index: Sequence[str] = (),
    declared: Iterable[pa.Field] = (),
) -> dict[str, Column]:
    """The columns of a source with this ``schema`` as the job releases them.

    ``index``: a pandas index, which is left out. ``declared``: columns in the types in which they
    are published as they are, where these are others than in the schema.
    """
    types = {field.name: type_name(field.type) for field in declared}
    quasi = {each.name: each for each in job.quasi_identifiers}
    columns = {name: Column(LEFT_OUT) for name in index}
    for field in schema:
        name = field.name
        type_ = types.get(name, type_name(field.type))
        if name in quasi:
            how = _generalization(quasi[name], field.type, job, hierarchies.get(name))
            chosen = None if _is_chosen(quasi[name], how, job) else how.partition(" ")[0]
            columns[name] = Column(_QUASI, type_name(field.type), how, chosen)
        elif name in job.sensitive:
            columns[name] = Column(_SENSITIVE, type_)
        elif name in job.identifiers:
            columns[name] = _identifier(name, type_, job)
        else:
            is_raw = job.unlisted == "publish"
            columns[name] = Column(_RAW, type_) if is_raw else Column(LEFT_OUT)
    return columns


def _identifier(name: str, type_: str, job: Job) -> Column:
    is_redacted = job.identifier_policy == "redact"
    if name == job.entity_id:  # a number is the same person in each type of numbers
        type_ = "numbers" if type_.startswith(_NUMBERS) else type_
        return Column(f"{_ENTITY}, {_REDACTED}" if is_redacted else _ENTITY, type_)
    return Column(_REDACTED if is_redacted else LEFT_OUT)


def type_name(type_: pa.DataType) -> str:
    """A type in words: how the values of a text are stored does not matter."""
    type_ = value_type(type_)
    return "text" if is_text(type_) else str(type_)


def _generalization(
    quasi: QuasiIdentifier, type_: pa.DataType, job: Job, hierarchy: Hierarchy | None
) -> str:
    try:
        how = generalization_of(quasi, type_)
    except JobError:  # who differs from the last release hears of that first
        how = str(quasi.generalization)
    tree = ""
    if hierarchy is not None:
        content = json.dumps(hierarchy.to_json(), sort_keys=True).encode()
        how, tree = "hierarchy", hashlib.sha256(content).hexdigest()[:12]
    if how == "set" and job.set_style == "list":
        return "set as lists"
    is_line = how == _INTERVAL and quasi.order is None
    how = described(quasi, how, tree)
    # Earlier versions published bounds without the flag, and said "as bounds".
    return f"{how} as bounds and hidden" if is_line and job.interval_style == "bounds" else how


def _is_chosen(quasi: QuasiIdentifier, how: str, job: Job) -> bool:
    """Whether the values of a column decide how exactly it is generalized, see `Grids`."""
    if how.startswith(_INTERVAL) and not job.has_grids:
        return False
    return quasi.grid == "auto" or quasi.generalization is None


def decided(
    contract: Contract, generalizations: Mapping[str, str], steps: Mapping[str, float]
) -> dict[str, Column]:
    """The contract with what the values of a release decided: see `Column`.

    ``generalizations`` of its quasi-identifiers, ``steps`` of those that have a grid; without any
    the columns are left to the next release.
    """
    return {
        name: column
        if column.chosen or column.role != _QUASI
        else replace(column, chosen=_chosen(column, generalizations.get(name, ""), steps.get(name)))
        for name, column in contract.items()
    }


def _chosen(column: Column, how: str, step: float | None) -> str:
    if step is not None:
        return f"{GRID}{step:.15g}"
    # A column without values has no type, so that it is generalized like a text this night.
    is_of_type = (how == _INTERVAL) == column.generalization.startswith(_INTERVAL)
    return how if column.has_values and is_of_type else ""


def named_types(contract: Contract) -> dict[str, str]:
    """The types of columns of CSV files, as a job names them; others are left out."""
    names = {name: _NAMED.get(each.type.partition("(")[0]) for name, each in contract.items()}
    return {name: each for name, each in names.items() if each is not None}


def changes(now: Contract, last: Contract, earlier: Contract | None = None) -> list[Change]:
    """How the columns of a drop differ from those of the last release, by name.

    ``earlier``: of the release of the night before the drop's, if the drop comes late. Columns,
    types and generalizations that are those of that night are no change; but a role is always that
    of the last release.
    """
    found = []
    for name in sorted({*now, *last}):
        mine, theirs = now.get(name), last.get(name)
        if _alike(mine, theirs) or (
            earlier is not None and _as_earlier(mine, earlier.get(name), theirs)
        ):
            continue
        found.append(Change(name, *_without_choices(theirs, mine)))
    return found


def _without_choices(*columns: Column | None) -> Iterable[Column | None]:
    """Two columns, as what their values decided is only named where nothing else differs."""
    plain = [each and replace(each, chosen=None) for each in columns]
    return columns if plain[0] == plain[1] else plain


def _alike(one: Column | None, other: Column | None) -> bool:
    """Whether it does not matter which of two columns is there; one that is left out does not."""
    if one is None or not one.is_published:
        return other is None or not other.is_published
    return one.agrees(other)


def _as_earlier(mine: Column | None, then: Column | None, last: Column | None) -> bool:
    """Whether a column of a late drop is as it was then, in a role that is none of the past."""
    return _alike(mine, then) and (mine is None or last is None or last.role == mine.role)


def completed(now: Contract, last: Contract, earlier: Contract | None = None) -> dict[str, Column]:
    """The columns of a drop, with what those of the last release that agree had before.

    This is the type of a column without any value, and what its values decided. ``earlier``: as
    for `changes`.
    """
    return {
        name: column.kept_from(last.get(name), (earlier or {}).get(name))
        for name, column in now.items()
    }
