"""Hard input through a whole run: a release that holds when it is looked at from outside, or a
clear error, and never a person's value in what is said."""

from __future__ import annotations

import contextlib
import io
import json
import os
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mondrian_ops import cli, pipeline
from mondrian_ops.errors import MondrianOpsError
from mondrian_ops.job.job import Job

# In identifiers, sensitive and other columns; no message, report or page may show them.
CANARY = "Quasimodo"

WAYS: Mapping[str, Mapping[str, Any]] = {
    "median": {"cut": "median", "retrieval": "scatter"},
    "gain": {"cut": "gain", "retrieval": "pushdown"},
    "lookahead": {"cut": "lookahead", "retrieval": "scatter", "interval_style": "bounds"},
    "relaxed": {"relaxed": True, "retrieval": "pushdown"},
    "di_mondrian": {"algorithm": "di_mondrian", "retrieval": "pushdown"},
    "samarati": {"algorithm": "samarati", "samarati": {"max_suppressed": 0.2}},
    "tds": {"algorithm": "tds", "tds": {"partitions": 2, "k_intermediate": 8}},
}


def people(rows: int = 60, **columns: Any) -> pa.Table:
    """``columns``, and what else a table of people has: canaries in all that is no
    quasi-identifier."""
    canaries = [f"{CANARY} {at}" for at in range(rows)]
    return pa.table(
        {
            "name": canaries,
            **columns,
            "age": pa.array(np.arange(rows) * 7 % 31),
            "illness": [f"{CANARY} {at % 5}" for at in range(rows)],
            "remark": canaries,
            "row": pa.array(range(rows)),
        }
    )


def attempt(here: Path, rows: int | None = None, **keys: Any) -> pa.Table | str:
    """Run the job in the directory ``here``; the release, or the text of the error.

    ``rows`` are those of the source, where every one of them has its number in ``row``. Fails
    where neither a good release nor a clear error came of it.
    """
    before = sorted(os.listdir(here))
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            job = _job(here, keys)
            report = pipeline.run(job)
    except MondrianOpsError as error:
        shown = "".join(traceback.format_exception(error))
        _tells_nobody(shown + said.getvalue())
        assert sorted(os.listdir(here)) == before, "a failure leaves nothing"
        assert len(str(error)) > 20, "says what is wrong, and what to do"
        return str(error)
    _tells_nobody(said.getvalue())
    out = here / "out"
    for name in ("_report.json", "_report.html"):
        _tells_nobody((out / name).read_text(encoding="utf-8"))
    release = pq.read_table(out)
    _holds(release, job, report)
    if rows is not None:
        numbers = release["row"].to_pylist()
        assert len(set(numbers)) == len(numbers)
        assert set(numbers) <= set(range(rows))
        assert len(numbers) + report["rows"]["suppressed"] == rows
    _verifies(here, job)
    return release


def _job(here: Path, keys: Mapping[str, Any]) -> Job:
    whole = {
        "input": str(here / "in"),
        "output": str(here / "out"),
        "k": 3,
        "l": 2,
        "identifiers": ["name"],
        "quasi_identifiers": ["x", "age"],
        "sensitive": ["illness"],
        "unlisted": "publish",
        "partitioning": {"fragments": 3, "sample": 1.0},
        **keys,
    }
    return replace(Job.from_dict(whole), base_dir=str(here))


def _tells_nobody(text: str) -> None:
    assert CANARY not in text


def _holds(release: pa.Table, job: Job, report: Mapping[str, Any]) -> None:
    """Count the release anew, with pandas."""
    names = [
        published
        for name in job.quasi_identifier_names
        for published in (name, f"{name}_min", f"{name}_max", f"{name}_hidden")
        if published in release.column_names and published not in (job.sensitive)
    ]
    classes = pd.DataFrame({at: _numbered(release[name]) for at, name in enumerate(names)})
    sizes = classes.groupby(list(classes), dropna=False).size()
    assert sizes.min() >= job.k
    assert report["achieved"]["k"] == sizes.min()
    assert report["equivalence_classes"] == len(sizes)
    assert not set(job.identifiers) & set(release.column_names)
    for name in job.sensitive if job.l is not None else ():
        classes["s"] = _numbered(release[name])
        found = classes.groupby(list(classes)[:-1], dropna=False)["s"].nunique(dropna=False)
        assert found.min() >= job.l


def _numbered(column: pa.ChunkedArray) -> pd.Series:
    """Equal numbers for equal values, whatever their type."""
    array = _plain(column).combine_chunks()
    if pa.types.is_null(array.type):
        return pd.Series(np.full(len(array), -1))
    return pd.Series(array.dictionary_encode().indices.to_pandas()).fillna(-1).astype(int)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without dictionary, and of a type that pyarrow compares; floats with one zero and one
    missing value."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal32(column.type) or pa.types.is_decimal64(column.type):
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
        column = pc.add(column, pa.scalar(0, column.type))
    return column


def _verifies(here: Path, job: Job) -> None:
    """As a person would: the command line, with the release and the job."""
    path = here / "job.json"
    path.write_text(json.dumps(job.to_dict()), encoding="utf-8")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = cli.main(["verify", str(here / "out"), "--job", str(path)])
    assert (status, said.getvalue().splitlines()[-1]) == (0, "PASSED")
    _tells_nobody(said.getvalue())


def covers(release: pa.Table, source: pa.Table) -> None:
    """Column ``x`` of each class is exactly the interval of its originals."""
    ends = ("", "_min", "_max", "_hidden")
    names = [f"{name}{end}" for name in ("x", "age") for end in ends]
    names = [name for name in names if name in release.column_names]
    frame = pd.DataFrame({name: _numbered(release[name]) for name in names})
    class_of = frame.groupby(names).ngroup()
    original = _plain(source["x"].take(release["row"]))
    rows = pa.table({"class": pa.array(class_of), "original": original, "first": range(len(frame))})
    wanted = [("original", "min"), ("original", "max"), ("original", "count"), ("first", "min")]
    for each in rows.group_by("class").aggregate([*wanted, ("first", "count")]).to_batches():
        ends = [each[f"original_{end}"].cast(pa.string()).to_pylist() for end in ("min", "max")]
        first = each["first_min"]
        shown = [_texts(release, name).take(first).to_pylist() for name in names if name[0] == "x"]
        counts = each["original_count"].to_pylist(), each["first_count"].to_pylist()
        for low, high, present, size, *published in zip(*ends, *counts, *shown, strict=True):
            assert published == _interval(low, high, present, size, len(published) > 1)


def _interval(low: str, high: str, present: int, size: int, bounds: bool) -> list[str | None]:
    """What is published of a class of ``size`` rows, of which so many are ``present``."""
    mixed = 0 < present < size
    if bounds:
        return [None, None, "true"] if mixed else [low, high, "false"]
    if mixed:
        return ["*"]
    return [low if low == high else f"[{low}, {high}]"]


def _texts(release: pa.Table, name: str) -> pa.ChunkedArray:
    return _plain(release[name]).cast(pa.string())
