"""A model that is trained on a release scores raw rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from mondrian_ops import Generalizer, pipeline, read_release
from mondrian_ops.errors import InputError

ROWS = 600
TREE = "Paris;France;*\nLyon;France;*\nRome;Italy;*\nBari;Italy;*\n"
COLUMNS = [
    *("age", "latitude", "job=set", "zip=prefix", "town=hierarchy:towns.csv"),
    *("born=ladder:month/year", "height=ladder:5/20", "weight=grid:10"),
]


def people(rows: int = ROWS, seed: int = 4) -> pa.Table:
    draw = np.random.default_rng(seed)
    age = draw.integers(18, 80, rows)
    jobs = draw.choice(["Farming, fishing", "Sales", "Tech"], rows)
    ill = draw.random(rows) < 1 / (1 + np.exp(-(age - 50) / 8 - (jobs == "Tech")))
    born = pa.array(draw.integers(15_000, 17_000, rows), pa.int32()).cast(pa.date32())
    return pa.table(
        {
            "age": pa.array(age, mask=draw.random(rows) < 0.02),
            "latitude": draw.normal(52, 1, rows),
            "job": jobs,
            "zip": [f"{each:05}" for each in draw.integers(10_000, 10_050, rows)],
            "town": draw.choice(["Paris", "Lyon", "Rome", "Bari"], rows),
            "born": born,
            "height": draw.integers(150, 200, rows),
            "weight": draw.integers(45, 120, rows),
            "ill": ill.astype(np.int64),
        }
    )


def released(folder: Path, *columns: str, **options: Any) -> Path:
    pq.write_table(people(), folder / "people.parquet")
    (folder / "towns.csv").write_text(TREE)
    job = {"input": str(folder / "people.parquet"), "output": str(folder / "out"), "k": 10}
    job |= {"quasi_identifiers": list(columns), "sensitive": ["ill"], "cut": "median", **options}
    (folder / "job.json").write_text(json.dumps(job))
    pipeline.run(pipeline.load_job(folder / "job.json"))
    return folder / "out"


def transformer(folder: Path, *columns: str, **options: Any) -> Generalizer:
    trees = {"town": folder / "towns.csv"} if any("hierarchy:" in each for each in columns) else {}
    return Generalizer(released(folder, *columns, **options), hierarchies=trees)


TYPED = {"interval_style": "bounds", "set_style": "list"}


@pytest.mark.parametrize(
    ("column", "style"), [*((each, {}) for each in COLUMNS), ("age", TYPED), ("job=set", TYPED)]
)
def test_each_value_gets_what_the_release_shows_of_it(
    tmp_path: Path, column: str, style: dict[str, str]
) -> None:
    """Of one column most classes do not overlap: each row then gets the features of its class."""
    generalizer = transformer(tmp_path, column, **style).fit()
    name = column.partition("=")[0]
    raw = generalizer.transform(people())
    trees = {"town": tmp_path / "towns.csv"} if name == "town" else None
    shown = read_release(tmp_path / "out", "weights", hierarchies=trees, columns=[name])
    assert list(generalizer.get_feature_names_out()) == list(shown)
    np.testing.assert_allclose(generalizer.transform(people().to_pandas()), raw)
    if name in ("latitude", "born", "height"):
        np.testing.assert_allclose(raw[:, 0], covering(tmp_path / "out", name))
        return
    if name == "zip":  # a short prefix covers what a longer one does
        stems = [label.removeprefix("zip=").rstrip("*") for label in shown]
        for text, row in zip(people()["zip"].to_pylist(), raw, strict=True):
            assert all(text.startswith(stems[at]) for at in np.flatnonzero(row))
            assert row.sum() == pytest.approx(1)
        return
    features, _ = generalizer.training("ill")
    assert sorted(map(str, raw.tolist())) == sorted(map(str, features.tolist()))


def covering(release: Path, name: str) -> list[float]:
    """The mean middle of the intervals that cover the value of each row."""
    bounds = read_release(release, "bounds", kind="arrow", columns=[name])
    low, high, values = (
        each.cast(pa.int32()).to_numpy() if pa.types.is_date32(each.type) else each.to_numpy()
        for each in (*bounds.columns, people()[name])
    )
    last = np.nextafter(high, -np.inf) if name == "latitude" else high  # on a grid: [52, 52.1)
    middle = (low + high) / 2
    middle = np.floor(middle) if name == "born" else middle
    return [float(middle[(low <= value) & (value <= last)].mean()) for value in values]


def test_a_model_of_the_release_scores_rows_it_has_not_seen(tmp_path: Path) -> None:
    generalizer = transformer(tmp_path, "age", "job=set", "town=hierarchy:towns.csv").fit()
    features, ill = generalizer.training("ill")
    others, raw = people(2000, seed=9).to_pandas(), people().to_pandas()
    model, plain = (HistGradientBoostingClassifier(random_state=0) for _ in range(2))
    with threadpool_limits(1):  # threads that wait for each other take longer than one alone
        model.fit(features, ill)
        guessed = make_pipeline(generalizer, model).predict_proba(others)[:, 1]
        best = plain.fit(raw[["age"]], raw["ill"]).predict_proba(others[["age"]])[:, 1]
    assert roc_auc_score(others["ill"], guessed) > 0.75
    assert roc_auc_score(others["ill"], guessed) > roc_auc_score(others["ill"], best) - 0.04


def test_values_that_no_class_has_get_the_nearest_classes(tmp_path: Path) -> None:
    generalizer = transformer(tmp_path, "age", "job=set").fit().set_output(transform="pandas")
    rows = pd.DataFrame({"age": [500.0, 30.0, np.nan], "job": ["Sales", "Astronaut", None]})
    found = generalizer.transform(rows)
    assert isinstance(found, pd.DataFrame)
    assert found["job=Sales"][0] > 0.9
    assert found["age"][1] == pytest.approx(30, abs=10)
    shares = found.filter(like="job=").iloc[:2].sum(axis=1)
    assert np.allclose(shares, 1)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    generalizer = transformer(tmp_path, "age", "town=hierarchy:towns.csv")
    with pytest.raises(InputError, match="hierarchies: column 'town' is generalized by a hier"):
        Generalizer(tmp_path / "out").fit()
    generalizer.fit()
    with pytest.raises(InputError, match="X: has no column 'age'"):
        generalizer.transform(pd.DataFrame({"town": ["Paris"]}))
    with pytest.raises(InputError, match=r"target: the release publishes no column 'il' .*'ill'"):
        generalizer.training("il")
    with pytest.raises(InputError, match="column 'age': its values of type string cannot be"):
        generalizer.transform(pd.DataFrame({"age": ["old"], "town": ["Paris"]}))
