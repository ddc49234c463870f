"""Named ladders: hierarchies over dates and codes that need no file.

The steps of a ladder give each text its labels, from the finest to the coarsest. Texts are those of
the values as a release writes them; a level's label holds those of the level below.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import date
from typing import TypeAlias

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import HierarchyError
from mondrian_ops.job.quasi_identifier import QuasiIdentifier

Steps: TypeAlias = Sequence[Callable[[str], str]]
"""By level, finest first, the label of a text."""

# Chapters and blocks of ICD-10 (WHO, version 2019; neoplasms are divided as in ICD-10-CM). Some
# categories of ICD-10-CM belong to no block. Their label is the same on the level of the blocks.
_LISTED_CHAPTERS = (
    "A00-B99 C00-D49 D50-D89 E00-E90 F00-F99 G00-G99 H00-H59 H60-H95 I00-I99 J00-J99 K00-K95 "
    "L00-L99 M00-M99 N00-N99 O00-O9A P00-P96 Q00-QA0 R00-R99 S00-T98 U00-U99 V00-Y99 Z00-Z99"
)
_LISTED_BLOCKS = """
A00-A09 A15-A19 A20-A28 A30-A49 A50-A64 A65-A69 A70-A74 A75-A79 A80-A89 A92-A99 B00-B09 B15-B19
B20-B24 B25-B34 B35-B49 B50-B64 B65-B83 B85-B89 B90-B94 B95-B98 C00-C14 C15-C26 C30-C39 C40-C41
C43-C44 C45-C49 C51-C58 C60-C63 C64-C68 C69-C72 C73-C75 C76-C80 C81-C96 D00-D09 D10-D36 D37-D48
D50-D53 D55-D59 D60-D64 D65-D69 D70-D77 D80-D89 E00-E07 E10-E14 E15-E16 E20-E35 E40-E46 E50-E64
E65-E68 E70-E90 F00-F09 F10-F19 F20-F29 F30-F39 F40-F48 F50-F59 F60-F69 F70-F79 F80-F89 F90-F98
G00-G09 G10-G14 G20-G26 G30-G32 G35-G37 G40-G47 G50-G59 G60-G64 G70-G73 G80-G83 G90-G99 H00-H06
H10-H13 H15-H22 H25-H28 H30-H36 H40-H42 H43-H45 H46-H48 H49-H52 H53-H54 H55-H59 H60-H62 H65-H75
H80-H83 H90-H95 I00-I02 I05-I09 I10-I15 I20-I25 I26-I28 I30-I52 I60-I69 I70-I79 I80-I89 I95-I99
J00-J06 J09-J18 J20-J22 J30-J39 J40-J47 J60-J70 J80-J84 J85-J86 J90-J94 J95-J99 K00-K14 K20-K31
K35-K38 K40-K46 K50-K52 K55-K64 K65-K67 K70-K77 K80-K87 K90-K93 L00-L08 L10-L14 L20-L30 L40-L45
L50-L54 L55-L59 L60-L75 L80-L99 M00-M25 M30-M36 M40-M54 M60-M79 M80-M94 M95-M99 N00-N08 N10-N16
N17-N19 N20-N23 N25-N29 N30-N39 N40-N51 N60-N64 N70-N77 N80-N98 O00-O08 O10-O16 O20-O29 O30-O48
O60-O75 O80-O84 O85-O92 O94-O99 P00-P04 P05-P08 P10-P15 P20-P29 P35-P39 P50-P61 P70-P74 P75-P78
P80-P83 P90-P96 Q00-Q07 Q10-Q18 Q20-Q28 Q30-Q34 Q35-Q37 Q38-Q45 Q50-Q56 Q60-Q64 Q65-Q79 Q80-Q89
Q90-Q99 R00-R09 R10-R19 R20-R23 R25-R29 R30-R39 R40-R46 R47-R49 R50-R69 R70-R79 R80-R82 R83-R89
R90-R94 R95-R99 S00-S09 S10-S19 S20-S29 S30-S39 S40-S49 S50-S59 S60-S69 S70-S79 S80-S89 S90-S99
T00-T07 T08-T14 T15-T19 T20-T32 T33-T35 T36-T50 T51-T65 T66-T78 T80-T88 T90-T98 V01-X59 X60-X84
X85-Y09 Y10-Y34 Y35-Y36 Y40-Y84 Y85-Y89 Y90-Y98 Z00-Z13 Z20-Z29 Z30-Z39 Z40-Z54 Z55-Z65 Z70-Z76
Z80-Z99 U00-U49 U82-U85
"""
_CHAPTERS, _BLOCKS = _LISTED_CHAPTERS.split(), _LISTED_BLOCKS.split()
_ICD10 = re.compile(r"[A-Z][0-9A-Z][0-9A-Z](\.?[0-9A-Z]{1,4})?", re.ASCII)


def named_ladder(quasi: QuasiIdentifier, texts: Sequence[str]) -> Hierarchy:
    """The hierarchy over the ascending texts of a column, whose ladder is one of names or lengths.

    Of the calendar the leaves are the finest units; `finest_units` tells which.

    Raises HierarchyError where a text is no code of the ladder.
    """
    kind, name = quasi.named_ladder, quasi.name
    if kind == "calendar":
        coarser = [_CALENDAR[unit] for unit in quasi.units[1:]]
        return Hierarchy.from_steps([*dict.fromkeys(finest_units(quasi, texts))], coarser, name)
    if kind == "icd10":
        _check_icd10(name, texts)
        return Hierarchy.from_steps(texts, _ICD10_STEPS, name)
    steps = _PREFIXES[kind] if kind in _PREFIXES else [*map(_first, map(int, quasi.widths))]
    return Hierarchy.from_steps(texts, steps, name, top="")


def finest_units(quasi: QuasiIdentifier, texts: Sequence[str]) -> list[str]:
    """Of each date or timestamp the finest unit of the column's ladder."""
    return [*map(_CALENDAR[quasi.units[0]], texts)]


