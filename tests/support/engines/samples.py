"""One wide dataset with a column of every type, and the jobs that need all of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from mondrian_ops.job.job import Job
from published_text import KINDS, TREE_FILE

ROWS = 600
GRADE_FILE = "1;a;*\n2;a;*\n3;b;*\n4;b;*\n"

_DAY = dt.date(1999, 12, 30)
_MOMENT = dt.datetime(1969, 12, 31, 23, 59, 59)
_TEXTS = ("a", "b", "ab", "abc", "ö")
_POOLS: Mapping[str, Sequence[Any]] = {
    "int": range(-9, 21),
    "small int": (0, 1, 7, 254, 255),
    "float": (-2.5, -0.0, 0.0, 0.1, 0.3, 0.6, 0.7, 12.0, float("nan")),
    "float32": (-2.5, 0.25, 0.5, 5.0, 10.0, float("nan")),
    "decimal": tuple(map(Decimal, ("-1.25", "0.00", "0.10", "0.25", "7.50"))),
    "date": tuple(_DAY + dt.timedelta(days) for days in range(40)),
    "timestamp": tuple(_MOMENT + dt.timedelta(seconds=n * n, microseconds=n) for n in range(10)),
    "zoned": tuple((_MOMENT + dt.timedelta(n)).replace(tzinfo=dt.UTC) for n in range(10)),
    "time": tuple(dt.time(hour, 5, 0, 7) for hour in range(24)),
    "bool": (True, False),
    "text": _TEXTS,
    "large text": ("", "x", "xy", "10%, b"),
    "dictionary": _TEXTS,
    "number dictionary": range(-9, 10),
    "constant": (-5,),
    "nothing": (float("nan"),),
}
assert _POOLS.keys() == KINDS.keys()


def table() -> pa.Table:
    """A column per kind, each with some values missing; what is sensitive; what is not listed."""
    rng = np.random.default_rng(20)

    def drawn(pool: Sequence[Any], type_: pa.DataType, missing: float = 0.03) -> pa.Array:
        values = [pool[at] for at in rng.integers(0, len(pool), ROWS)]
        mask = rng.random(ROWS) < missing
        found = pa.array(
            [None if m else v for m, v in zip(mask, values, strict=True)], plain(type_)
        )
        return found.dictionary_encode().cast(type_) if pa.types.is_dictionary(type_) else found

    columns = {name: drawn(_POOLS[name], kind.type) for name, kind in KINDS.items()}
    grades, words = ("1", "2", "3", "4"), ("u", "v", "w")
    return pa.table(
        {
            "ssn": pa.array([f"Ssn{at:04}" for at in range(ROWS)]),
            "row": pa.array(range(ROWS)),
            **columns,
            "grade": drawn(grades, pa.string(), 0.05),
            "word": drawn(words, pa.dictionary(pa.int8(), pa.string()), 0.05),
            **_unlisted(drawn),
        }
    )


def _unlisted(drawn: Any) -> dict[str, pa.Array]:
    """Types that no generalization takes, published as they are."""
    point = pa.struct([("x", pa.float64()), ("names", pa.list_(pa.string()))])
    points = [{"x": float(at), "names": ["n"] * at} for at in range(4)]
    return {
        "list": drawn([[], [1], [1, None, 2]], pa.list_(pa.int32())),
        "struct": drawn(points, point),
        "map": drawn([[], [("k", 1)], [("k", 1), ("l", None)]], pa.map_(pa.string(), pa.int64())),
        "bytes": drawn([b"", b"\x00\xff"], pa.binary()),
        "fixed": drawn([b"abc", b"\x00\x01\x02"], pa.binary(3)),
        "nan": drawn([float("nan"), 1.5], pa.float64()),
        "wide decimal": drawn([Decimal("1E+20"), Decimal("-3")], pa.decimal256(60, 3)),
        "nanoseconds": drawn([1, 10**18 + 1], pa.timestamp("ns", "Europe/Rome")),
        "duration": drawn([1, 10**12], pa.duration("us")),
        "null": pa.nulls(ROWS),
    }


def plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def quasi_identifiers(turn: int, kinds: Sequence[str] = tuple(KINDS)) -> list[str]:
    """Every kind, in its way of that turn: all ways come in five turns."""
    return [f"{name}={KINDS[name].ways[turn % len(KINDS[name].ways)]}" for name in kinds]


class Site:
    """A folder with the dataset in several files of several row groups, and its hierarchies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hierarchies = folder / "hierarchies"
        for name in ("hierarchies", "parquet", "csv"):
            (folder / name).mkdir()
        for name, text in (("tree.csv", TREE_FILE), ("grades.csv", GRADE_FILE)):
            (self.hierarchies / name).write_text(text, encoding="utf-8")
        written = table()
        for part, (start, stop) in enumerate(((0, 250), (250, 257), (257, ROWS))):
            rows = written[start:stop]
            pq.write_table(rows, folder / f"parquet/{part}.parquet", row_group_size=60)
            pa_csv.write_csv(_as_text(rows), folder / f"csv/{part}.csv")
        self.table = pq.read_table(folder / "parquet")

    def job(self, output: Path, source: str = "parquet", **keys: Any) -> Job:
        described = {
            "input": str(self.folder / source),
            "output": str(output),
            "k": 5,
            "identifiers": ["ssn"],
            "quasi_identifiers": quasi_identifiers(0),
            "unlisted": "publish",
            **keys,
        }
        return replace(Job.from_dict(described), base_dir=str(self.hierarchies))


def _as_text(rows: pa.Table) -> pa.Table:
    """The columns that CSV can hold."""
    names = ["ssn", "row", "int", "float", "date", "timestamp", "bool", "text", "grade"]
    return rows.select(names)
