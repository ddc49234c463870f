"""A release, checked against its drop as somebody would who does not have the package.

pandas reads the files of both, and ``adversary.covers`` each published text. Nothing of the package
is called, and nothing that it says of itself is believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from adversary import covers
from soak.drops import QUASI, SENSITIVE, K, L


@dataclass(frozen=True)
class Seen:
    """What there is in a release."""

    rows: int
    classes: int
    k: int
    l: int  # noqa: E741 - the name of the parameter in every paper


def check(release: Path, files: Sequence[Path]) -> Seen:
    """Assert that a release is of the rows of ``files``, each of them once, and keeps them safe."""
    published = pd.concat(map(pd.read_parquet, sorted(release.glob("*.parquet"))))
    source = _source(files)
    assert set(published.columns) == {*QUASI, *SENSITIVE, "row"}, "no identifier"
    assert sorted(published["row"]) == sorted(source["row"].astype(int)), "each row once"
    by_number = source.set_index(source["row"].astype(int)).loc[published["row"]]
    for name in SENSITIVE:
        assert _plain(published[name]) == _plain(by_number[name]), f"{name}: of another row"
    for name in QUASI:
        shown = set(zip(_plain(published[name]), _plain(by_number[name]), strict=True))
        wrong = [pair for pair in shown if not covers(*pair)]
        assert not wrong, f"{name}: {wrong[:3]} do not cover their values"
    classes = published.groupby(list(QUASI), dropna=False, sort=False)
    sizes = classes.size()
    diversity = min(classes[name].nunique(dropna=False).min() for name in SENSITIVE)
    seen = Seen(len(published), len(sizes), int(sizes.min()), int(diversity))
    assert seen.k >= K, seen
    assert seen.l >= L, seen
    return seen


def _source(files: Sequence[Path]) -> pd.DataFrame:
    """The rows of a drop, as text."""
    read = [
        pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
        if path.suffix == ".csv"
        else pd.read_parquet(path)
        for path in files
    ]
    return pd.concat(read)


def _plain(column: pd.Series[Any]) -> list[str | None]:
    """As text, so that a number from a CSV is one from Parquet; None is the missing value."""
    return [
        None if missing else _text(value)
        for value, missing in zip(column, column.isna(), strict=True)
    ]


def _text(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)
