"""The tables and hierarchies of the golden set, which are the same on every machine."""

from __future__ import annotations

import datetime as dt
import io
import json
from contextlib import redirect_stdout
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from mondrian_ops.cli import main

PEOPLE, HANDS, _VISITS = 1500, 2000, 900

_WARDS = {"Hospital": {"Surgery": ["W1", "W2", "W3"], "Medicine": ["W4", "W5"]}}
_STAGES = "I;early;*\nII;early;*\nIII;late;*\nIV;late;*\n"
_COLOURS = "red;warm;*\ngreen;cold;*\n"
_ROOTS = "female;woman\nmale;man\n"


def make_sources(folder: Path) -> None:
    """Write the sources: people, hands and visits as Parquet, people as a directory of CSV too."""
    _generate("people", PEOPLE, folder / "people.parquet")
    _generate("poker", HANDS, folder / "hands.parquet")
    people = pq.read_table(folder / "people.parquet")
    for form in ("people_csv", "people_files"):
        (folder / form).mkdir()
    for number, (start, stop) in enumerate(((0, 700), (700, 701), (701, PEOPLE))):
        part = people[start:stop]
        pa_csv.write_csv(part, folder / f"people_csv/{number}.csv")
        pq.write_table(part, folder / f"people_files/{number}.parquet", row_group_size=200)
    pq.write_table(_visits(), folder / "visits.parquet", row_group_size=250)
    (folder / "wards.json").write_text(json.dumps(_WARDS), encoding="utf-8")
    (folder / "stages.csv").write_text(_STAGES, encoding="utf-8")
    (folder / "colours.csv").write_text(_COLOURS, encoding="utf-8")
    (folder / "roots.csv").write_text(_ROOTS, encoding="utf-8")


def _generate(kind: str, rows: int, output: Path) -> None:
    arguments = ["--rows", str(rows), "--seed", "11", "--output", str(output)]
    with redirect_stdout(io.StringIO()):
        assert main(["generate", kind, *arguments]) == 0


def _visits() -> pa.Table:
    """Rows of some 300 patients: a column of most types, and values missing in most of them."""
    at = np.arange(_VISITS)
    patients = at * 7919 % 311
    first = dt.date(2024, 2, 26)
    moments = [dt.datetime(2024, 2, 26, 8) + dt.timedelta(minutes=17 * int(i) ** 2 % 9973)
               for i in at]  # fmt: skip
    wards, stages = ("W1", "W2", "W3", "W4", "W5"), ("I", "II", "III", "IV")
    return pa.table(
        {
            "patient": pa.array(patients, pa.int32()),
            "born": pa.array([first - dt.timedelta(days=int(p) ** 2 % 20_000) for p in patients]),
            "seen": pa.array(_with_gaps(moments, 31), pa.timestamp("us")),
            "weight": pa.array(_with_gaps([40 + int(p) * 37 % 611 / 10 for p in patients], 13)),
            "dose": pa.array([Decimal(int(i) * 11 % 40) / 4 for i in at], pa.decimal128(6, 2)),
            "smokes": pa.array(_with_gaps([int(p) % 3 == 0 for p in patients], 17)),
            "ward": pa.array(_with_gaps([wards[int(i) * 13 % 29 % 5] for i in at], 41)),
            "stage": pa.array(_with_gaps([stages[i * i % 7 % 4] for i in at], 19)),
            "bed": pa.array(at % 50, pa.uint8()),
        }
    )  # fmt: skip


def _with_gaps(values: list, every: int) -> list:
    return [None if at % every == 5 else value for at, value in enumerate(values)]
