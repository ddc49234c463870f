"""Columns whose ends are left open, and scales, through whole runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import anonymize, pipeline, read_release
from mondrian_ops.errors import JobError

ROWS = 2000
TOP, BOTTOM = 60_000, 5_000


def people() -> pa.Table:
    draw = np.random.default_rng(8)
    pay = draw.lognormal(10, 0.8, ROWS).astype(int)
    return pa.table(
        {
            "pay": pa.array(pay, mask=draw.random(ROWS) < 0.02),
            "age": draw.integers(18, 90, ROWS),
            "hired": pa.array(draw.integers(0, 9000, ROWS).astype(np.int32)).cast(pa.date32()),
        }
    )


def run(folder: Path, *columns: Any, **options: Any) -> tuple[pa.Table, dict[str, Any]]:
    pq.write_table(people(), folder / "people.parquet")
    job = {"input": str(folder / "people.parquet"), "output": str(folder / "out"), "k": 5}
    job |= {"quasi_identifiers": list(columns), "partitioning": {"fragments": 4}, **options}
    (folder / "job.json").write_text(json.dumps(job))
    asked = pipeline.load_job(folder / "job.json")
    report = pipeline.run(asked)
    assert pipeline.verify(asked, str(folder / "out"))["passed"]
    return pq.read_table(folder / "out"), report


@pytest.mark.parametrize("more", [{}, {"grid": 1000}, {"generalization": "interval"}])
def test_no_label_tells_values_beyond_the_ends_apart(tmp_path: Path, more: dict[str, Any]) -> None:
    pay = {"name": "pay", "top": TOP, "bottom": BOTTOM, **more}
    table, report = run(tmp_path, pay, "age")
    assert len(report["fragments"]) > 1
    labels = [text for text in table["pay"].to_pylist() if text not in (None, "*")]
    rich = [text for text in labels if text.endswith("inf)")]
    assert rich.count(f"[{TOP}, inf)") >= 5
    ends = {end for text in labels for end in text.strip("[]()").split(", ")} - {"inf", "-inf"}
    step = 1000 if "grid" in more else 100
    assert max(map(float, ends)) <= TOP
    assert min(map(float, ends)) >= BOTTOM - step
    number = {"kind": "arrow", "as_": "bounds", "columns": ["pay"]}
    read = read_release(tmp_path / "out", **number)
    assert read["pay_max"].null_count >= len(rich)
    assert np.nanmax(read["pay_min"].to_numpy()) == TOP


def test_bounds_of_an_open_interval_have_one_end(tmp_path: Path) -> None:
    pay = {"name": "pay", "top": TOP, "bottom": BOTTOM, "generalization": "interval"}
    table, _ = run(tmp_path, pay, interval_style="bounds")
    low, high, hidden = (table[f"pay_{end}"].to_pylist() for end in ("min", "max", "hidden"))
    ends = {*zip(low, high, hidden, strict=True)}
    assert (TOP, None, False) in ends
    assert any(least is None and most is not None for least, most, _ in ends)


@pytest.mark.parametrize(("end", "value"), [("top", "1990-01-01"), ("top", "5 %")])
def test_dates_have_open_ends_too(tmp_path: Path, end: str, value: str) -> None:
    table, _ = run(tmp_path, {"name": "hired", end: value}, "age")
    assert any(text and text.endswith("inf)") for text in table["hired"].to_pylist())


def test_fewer_than_k_beyond_an_end_are_not_told_apart() -> None:
    """The end itself is published of k people beyond it only."""
    pay = np.append(np.arange(996) * 10, [90_000] * 4)
    released, _ = anonymize(
        pa.table({"pay": pay}),
        {"k": 5, "quasi_identifiers": [{"name": "pay", "top": 50_000}]},
    )
    labels = released["pay"].to_pylist()
    assert not any(text.startswith("[50000") for text in labels)
    assert sum(text.endswith("inf)") for text in labels) >= 5


@pytest.mark.parametrize("scale", ["log", "rank"])
def test_a_scale_gives_small_values_a_finer_grain(scale: str) -> None:
    table = people().filter(people()["pay"].is_valid())
    widths = {}
    for each in ("linear", scale):
        pay = {"name": "pay", "scale": each, "generalization": "interval"}
        job = {"k": 5, "quasi_identifiers": [pay, "age"], "interval_style": "bounds"}
        released, _ = anonymize(table, job)
        low, high = (released[f"pay_{end}"].to_numpy() for end in ("min", "max"))
        widths[each] = float(np.median((high - low)[high < 20_000]))
    assert widths[scale] < 0.9 * widths["linear"]


@pytest.mark.parametrize(
    ("column", "more", "said"),
    [
        ({"name": "pay", "top": "60 %"}, {}, "top: must be a share above 0 % and below 50 %"),
        ({"name": "pay", "top": 9, "generalization": "set"}, {}, "top: is for intervals of numb"),
        ({"name": "pay", "scale": "log", "ladder": [5]}, {}, "scale: is for intervals of numbers"),
        ({"name": "pay", "top": 9}, {"algorithm": "samarati"}, "top: is not available with algor"),
        ({"name": "pay", "scale": "log"}, {"algorithm": "tds"}, "scale: is not available with al"),
        ({"name": "pay", "top": [9]}, {}, "top: must be text, not"),
    ],
)
def test_what_cannot_be_is_refused(column: dict[str, Any], more: dict[str, Any], said: str) -> None:
    with pytest.raises(JobError, match=said):
        anonymize(people(), {"k": 5, "quasi_identifiers": [column], **more})
