"""A privacy criterion of a package of its own: one class in one file, and an entry point.

A package that has in its ``pyproject.toml``

    [project.entry-points."mondrian_ops.criteria"]
    beta_likeness = "beta_likeness:BetaLikeness"

adds the section ``beta_likeness`` to every job: its options are read, checked and described as
those of the job itself. A job with the section asks for the criterion on each sensitive column.
docs/extend.md shows a whole one. DAG files import this module, so it needs the standard library
only, and so should the file of a criterion: it imports numpy in its methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from mondrian_ops.added import Group
from mondrian_ops.errors import JobError
from mondrian_ops.job.options import Option, Options, options_of
from mondrian_ops.job.sections import PRIVACY

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

GROUP = "mondrian_ops.criteria"
"""The group of entry points."""
_ADDED = Group(GROUP, "criterion", JobError)


class Counts(NamedTuple):
    """How often the values of a sensitive column occur in some classes, and in all rows.

    ``values`` (values,) are distinct and ascend; the first one is null and stands for what is
    missing. ``whole`` (values,) int64 is above 0 for all but the first. ``classes``: (classes,
    values) int64.
    """

    values: pa.Array[Any]
    whole: NDArray[np.int64]
    classes: NDArray[np.int64]


class Criterion(Options, ABC):
    """A requirement on the values of each sensitive column within every class.

    A subclass is a frozen dataclass with slots, whose fields are options. ``holds`` is asked about
    the sides of each cut, with the counts of codes, perhaps by several threads; a cut is made only
    if both sides satisfy it, so that the classes do. ``measure`` is asked by the check of the
    release as written, with counts of the values that were read back. So write the two apart from
    each other: an error in one is noticed by the other.
    """

    __slots__ = ()

    title: ClassVar[str]
    """Its name for people, such as ``β-likeness``."""
    at_most: ClassVar[bool] = False
    """Whether the number that is required is a ceiling, not a floor."""
    needs_all_rows: ClassVar[bool] = True
    """Whether it compares with `Counts.whole`, so that no row may be left out after the cutting."""

    @property
    @abstractmethod
    def level(self) -> float:
        """The number that is required of every class."""

    @property
    def min_class_size(self) -> int:
        """The minimum number of rows of a class that satisfies the criterion."""
        return 1

    @abstractmethod
    def holds(self, counts: Counts) -> NDArray[np.bool_]:
        """(classes,) whether each class satisfies the criterion."""

    @abstractmethod
    def measure(self, counts: Counts) -> NDArray[Any]:
        """(classes,) the number that each class achieves, to be compared with `level`."""

    @abstractmethod
    def says(self, column: str) -> str:
        """The criterion on a column and its numbers, in a few words for reports and errors."""

    @abstractmethod
    def means(self, columns: str) -> str:
        """What it means for people, in a sentence about the sensitive ``columns``."""

    def covers(self, earlier: Self) -> bool:
        """Whether it promises no less than the same criterion with ``earlier`` options.

        These are those of a policy, or of a release that is to be replaced.
        """
        return self == earlier


@cache
def criteria() -> Mapping[str, EntryPoint]:
    """The criteria of the packages that are installed here, by name.

    Raises JobError where two packages give one name to different criteria.
    """
    found = {name: _ADDED.entry(name) for name in _ADDED.names()}
    return {name: entry for name, entry in found.items() if entry is not None}


@cache
def sections() -> Mapping[str, Option]:
    """The sections of these criteria, as options of a job.

    Raises JobError where an entry point does not name a criterion.
    """
    return {name: _section(name, each) for name, each in criteria().items()}


def _section(name: str, entry: EntryPoint) -> Option:
    model = _ADDED.loaded(entry, Criterion)
    return Option(
        f"Requires {model.title} of each sensitive column.",
        title=model.title,
        unset="no requirement",
        name=name,
        kind=model,
        nullable=True,
        form=PRIVACY,
    )


class WithCriteria(Options):
    """A model with the sections of installed criteria, whose field ``criteria`` keeps them."""

    __slots__ = ()
    criteria: Mapping[str, Criterion]

    @classmethod
    def added(cls) -> Mapping[str, Option]:
        """Raises JobError where a criterion has the name of an option."""
        for name in sections():
            if name in options_of(cls):
                raise JobError(
                    f"{name}: a package adds a criterion by the name of an option; rename its "
                    "entry point"
                )
        return sections()

    @classmethod
    def with_sections(cls, sections: Mapping[str, Any]) -> dict[str, Any]:
        return {"criteria": sections}

    def to_dict(self, complete: bool = False) -> dict[str, Any]:
        asked = {name: each.to_dict(complete=True) for name, each in self.criteria.items()}
        return Options.to_dict(self, complete) | asked
