"""Drops of many nights: of any size, drifting, some of them broken; the same each time.

Each row has a number of its own in the column ``row``, which is published, so that what became of
it can be told from outside.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mondrian_ops.datasets.people import people

NIGHTS = int(os.environ.get("MONDRIAN_OPS_NIGHTS", "200"))
K, L = 5, 2
QUASI = ("age", "sex", "zip", "country", "visit_date")
SENSITIVE = ("diagnosis", "income")
ROLES = {
    "k": K,
    "l": L,
    "identifiers": ["name"],
    "quasi_identifiers": [
        "age=interval",
        "sex",
        "zip=prefix",
        "country=hierarchy:countries.csv",
        "visit_date",
    ],
    "sensitive": [*SENSITIVE],
    "unlisted": "publish",
    "cut": "gain",
}
"""The job of a drop; ``row`` is listed nowhere."""

FIRST = date(2025, 1, 1)
LARGEST = 100_000


@dataclass(frozen=True)
class Drop:
    """What one night finds."""

    number: int
    kind: str
    rows: int

    @property
    def day(self) -> date:
        """The day it was delivered for."""
        return FIRST + timedelta(self.number)

    @property
    def good(self) -> bool:
        """Whether there is a release of it."""
        return self.kind in GOOD

    @property
    def says(self) -> str:
        """What a run has to say of it; nothing, if there is nothing to say."""
        return "" if self.good else BROKEN[self.kind][1].format(day=self.day)

    def people(self) -> pd.DataFrame:
        """Its rows, as they would be if nothing were wrong with it."""
        found = people(self.rows, self.number).to_pandas(date_as_object=True)
        return _drifted(found.drop(columns="occupation"), self.number)

    def write(self, folder: Path) -> list[Path]:
        """Deliver it into a folder; its files."""
        folder.mkdir(parents=True, exist_ok=True)
        write = GOOD[self.kind] if self.good else BROKEN[self.kind][0]
        write(self.people(), folder / str(self.day))
        return sorted(folder.glob(f"{self.day}*"))


def drops(nights: int, seed: int = 0) -> list[Drop]:
    """Every second drop is as it should be, of any size; the kinds of both take turns."""
    chance = random.Random(seed)
    return [
        Drop(number, kind, _rows(kind, chance))
        for number, kind in zip(range(nights), _kinds(chance), strict=False)
    ]


def _kinds(chance: random.Random) -> Iterator[str]:
    turns = [_in_turns(kinds, chance) for kinds in (GOOD, BROKEN)]
    while True:
        yield from map(next, turns)


def _in_turns(kinds: Iterable[str], chance: random.Random) -> Iterator[str]:
    """Each once, in an order of its own every time."""
    while True:
        yield from chance.sample(sorted(kinds), len(kinds))


def job_of(files: Sequence[Path], output: Path) -> dict[str, Any]:
    """The job that anonymizes a drop's files."""
    first = files[0]
    given = first if len(files) == 1 else f"{first.parent}/{first.name[:10]}*{first.suffix}"
    return {**ROLES, "input": str(given), "output": str(output), "partitioning": {"fragments": 4}}


def _rows(kind: str, chance: random.Random) -> int:
    """From tens of rows to the largest, each order of magnitude as likely."""
    if kind == "too small":
        return chance.randrange(1, K)
    largest = LARGEST if kind in GOOD else LARGEST // 50
    return min(largest, int(10 ** chance.uniform(1.5, np.log10(largest) + 0.1)))


def _drifted(rows: pd.DataFrame, night: int) -> pd.DataFrame:
    """Every night people are older, live elsewhere, earn more and have other diseases."""
    chance = np.random.default_rng(night)
    moved, ill = (chance.random(len(rows)) < night / 500 for _ in range(2))
    zips = pd.to_numeric(rows["zip"])
    return rows.assign(
        age=rows["age"] + night // 10,
        zip=(10_000 + (zips - 10_000 + 137 * night) % 90_000).map("{:.0f}".format, "ignore"),
        country=rows["country"].mask(moved, "Ghana"),
        visit_date=[day + timedelta(night) for day in rows["visit_date"]],
        income=(rows["income"] * (1 + night / 400)).round().astype("Int32"),
        diagnosis=rows["diagnosis"].mask(ill, f"New fever {night // 50}"),
        row=np.arange(len(rows)),
    )


