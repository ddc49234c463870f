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
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, Literal, Self, get_args

from mondrian_ops.errors import did_you_mean
from mondrian_ops.job.options import Options, option, shown, wrong
from mondrian_ops.late_methods import dataclass

Generalization = Literal["interval", "hierarchy", "prefix", "set"]

_SHORT_FORMS = (
    "NAME, NAME=interval, NAME=prefix, NAME=set, NAME=hierarchy:FILE, "
    "NAME=ladder:5/10/20@ORIGIN or NAME=grid:STEP@ORIGIN"
)


@dataclass(frozen=True, slots=True)
class QuasiIdentifier(Options):
    """A column that could be linked with other sources, and how its values are generalized."""

    described: ClassVar[str] = "a mapping with a name, or a short form"

    name: str = option(text="The column.", blank=True, examples=("age",))
    generalization: Generalization | None = option(
        None,
        text="How the values of an equivalence class are generalized.",
        choices={
            "interval": "the interval from the lowest to the highest value",
            "hierarchy": "the lowest common ancestor in a generalization hierarchy",
            "prefix": "the common prefix of the texts",
            "set": "the set of the values",
        },
        unset="interval for numbers, dates and timestamps; set for texts and booleans",
    )
    hierarchy: str | None = option(
        None,
        text="The file of the generalization hierarchy, beside the job's file or in "
        "`include/hierarchies`.",
        only_with={"generalization": ("hierarchy",)},
        examples=("countries.csv",),
    )
    ladder: tuple[float, ...] | None = option(
        None,
        text="A hierarchy of intervals instead of a file: the widths of its levels, finest first. "
        "Each width is a multiple of the one before.",
        noun="a width",
        above=0,
        limit="hierarchy_levels",
        only_with={"generalization": ("hierarchy",)},
        examples=((5, 10, 20),),
    )
    origin: float = option(
        0, text="Where a ladder or a grid starts. For dates: a day counted from 1970-01-01."
    )
    grid: float | None = option(
        None,
        text="The step of the grid to which intervals are widened. For dates: a number of days.",
        noun="a step",
        above=0,
        unset="tight intervals",
        only_with={"generalization": ("interval",)},
        see="[Grids](#hide-the-ends-of-intervals-with-a-grid)",
    )

    @classmethod
    def expanded(cls, text: str, path: str) -> Mapping[str, object]:
        """The mapping that a short form stands for; JobError where it is none."""
        name, equals, how = text.partition("=")
        if not equals:
            return {"name": name}
        name, how = name.strip(), how.strip()
        word, _, argument = how.partition(":")
        word, argument = word.strip(), argument.strip()
        steps, _, origin = argument.partition("@")
        widths = [step for step in steps.split("/") if step.strip()]
        forms: Mapping[str, Mapping[str, object]] = {
            "hierarchy": {"generalization": "hierarchy", "hierarchy": argument},
            "ladder": {"generalization": "hierarchy", "ladder": widths, "origin": origin},
            "grid": {"generalization": "interval", "grid": steps, "origin": origin},
        }
        if argument and word in forms:
            return {"name": name, **forms[word]}
        words = get_args(Generalization)
        if how in words:
            return {"name": name, "generalization": how}
        hint = did_you_mean(word, (*words, "ladder", "grid"))
        hint = "" if hint.endswith(f"{word!r}?)") else hint
        raise wrong(path, f"{shown(text)} is no short form{hint}; write {_SHORT_FORMS}")

    def completed(self) -> Self:
        """The same with its generalization, where a hierarchy, ladder or grid implies one."""
        implied: Generalization | None = None
        if self.hierarchy is not None or self.ladder is not None:
            implied = "hierarchy"
        elif self.grid is not None:
            implied = "interval"
        return replace(self, generalization=self.generalization or implied)

    def check(self, path: str) -> None:
        """Raise JobError where the options, which are at ``path``, contradict each other."""
        if self.generalization == "hierarchy":
            self._check_one_tree(path)
        if self.origin and self.grid is None and self.ladder is None:
            raise wrong(
                f"{path}.origin",
                "applies only to a ladder or a grid, whose start it sets; add one of them, "
                "or remove origin",
            )

    def _check_one_tree(self, path: str) -> None:
        if self.hierarchy is None and self.ladder is None:
            raise wrong(
                f"{path}.hierarchy",
                f"is required by generalization: hierarchy of column {self.name!r}; name a file, "
                "or for numbers give a ladder such as [5, 10, 20]",
            )
        if self.hierarchy is not None and self.ladder is not None:
            raise wrong(f"{path}.ladder", "replaces a hierarchy file; remove one of the two")
        for at, (fine, coarse) in enumerate(pairwise(self.ladder or ()), start=1):
            if coarse <= fine or Fraction(str(coarse)) % Fraction(str(fine)):
                raise wrong(
                    f"{path}.ladder[{at}]",
                    f"{coarse} is not a larger multiple of the width before it, {fine}; "
                    "intervals must nest, such as [5, 10, 20]",
                )
