"""A quasi-identifier of a job: a column and how it is generalized.

In a job it is a mapping, ``{name: age, generalization: hierarchy, ladder: [5, 10], origin: 16}``,
or a short form, which the trigger form and ``--set`` take:

====================================  =====================================================
``age``                               the default of the column's type
``zip=prefix``                        a generalization by name
``country=hierarchy:countries.csv``   a hierarchy read from a file
``age=ladder:5/10/20@16``             a ladder of intervals, counted from the origin 16 (else 0)
``age=grid:5@16``                     intervals widened to a grid of step 5 from the origin 16
====================================  =====================================================

A column whose name holds ``=`` needs the mapping. One without a name is ``""``: ``=prefix``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, get_args

from mondrian_ops.core.errors import did_you_mean
from mondrian_ops.core.options import Options, as_number, shown

__all__ = ["Generalization", "QuasiIdentifier", "read_quasi_identifier"]

Generalization = Literal["interval", "hierarchy", "prefix", "set"]

_GENERALIZATIONS: tuple[Generalization, ...] = get_args(Generalization)
_GOES_WITH = {"hierarchy": "hierarchy", "ladder": "hierarchy", "grid": "interval"}
_KEYS = ("name", "generalization", "hierarchy", "ladder", "origin", "grid")
_SHORT_FORMS = (
    "NAME, NAME=interval, NAME=prefix, NAME=set, NAME=hierarchy:FILE, "
    "NAME=ladder:5/10/20@ORIGIN or NAME=grid:STEP@ORIGIN"
)


@dataclass(frozen=True, slots=True)
class QuasiIdentifier:
    """A column that could be linked with other sources, and how its values are generalized.

    ``generalization`` None means the default of the column's type: interval for numbers, dates
    and timestamps, set for text and booleans. ``hierarchy`` is a file's name. ``ladder`` are the
    widths of its levels, finest first, each a multiple of the one before; ``grid`` is the step to
    which intervals are widened. Both count from ``origin``.
    """

    name: str
    generalization: Generalization | None = None
    hierarchy: str | None = None
    ladder: tuple[float, ...] | None = None
    origin: float = 0
    grid: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The mapping form, JSON-able, without what was not given."""
        given: dict[str, Any] = {"name": self.name}
        if self.generalization is not None:
            given["generalization"] = self.generalization
        if self.hierarchy is not None:
            given["hierarchy"] = self.hierarchy
        if self.ladder is not None:
            given["ladder"] = list(self.ladder)
        if self.origin:
            given["origin"] = self.origin
        if self.grid is not None:
            given["grid"] = self.grid
        return given


def read_quasi_identifier(job: Options, path: str, item: object) -> QuasiIdentifier:
    """The quasi-identifier that ``item``, a mapping or a short form, describes.

    Raises JobError naming ``path`` and the option, its value and the remedy.
    """
    if isinstance(item, str):
        item = _expand(job, path, item)
    if not isinstance(item, Mapping):
        raise job.error(path, f"must be a mapping with a name, or a short form, not {shown(item)}")
    options = Options(item, path=job.path(path), known=_KEYS, source=job.source)
    return _checked(options)


def _expand(job: Options, path: str, short: str) -> Mapping[str, object]:
    """The mapping that a short form stands for."""
    name, equals, how = short.partition("=")
    if not equals:
        return {"name": name}
    name, how = name.strip(), how.strip()
    word, _, argument = how.partition(":")
    word, argument = word.strip(), argument.strip()
    if word == "hierarchy" and argument:
        return {"name": name, "generalization": "hierarchy", "hierarchy": argument}
    if word == "ladder" and argument:
        steps, _, origin = argument.partition("@")
        return {
            "name": name,
            "generalization": "hierarchy",
            "ladder": steps.split("/"),
            "origin": origin,
        }
    if word == "grid" and argument:
        step, _, origin = argument.partition("@")
        return {"name": name, "generalization": "interval", "grid": step, "origin": origin}
    if how in _GENERALIZATIONS:
        return {"name": name, "generalization": how}
    hint = did_you_mean(word, (*_GENERALIZATIONS, "ladder", "grid"))
    hint = "" if hint.endswith(f"{word!r}?)") else hint
    raise job.error(path, f"{shown(short)} is no short form{hint}; write {_SHORT_FORMS}")


def _checked(options: Options) -> QuasiIdentifier:
    name = options.text("name", blank=True)
    if name is None:
        raise options.error("name", "is required: the column of this quasi-identifier")
    hierarchy, ladder = options.text("hierarchy"), _ladder(options)
    grid, origin = options.number("grid"), options.number("origin")
    generalization = _generalization(options)
    if generalization is None and (hierarchy is not None or ladder is not None):
        generalization = "hierarchy"
    if generalization is None and grid is not None:
        generalization = "interval"
    given = {"hierarchy": hierarchy, "ladder": ladder, "grid": grid}
    for key, wanted in _GOES_WITH.items():
        if given[key] is not None and generalization != wanted:
            raise options.error(
                key,
                f"goes with generalization: {wanted}, not {generalization}; "
                f"change one or remove {key}",
            )
    if generalization == "hierarchy":
        _check_one_tree(options, name, hierarchy, ladder)
    if grid is not None and grid <= 0:
        raise options.error("grid", f"must be a step above 0, not {shown(grid)}")
    if origin and grid is None and ladder is None:
        raise options.error(
            "origin", "says where a ladder or a grid starts; give one, or remove it"
        )
    return QuasiIdentifier(name, generalization, hierarchy, ladder, origin or 0, grid)


def _check_one_tree(
    options: Options, name: str, hierarchy: str | None, ladder: tuple[float, ...] | None
) -> None:
    if hierarchy is None and ladder is None:
        raise options.error(
            "hierarchy",
            f"is required by generalization: hierarchy of column {name!r}; name a file, "
            "or for numbers give a ladder such as [5, 10, 20]",
        )
    if hierarchy is not None and ladder is not None:
        raise options.error("ladder", "stands in for a hierarchy file; remove one of the two")


def _generalization(options: Options) -> Generalization | None:
    if options.get("generalization") is None:
        return None
    return options.choice("generalization", _GENERALIZATIONS, "interval")


def _ladder(options: Options) -> tuple[float, ...] | None:
    options.check_count("ladder", "hierarchy_levels")
    widths: list[float] = []
    for path, item in options.items("ladder"):
        width = as_number(item)
        if width is None or width <= 0:
            raise options.error(path, f"must be a width above 0, not {shown(item)}")
        widths.append(width)
    for at, (fine, coarse) in enumerate(pairwise(widths), start=1):
        if coarse <= fine or Fraction(str(coarse)) % Fraction(str(fine)):
            raise options.error(
                f"ladder[{at}]",
                f"{coarse} is not a larger multiple of the width before it, {fine}; "
                "intervals must nest, such as [5, 10, 20]",
            )
    return tuple(widths) or None