def _parquet(rows: pd.DataFrame, stem: Path, more: str = "") -> Path:
    path = stem.with_name(f"{stem.name}{more}.parquet")
    rows.to_parquet(path, index=False)
    return path


def _csv(rows: pd.DataFrame, stem: Path) -> Path:
    path = stem.with_name(f"{stem.name}.csv")
    rows.to_csv(path, index=False)
    return path


def _two_files(rows: pd.DataFrame, stem: Path) -> None:
    _parquet(rows[: len(rows) // 3], stem, "-a")
    _parquet(rows[len(rows) // 3 :], stem, "-b")


def _no_drop(_rows: pd.DataFrame, _stem: Path) -> None:
    """Nothing was delivered."""


def _empty_file(_rows: pd.DataFrame, stem: Path) -> None:
    stem.with_name(f"{stem.name}.csv").touch()


def _truncated(rows: pd.DataFrame, stem: Path) -> None:
    path = _parquet(rows, stem)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def _no_parquet(rows: pd.DataFrame, stem: Path) -> None:
    _csv(rows, stem).rename(stem.with_name(f"{stem.name}.parquet"))


def _ragged(rows: pd.DataFrame, stem: Path) -> None:
    path = _csv(rows, stem)
    lines = path.read_text().splitlines(keepends=True)
    lines[-1] = lines[-1].rstrip("\n") + ",more\n"
    path.write_text("".join(lines))


def _no_text(rows: pd.DataFrame, stem: Path) -> None:
    path = _csv(rows, stem)
    path.write_bytes(path.read_bytes() + b"\xff\xfe,\n")


def _column_gone(rows: pd.DataFrame, stem: Path) -> None:
    _parquet(rows.drop(columns="zip"), stem)


def _other_type(rows: pd.DataFrame, stem: Path) -> None:
    _parquet(rows.assign(age=rows["age"].map("{} years".format)), stem)


def _stranger(rows: pd.DataFrame, stem: Path) -> None:
    _parquet(rows.assign(country=rows["country"].where(rows["row"] > 0, "Atlantis")), stem)


def _undiverse(rows: pd.DataFrame, stem: Path) -> None:
    _parquet(rows.assign(diagnosis="Asthma"), stem)


def _two_shapes(rows: pd.DataFrame, stem: Path) -> None:
    _parquet(rows, stem, "-a")
    _parquet(rows.drop(columns="sex"), stem, "-b")


Writer = Callable[[pd.DataFrame, Path], object]

GOOD: Mapping[str, Writer] = {"Parquet": _parquet, "CSV": _csv, "two files": _two_files}
BROKEN: Mapping[str, tuple[Writer, str]] = {
    "no drop": (_no_drop, ""),
    "no rows": (lambda rows, stem: _parquet(rows[:0], stem), "there are no rows"),
    "only a header": (lambda rows, stem: _csv(rows[:0], stem), "there are no rows"),
    "an empty file": (_empty_file, "the first line is empty; it must name the columns"),
    "too small": (_parquet, f"fewer than k = {K}; lower k"),
    "truncated": (_truncated, "cannot be read as Parquet; the file is damaged"),
    "no Parquet": (_no_parquet, "cannot be read as Parquet; the file is damaged"),
    "ragged": (_ragged, "10 values, but the header names 9 columns; complete the row"),
    "no text": (_no_text, "not UTF-8 text; convert the file to UTF-8"),
    "a column gone": (_column_gone, "the input has no column 'zip'"),
    "another type": (_other_type, "column 'age' of type string cannot be generalized to intervals"),
    "a stranger": (_stranger, "1 row(s) hold 1 value(s) that are not leaves of the hierarchy"),
    "undiverse": (_undiverse, f"1 distinct value(s), fewer than l = {L}; lower l"),
    "two shapes": (_two_shapes, "column 'sex' of {day}-a.parquet is missing"),
}
"""How each kind of drop is written; of those that are broken also what a run says of it."""
