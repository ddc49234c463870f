"""Tables and jobs as Hypothesis draws them, run on files and read back."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import assume
from hypothesis import strategies as st

import brute_force
from mondrian_ops import pipeline
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.job import Job
from published_text import KINDS, TREE_FILE, Column

# A case: a table and a job, as Hypothesis draws them

GRADES = {"1": ["low", "*"], "2": ["low", "*"], "3": ["high", "*"], "4": ["high", "*"]}
GRADE_FILE = "".join(";".join([leaf, *chain]) + "\n" for leaf, chain in GRADES.items())

# In the order of a file, not that of the tree; branches of one depth.
DIAGNOSES = {
    "ulcer": ["stomach", "digestive", "*"],
    "flu": ["infection", "respiratory", "*"],
    "gastritis": ["stomach", "digestive", "*"],
    "asthma": ["airways", "respiratory", "*"],
    "cold": ["infection", "respiratory", "*"],
}
DIAGNOSIS_TREE = Hierarchy.from_rows(
    [[leaf, *chain] for leaf, chain in DIAGNOSES.items()], "diagnoses.csv"
)

REQUIREMENTS: Sequence[Mapping[str, Any]] = (
    {},
    {"l": 2},
    {"l": 3},
    {"l": 2.5, "diversity": "entropy"},
    {"l": 2, "diversity": "recursive", "c": 2},
    {"l": 2, "missing_sensitive": "value"},
    {"l": 2.5, "diversity": "entropy", "missing_sensitive": "value"},
    {"t": 0.4},
    {"t": 0.3, "t_distance": "ordered"},
    {"t": 0.35, "t_distance": "hierarchical"},
    {"l": 2, "t": 0.5},
    {"l": 2, "l_width": "1"},
    {"l": 2, "l_width": "1", "missing_sensitive": "value"},
    {"l": 1.5 + 0.5, "l_width": "1", "diversity": "entropy"},
)


@dataclass(frozen=True)
class Case:
    columns: Sequence[Column]
    sensitive: Sequence[Sequence[int | None]]
    keys: Mapping[str, Any]

    @property
    def rows(self) -> int:
        return len(self.columns[0].values)

    @property
    def table(self) -> pa.Table:
        data = {"row": pa.array(range(self.rows))}
        for column in self.columns:
            data[column.name] = _arrow(column)
        for at, values in enumerate(self.sensitive):
            data[f"s{at}"] = pa.array(values, pa.int16())
        return pa.table(data)

    @property
    def job(self) -> dict[str, Any]:
        names = [f"s{at}" for at in range(len(self.sensitive))]
        keys = {
            "quasi_identifiers": [column.listed for column in self.columns],
            "sensitive": names,
            "unlisted": "publish",
            **self.keys,
        }
        if "l_width" in keys:
            keys["l_width"] = dict.fromkeys(names, keys["l_width"])
        if keys.get("t_distance") == "hierarchical":
            keys["sensitive_hierarchy"] = dict.fromkeys(names, "grades.csv")
        return keys

    @property
    def privacy(self) -> brute_force.Privacy:
        asked = ("k", "l", "diversity", "c", "t", "t_distance", "missing_sensitive")
        return brute_force.Privacy(
            whole=[Counter(values) for values in self.sensitive],
            chains={int(leaf): chain for leaf, chain in GRADES.items()},
            height=2,
            width=float(self.keys["l_width"]) if "l_width" in self.keys else None,
            **{key: self.keys[key] for key in asked if key in self.keys},
        )

    @property
    def attainable(self) -> bool:
        return self.privacy.of_rows(self.sensitive)(list(range(self.rows)))


def _arrow(column: Column) -> pa.Array:
    plain = column.kind.type
    if not pa.types.is_dictionary(plain):
        return pa.array(column.values, plain)
    return pa.array(column.values, plain.value_type).dictionary_encode().cast(plain)


WAYS_TO_CUT = [
    *({"cut": cut} for cut in ("median", "gain", "lookahead")),
    *({"algorithm": "di_mondrian", "di_mondrian": {"cut_points": r}} for r in (1, 2, 4)),
]


@st.composite
def cases(draw, max_rows: int = 40, kinds: Sequence[str] = tuple(KINDS), grids: bool = True):
    count = draw(st.integers(2, max_rows))
    columns = []
    for at in range(draw(st.integers(1, 3))):
        kind = KINDS[draw(st.sampled_from(kinds))]
        values = draw(st.sampled_from([kind.values, st.none() | kind.values]))
        columns.append(
            Column(
                f"q{at}",
                kind,
                draw(st.sampled_from([way for way in kind.ways if grids or "grid" not in way])),
                draw(st.lists(values, min_size=count, max_size=count)),
            )
        )
    assume(any(column.tells_apart for column in columns))
    grades = st.sampled_from([1, 2, 3, 4, None])
    sensitive = draw(st.lists(st.lists(grades, min_size=count, max_size=count), max_size=2))
    keys = {
        "k": draw(st.sampled_from([2, 2, 3, 4, max(2, count * 2 // 3)])),
        **draw(st.sampled_from(WAYS_TO_CUT)),
        **(draw(st.sampled_from(REQUIREMENTS)) if sensitive else {}),
    }
    return Case(columns, sensitive, keys)


@st.composite
def plans(draw):
    """Keys that say how the rows are divided and fetched."""
    partitioning = {
        "strategy": draw(st.sampled_from(["multidimensional"] * 3 + ["quantile"])),
        "fragments": draw(st.integers(1, 6)),
        "sample": draw(st.sampled_from([1.0, 0.3])),
        "min_sample": draw(st.sampled_from([0, 5])),
        "seed": draw(st.integers(0, 3)),
    }
    return {
        "partitioning": partitioning,
        "retrieval": draw(st.sampled_from(["scatter", "pushdown", "auto"])),
        "interval_style": draw(st.sampled_from(["text", "text", "bounds"])),
    }


# Running it and reading it back


@dataclass(frozen=True)
class Release:
    table: pa.Table
    report: Mapping[str, Any]
    files: Mapping[str, pa.Table]

    def published(self, columns: Sequence[Column]) -> ByRow:
        """What is published of each row's quasi-identifiers, by its id."""
        names = [n for n in self.table.column_names if n.rpartition("_")[0] in _names(columns)]
        names += [n for n in self.table.column_names if n in _names(columns)]
        listed = self.table.select([*sorted(names), "row"]).to_pylist()
        assert len({row["row"] for row in listed}) == len(listed)
        people = list(zip(*(column.codes for column in columns), strict=True))
        return ByRow({row.pop("row"): tuple(row.values()) for row in listed}, people)

    def labels(self, columns: Sequence[Column]) -> Counter[tuple]:
        """What is published of rows, by their own quasi-identifiers."""
        return self.published(columns).labels


