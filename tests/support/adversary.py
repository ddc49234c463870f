"""What an attacker has: the people of a source, known wholly or in part, and a release of theirs.

Nothing of the package reads a release here: its files are opened as anybody would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mondrian_ops import pipeline
from mondrian_ops.datasets.people import people
from mondrian_ops.stores import load_job

HIERARCHIES = Path(__file__).resolve().parents[2] / "include" / "hierarchies"

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

QUASI = ("age", "sex", "zip", "country")
ASKED = ("age", "sex", "zip=prefix", "country=hierarchy:countries.csv")
IN_TREES = ("age=ladder:10/20/40@16", *ASKED[1:])
"""The same for algorithms that recode columns as a whole."""

ALGORITHMS: Sequence[Mapping[str, Any]] = (
    {"algorithm": "mondrian", "cut": "median"},
    {"algorithm": "mondrian", "cut": "gain"},
    {"algorithm": "mondrian", "relaxed": True},
    {"algorithm": "di_mondrian"},
    {"algorithm": "samarati", "samarati": {"max_suppressed": 0.05}, "quasi_identifiers": IN_TREES},
    {"algorithm": "tds", "quasi_identifiers": IN_TREES},
)


def name_of(keys: Mapping[str, Any]) -> str:
    """The id of a test's parameter."""
    return "-".join(str(keys[key]) for key in ("algorithm", "cut", "relaxed") if key in keys)


@cache
def population(rows: int = 2000, seed: int = 7, *more: str) -> pa.Table:
    """Generated people, each with the number of its row, by which guesses are scored.

    They have the columns that most attacks are about, and ``more``.
    """
    columns = people(rows, seed).select(["name", *QUASI, "diagnosis", *more])
    return columns.append_column("row", pa.array(range(rows)))


@dataclass(frozen=True)
class Release:
    """A release as anybody reads it: its rows in their order, and which file each lies in."""

    directory: Path
    rows: Sequence[Mapping[str, Any]]
    files: Sequence[str]
    report: Mapping[str, Any]

    @property
    def paths(self) -> list[Path]:
        """The data files."""
        return sorted(self.directory.glob("part-*.parquet"))

    def classes(self, quasi: Sequence[str] = QUASI) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
        """The rows by what is published of their quasi-identifiers, in their order."""
        found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self.rows:
            found.setdefault(tuple(row[name] for name in quasi), []).append(dict(row))
        return found


def released(directory: Path, table: pa.Table, **keys: Any) -> Release:
    """Run a job on the people of ``table``, in files; their row numbers are published with them."""
    directory.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, directory / "people.parquet")
    job = {
        "input": str(directory / "people.parquet"),
        "output": str(directory / "release"),
        "k": 5,
        "identifiers": ["name"],
        "quasi_identifiers": list(ASKED),
        "unlisted": "publish",
        "partitioning": {"fragments": 1},
        **keys,
    }
    report = pipeline.run(load_job(job))
    return opened(directory / "release", report)


def opened(directory: Path, report: Mapping[str, Any]) -> Release:
    """A release that is there."""
    rows, files = [], []
    for path in sorted(directory.glob("part-*.parquet")):
        of_file = pq.read_table(path).to_pylist()
        rows += of_file
        files += [path.name] * len(of_file)
    return Release(directory, rows, files, report)


def covers(label: str | None, value: Any) -> bool:
    """Whether a published text can stand for a value; ``None`` is the missing value."""
    if label == "*":
        return True
    if label is None or value is None:
        return label is value
    if label.startswith("["):
        low, high, at = (_place(each) for each in (*label[1:-1].split(", "), str(value)))
        return low <= at <= high and (label.endswith("]") or at < high)
    if label.startswith("{"):
        return str(value) in label[1:-1].split(", ")
    if label.endswith("*"):
        return str(value).startswith(label.rstrip("*"))
    return label == str(value) or str(value) in below(label)


def _place(text: str) -> float:
    """Where a number or a day lies on its line."""
    return date.fromisoformat(text).toordinal() if _DAY.fullmatch(text) else float(text)


@cache
def below(label: str) -> frozenset[str]:
    """The leaves below a node of the hierarchies, or of the ladder that the jobs here have."""
    found = {leaf for leaf, *chain in _chains() if label in chain}
    low, _, high = label.partition("–")
    if low.isdigit() and high.isdigit():
        found |= {str(age) for age in range(int(low), int(high) + 1)}
    return frozenset(found)


@cache
def _chains() -> list[list[str]]:
    lines = (HIERARCHIES / "countries.csv").read_text(encoding="utf-8").splitlines()
    return [line.split(";" if ";" in line else ",") for line in lines]


@cache
def branch(country: str, label: str) -> str:
    """The child of a node that a country lies below, or is."""
    (chain,) = (each for each in _chains() if each[0] == country)
    return chain[chain.index(label) - 1]


def candidates(
    release: Release, persons: Sequence[Mapping[str, Any]], quasi: Sequence[str] = QUASI
) -> Iterator[list[Mapping[str, Any]]]:
    """For each person, the published rows that may be theirs, by their quasi-identifiers alone."""
    classes = list(release.classes(quasi).items())
    fits: list[tuple[dict[Any, int], NDArray[np.bool_]]] = []
    for at, name in enumerate(quasi):
        values = {value: n for n, value in enumerate({person[name] for person in persons})}
        columns = {
            label: np.array([covers(label, value) for value in values])
            for label in {labels[at] for labels, _ in classes}
        }
        fits.append((values, np.array([columns[labels[at]] for labels, _ in classes])))
    for person in persons:
        fit = np.all([of[:, at[person[q]]] for (at, of), q in zip(fits, quasi, strict=True)], 0)
        yield [row for number in np.flatnonzero(fit) for row in classes[number][1]]