def _week(day: str) -> str:
    year, week, _ = date.fromisoformat(day[:10]).isocalendar()
    return f"{year:04}-W{week:02}"


_CALENDAR: dict[str, Callable[[str], str]] = {
    "day": lambda day: day[:10],
    "week": _week,
    "month": lambda day: day[:7],
    "quarter": lambda day: f"{day[:4]}-Q{(int(day[5:7]) + 2) // 3}",
    "year": lambda day: day[:4],
    "decade": lambda day: f"{day[:3]}0s",
}


def _range_of(category: str, ranges: Sequence[str]) -> str:
    """The range that holds a category of ICD-10; the category itself if none does."""
    at = bisect_right(ranges, category, key=lambda each: each[:3]) - 1
    return ranges[at] if at >= 0 and category <= ranges[at][4:] else category


_ICD10_STEPS: Steps = (
    lambda code: code[:3],
    lambda code: _range_of(code[:3], _BLOCKS),
    lambda code: _range_of(code[:3], _CHAPTERS),
)


def _check_icd10(name: str, texts: Sequence[str]) -> None:
    wrong = sum(
        not _ICD10.fullmatch(text) or _range_of(text[:3], _CHAPTERS) == text[:3] for text in texts
    )
    if wrong:
        raise HierarchyError(
            f"column {name!r}: {wrong} distinct value(s) are no codes of ICD-10, such as E11 or "
            "E11.9 with capital letters; correct them, make them missing, or use prefix"
        )


def _first(count: int) -> Callable[[str], str]:
    return lambda text: text[:count]


def _outward(code: str) -> str:
    """A postal code up to the first blank or hyphen behind a digit: ``SW1A`` of ``SW1A 1AA``."""
    found = re.match("[^0-9]*[0-9][^ -]*", code)
    return found[0] if found else code


def _area(code: str) -> str:
    """The letters that a postal code begins with, or two of its digits: ``SW``, ``10``."""
    letters = re.match("[^0-9]+", code)
    return letters[0] if letters else code[:2]


def _region(code: str) -> str:
    """What a district is in: three of at least five digits, or else the district's area."""
    outward = _outward(code)
    return outward[:3] if outward[:3].isdigit() and len(outward) > 4 else _area(code)


def _network(octets: int, groups: int) -> Callable[[str], str]:
    """The first octets of an address of IPv4, or groups of one of IPv6, with the sign behind.

    Of IPv6 only groups before ``::``; an address with fewer stands for all of them.
    """

    def first(address: str) -> str:
        sign, most = (":", groups) if ":" in address else (".", octets)
        whole = address.split("::", maxsplit=1)[0]
        parts = whole.split(sign)
        kept = sign.join(parts[:most])
        return kept if len(parts) <= most and whole == address else f"{kept}{sign}"

    return first


_PREFIXES: dict[str, Steps] = {
    "postal": (_outward, _region, _area, lambda code: code[:1]),
    # 192.168.1. is a network of 24 bits, 2001:db8:1:2: one of 64.
    "ip": (_network(3, 4), _network(2, 3), _network(1, 2), _network(1, 1)),
}