class ByRow(dict[int, tuple]):
    """What is published of rows, by their ids.

    Two are equal where they are the same but for rows of the same quasi-identifiers: which of those
    is in which class is drawn by lot.
    """

    def __init__(self, found: Mapping[int, tuple], people: Sequence[tuple]) -> None:
        super().__init__(found)
        self.labels = Counter((people[row], label) for row, label in found.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByRow) and self.labels == other.labels

    __hash__ = None  # type: ignore[assignment]


def _names(columns: Sequence[Column]) -> set[str]:
    return {column.name for column in columns}


def run(case: Case, by: Callable[[Job], Any] = pipeline.run, **keys: Any) -> Release:
    """Run the case on files; nothing but the release may be left."""
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        (here / "tree.csv").write_text(TREE_FILE, encoding="utf-8")
        (here / "grades.csv").write_text(GRADE_FILE, encoding="utf-8")
        (here / "in").mkdir()
        half = case.rows // 2
        for part, table in enumerate((case.table[:half], case.table[half:])):
            pq.write_table(table, here / f"in/{part}.parquet", row_group_size=6)
        paths = {"input": str(here / "in"), "output": str(here / "out")}
        job = replace(Job.from_dict({**case.job, **keys, **paths}), base_dir=name)
        before = sorted(os.listdir(here))
        try:
            report = by(job)
        except Exception:
            assert sorted(os.listdir(here)) == before
            raise
        assert sorted(os.listdir(here)) == sorted([*before, "out"])
        files = {path.name: pq.read_table(path) for path in (here / "out").glob("part-*")}
        return Release(pq.read_table(here / "out"), report, files)
