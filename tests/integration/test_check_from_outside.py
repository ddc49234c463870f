"""The check from outside finds what is wrong with a release, whatever that is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from mondrian_ops import pipeline
from soak import outside
from soak.drops import QUASI, Drop, job_of

Change = Callable[[pd.DataFrame], pd.DataFrame]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """A release, and the files that it is of."""
    place = tmp_path_factory.mktemp("outside")
    files = Drop(3, "two files", 400).write(place / "people")
    pipeline.run(pipeline.load_job(job_of(files, place / "release")))
    return place / "release", files


def test_a_release_of_ours_passes(published: tuple[Path, list[Path]]) -> None:
    seen = outside.check(*published)
    assert seen.rows == 400
    assert seen.classes > 10


def _alone(rows: pd.DataFrame) -> pd.DataFrame:
    """One row gets a class of its own; what is published of it still covers it."""
    return rows.assign(zip=rows["zip"].where(rows.index > 0, "*"), age=_wide(rows["age"]))


def _wide(ages: pd.Series) -> pd.Series:
    return ages.where(ages.index > 0, "[0, 200]")


def _alike(rows: pd.DataFrame) -> pd.DataFrame:
    """All rows of one class have one diagnosis, in the source too."""
    numbers = rows.groupby(list(QUASI), dropna=False).ngroup()
    return rows.assign(diagnosis=rows["diagnosis"].mask(numbers == numbers[0], "Asthma"))


WRONG: dict[str, tuple[Change, str]] = {
    "a row lost": (lambda rows: rows[1:], "each row once"),
    "a row twice": (lambda rows: pd.concat([rows, rows[:1]]), "each row once"),
    "a row for another": (
        lambda rows: rows.assign(row=rows["row"].where(rows.index > 0, rows.loc[1, "row"])),
        "each row once",
    ),
    "an identifier": (lambda rows: rows.assign(name="Mary"), "no identifier"),
    "values of another row": (
        lambda rows: rows.assign(income=rows["income"].sample(frac=1, random_state=0).values),
        "income: of another row",
    ),
    "another interval": (
        lambda rows: rows.assign(
            visit_date=rows["visit_date"].str.replace(
                r"^\[.*", "[2199-01-01, 2199-12-31]", regex=True
            )
        ),
        "visit_date: ",
    ),
    "a class too small": (_alone, "k="),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_found(
    published: tuple[Path, list[Path]], tmp_path: Path, wrong: str
) -> None:
    change, says = WRONG[wrong]
    release = _copied(published[0], tmp_path, change)
    with pytest.raises(AssertionError, match=says):
        outside.check(release, published[1])


def test_a_class_of_one_diagnosis_is_found(
    published: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    release = _copied(published[0], tmp_path, _alike)
    rows = pd.read_parquet(release).set_index("row")["diagnosis"]
    source = pd.concat(map(pd.read_parquet, published[1]))
    source["diagnosis"] = rows.loc[source["row"]].to_numpy()
    source.to_parquet(tmp_path / "alike.parquet")
    with pytest.raises(AssertionError, match="l=1"):
        outside.check(release, [tmp_path / "alike.parquet"])


def _copied(release: Path, place: Path, change: Change) -> Path:
    copied = place / "release"
    copied.mkdir()
    rows = pd.concat(map(pd.read_parquet, sorted(release.glob("*.parquet"))))
    change(rows.reset_index(drop=True)).to_parquet(copied / "part-0.parquet", index=False)
    return copied
