"""A quasi-identifier of a job: a column and how it is generalized.

In a job it is a mapping, ``{name: age, generalization: hierarchy, ladder: [5, 10], origin: 16}``,
or a short form, which the trigger form and ``--set`` take:

====================================  =====================================================
``age``                               the default of the column's type
``zip=prefix``                        a generalization by name
``country=hierarchy:countries.csv``   a hierarchy read from a file
``age=ladder:5/10/20@16``             a ladder of intervals, counted from the origin 16 (else 0)
``visit=ladder:month/year``           units of the calendar, or another ladder by its name
``pay=order:low/medium/high``         intervals of categories in this order
``zip=prefix:5/3/1``                  prefixes of so many characters
``age=grid:5@16``                     intervals widened to a grid of step 5 from the origin 16
``lat=grid:auto``                     the same with a step that follows from the values
``age=*3``, ``zip=prefix*3``          any of these with a weight
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
from mondrian_ops.job.options import Options, option, percent_of, shown, wrong
from mondrian_ops.late_methods import dataclass

Generalization = Literal["interval", "hierarchy", "prefix", "set"]
Step = Literal[
    "day", "week", "month", "quarter", "year", "decade", "calendar", "icd10", "postal", "ip"
]

_SHORT_FORMS = (
    "NAME, NAME=interval, NAME=prefix, NAME=set, NAME=hierarchy:FILE, NAME=prefix:5/3/1, "
    "NAME=order:LOW/HIGH, NAME=ladder:5/10/20@ORIGIN, NAME=ladder:month/year, "
    "NAME=grid:STEP@ORIGIN or NAME=grid:auto, each with *WEIGHT if it has one"
)
_UNITS = ("day", "week", "month", "quarter", "year", "decade")
_CALENDAR = ("day", "month", "quarter", "year", "decade")
CALENDAR = (*_UNITS, "calendar")
"""The steps of ladders of dates."""
_OF_PREFIXES = ("postal", "ip")
_LISTED = ", ".join(_UNITS)


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
        unset="interval for numbers, dates and timestamps; set for texts and booleans, but prefix "
        "for texts of which half of the rows have values that fewer than k rows (persons) have",
    )
    hierarchy: str | None = option(
        None,
        text="The file of the generalization hierarchy, beside the job's file or in "
        "`include/hierarchies`.",
        only_with={"generalization": ("hierarchy",)},
        examples=("countries.csv",),
    )
    ladder: tuple[float | Step, ...] | None = option(
        None,
        text="A hierarchy without a file. Of numbers: the widths of intervals, finest first, each "
        "a multiple of the one before. Of dates and timestamps: units of the calendar, finest "
        "first; nothing finer is published. Of texts: a name, or with `prefix` numbers of "
        "characters, longest first.",
        choices={
            "day": "`2024-05-01`",
            "week": "`2024-W18`, a week of ISO 8601; only above `day`, for no weeks make a month",
            "month": "`2024-05`",
            "quarter": "`2024-Q2`",
            "year": "`2024`",
            "decade": "`2020s`",
            "calendar": "all of these but weeks",
            "icd10": "codes of ICD-10, such as `E11.9`: category `E11`, block `E10-E14`, chapter "
            "`E00-E90`",
            "postal": "prefixes of postal codes: `SW1A 1AA`, `SW1A****`, `SW******`",
            "ip": "prefixes of IP addresses: networks of 24, 16 and 8 bits, of IPv6 of 64, 48, 32 "
            "and 16",
        },
        noun="a width",
        above=0,
        limit="hierarchy_levels",
        only_with={"generalization": ("hierarchy", "prefix")},
        see="[Ladders](#write-a-ladder)",
        examples=((5, 10, 20), ("month", "year")),
    )
    order: tuple[str, ...] | None = option(
        None,
        text="The values of a column of text in their order, least first. Classes are then "
        "published as intervals.",
        noun="a value",
        limit="hierarchy_rows",
        only_with={"generalization": ("interval",)},
        see="[Ordered categories](#give-categories-an-order)",
        examples=(("low", "medium", "high"),),
    )
    origin: float = option(
        0, text="Where a ladder or a grid starts. For dates: a day counted from 1970-01-01."
    )
    grid: float | Literal["auto"] | None = option(
        None,
        text="The step of the grid to which intervals are widened. For dates: a number of days.",
        noun="a step",
        above=0,
        choices={"auto": "a step at which about k rows (persons) lie between two ends"},
        unset="tight intervals; but `auto` for columns of no named generalization whose values "
        "mostly belong to fewer than k rows (persons), and could be more than a thousand",
        only_with={"generalization": ("interval",)},
        see="[Grids](#hide-the-ends-of-intervals-with-a-grid)",
    )
    top: str | None = option(
        None,
        text="A number or a date: all values from it on are published alike, `[200000, inf)`. Or "
        "the share of the rows that are, `1 %`.",
        noun="a number, a date or a share",
        numbers=True,
        see="[Open ends](#leave-the-ends-of-a-column-open)",
        examples=("200000", "1 %"),
    )
    bottom: str | None = option(
        None,
        text="The same of values up to it: `(-inf, 1000]`.",
        noun="a number, a date or a share",
        numbers=True,
        examples=("1000", "1 %"),
    )
    scale: Literal["linear", "log", "rank"] = option(
        "linear",
        text="How wide intervals are when cuts are weighed. Reports measure losses as before.",
        choices={
            "linear": "as the distance of their ends",
            "log": "as the distance of the logarithms, log(1 + |x|), of numbers: a fine grain for "
            "small values",
            "rank": "as the share of the rows between their ends",
        },
        see="[How loss is measured](algorithms.md#how-loss-is-measured)",
    )
    weight: float = option(
        1,
        text="How much the information lost of this column counts beside that of others: cuts keep "
        "a column of weight 3 finer, and coarsen others instead.",
        above=0,
        maximum=1000,
        see="[How loss is measured](algorithms.md#how-loss-is-measured)",
    )

    @classmethod
    def expanded(cls, text: str, path: str) -> Mapping[str, object]:
        """The mapping that a short form stands for; JobError where it is none."""
        name, equals, how = text.partition("=")
        if not equals:
            return {"name": name}
        name, how = name.strip(), how.strip()
        way, times, weight = how.partition("*")
        if times and weight.strip():
            plain = cls.expanded(f"{name}={way}", path) if way.strip() else {"name": name}
            return {**plain, "weight": weight.strip()}
        word, _, argument = how.partition(":")
        word, argument = word.strip(), argument.strip()
        steps, _, origin = argument.partition("@")
        widths = [step for step in steps.split("/") if step.strip()]
        forms: Mapping[str, Mapping[str, object]] = {
            "hierarchy": {"generalization": "hierarchy", "hierarchy": argument},
            "ladder": {"ladder": widths, "origin": origin},
            "prefix": {"generalization": "prefix", "ladder": widths, "origin": origin},
            "order": {
                "generalization": "interval",
                "order": [*map(str.strip, argument.split("/"))],
            },
            "grid": {"generalization": "interval", "grid": steps, "origin": origin},
        }
        if argument and word in forms:
            return {"name": name, **forms[word]}
        words = get_args(Generalization)
        if how in words:
            return {"name": name, "generalization": how}
        hint = did_you_mean(word, (*words, "ladder", "grid", "order"))
        hint = "" if hint.endswith(f"{word!r}?)") else hint
        raise wrong(path, f"{shown(text)} is no short form{hint}; write {_SHORT_FORMS}")

    @property
    def named_ladder(self) -> str:
        """What its ladder is made of, if not of widths: ``calendar``, ``lengths``, or a name."""
        first = self.ladder[0] if self.ladder else None
        if not isinstance(first, str):
            return "lengths" if first is not None and self.generalization == "prefix" else ""
        return "calendar" if first in CALENDAR else first

    @property
    def widths(self) -> tuple[float, ...]:
        """The widths or lengths of its ladder, if it has some."""
        return tuple(step for step in self.ladder or () if not isinstance(step, str))

    @property
    def units(self) -> tuple[str, ...]:
        """The units of its ladder, finest first."""
        named = tuple(step for step in self.ladder or () if isinstance(step, str))
        return _CALENDAR if named == ("calendar",) else named

    @property
    def steps(self) -> str:
        """Its ladder as in the short form, ``5/10@16``."""
        listed = (step if isinstance(step, str) else f"{step:g}" for step in self.ladder or ())
        return "/".join(listed) + ("" if self.named_ladder else f"@{self.origin:g}")

    @property
    def is_described(self) -> bool:
        """Whether the job says how its values are generalized."""
        plain = replace(self, weight=1, top=None, bottom=None, scale="linear")
        return plain != type(self)(name=self.name)

    @property
    def open_ends(self) -> str:
        """Where its values are published alike, as text; empty if nowhere."""
        ends = {"bottom": self.bottom, "top": self.top}
        return "".join(f" {end} {value}" for end, value in ends.items() if value is not None)

    @property
    def line_options(self) -> tuple[str, ...]:
        """The options given to it that only intervals of numbers or dates have."""
        plain = {"top": None, "bottom": None, "scale": "linear"}
        return tuple(name for name, unset in plain.items() if getattr(self, name) != unset)

    @property
    def grid_step(self) -> float | None:
        """The step of its grid, if it has one and the job says which."""
        return None if isinstance(self.grid, str) else self.grid

    @property
    def on_grid(self) -> str:
        """Its grid as in the short form, ``5@16``."""
        step = self.grid if self.grid_step is None else f"{self.grid_step:g}"
        return f"{step}@{self.origin:g}"

    def completed(self) -> Self:
        """The same with its generalization, where a hierarchy, ladder or grid implies one."""
        implied: Generalization | None = None
        if self.hierarchy is not None or self.ladder is not None:
            implied = "prefix" if self.named_ladder in _OF_PREFIXES else "hierarchy"
        elif self.grid is not None or self.order is not None:
            implied = "interval"
        return replace(self, generalization=self.generalization or implied)

    def check(self, path: str) -> None:
        """Raise JobError where the options, which are at ``path``, contradict each other."""
        if self.generalization == "hierarchy":
            self._check_one_tree(path)
        if self.named_ladder:
            self._check_named(path)
        if self.order is not None:
            self._check_order(path)
        self._check_line(path)
        if self.origin and self.grid is None and (self.ladder is None or self.named_ladder):
            raise wrong(
                f"{path}.origin",
                "applies only to a ladder of widths or a grid, whose start it sets; add one of "
                "them, or remove origin",
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
        widths = () if self.named_ladder else self.widths
        if not self.named_ladder and len(widths) < len(self.ladder or ()):
            raise wrong(f"{path}.ladder", "is of widths or of names, not of both; remove the names")
        for at, (fine, coarse) in enumerate(pairwise(widths), start=1):
            if coarse <= fine or Fraction(str(coarse)) % Fraction(str(fine)):
                raise wrong(
                    f"{path}.ladder[{at}]",
                    f"{coarse} is not a larger multiple of the width before it, {fine}; "
                    "intervals must nest, such as [5, 10, 20]",
                )

    def _check_line(self, path: str) -> None:
        """Check what only columns of numbers and dates have."""
        is_interval = self.generalization in (None, "interval") and self.order is None
        for name in self.line_options:
            if not is_interval:
                raise wrong(
                    f"{path}.{name}", f"is for intervals of numbers or dates; remove {name}"
                )
            share = percent_of(getattr(self, name))
            if share is not None and not 0 < share < 0.5:
                raise wrong(
                    f"{path}.{name}",
                    "must be a share above 0 % and below 50 %, or a number or date",
                )

    def _check_order(self, path: str) -> None:
        if self.grid is not None:
            raise wrong(f"{path}.grid", "is for numbers and dates; remove grid or order")
        values = self.order or ()
        for at, value in enumerate(values):
            if value in values[:at]:
                raise wrong(f"{path}.order[{at}]", "is listed twice; remove one of the two")
            if ", " in value or value == "*" or value[:1] in ("[", "(") or value[-1:] in ("]", ")"):
                raise wrong(
                    f"{path}.order[{at}]",
                    f"{shown(value)} could be read as an interval or as hidden; rename the value "
                    "in the data, or use a hierarchy",
                )

    def _check_named(self, path: str) -> None:
        where, steps = f"{path}.ladder", self.ladder or ()
        words = [step for step in steps if isinstance(step, str)]
        if self.named_ladder == "lengths":
            falls = all(a > b for a, b in pairwise(self.widths))
            if words or not falls or any(width % 1 for width in self.widths):
                raise wrong(
                    where,
                    "of a prefix is of whole numbers of characters, longest first, such as "
                    "[5, 3, 1], or one of postal, ip",
                )
            return
        is_prefix = self.named_ladder in _OF_PREFIXES
        if is_prefix != (self.generalization == "prefix"):
            way = "prefix" if is_prefix else "hierarchy"
            raise wrong(where, f"{steps[0]} needs generalization: {way}; change one of them")
        if alone := [word for word in words if word not in _UNITS]:
            if len(steps) > 1:
                raise wrong(where, f"{alone[0]} stands alone; remove the other steps")
            return
        places = [_UNITS.index(word) for word in words]
        if len(words) < len(steps) or places != sorted({*places}):
            raise wrong(where, f"names units of the calendar once, in this order: {_LISTED}")
        if "week" in words and words[-1] != "week":
            raise wrong(
                where, f"weeks are no parts of a {words[-1]}; leave out week, or end with it"
            )
