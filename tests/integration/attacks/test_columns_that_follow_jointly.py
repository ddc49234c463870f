"""Columns that follow from several quasi-identifiers together, and find people in their classes.

The attackers here know the formula; what a run measures has to be learned from the rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adversary import Release, opened
from mondrian_ops import anonymize, pipeline, publish
from mondrian_ops.datasets.people import people
from mondrian_ops.errors import PrivacyError
from mondrian_ops.report import render_html, render_markdown, render_text
from mondrian_ops.stores import load_job
from tiers import in_soak, one_here, one_in

K = 5
Formula = Callable[[pa.Table], np.ndarray[Any, Any]]


@cache
def patients(rows: int = 1000) -> pa.Table:
    """People with columns that were computed from others, and some that were not."""
    random = np.random.default_rng(5)
    height = np.round(random.normal(170, 10, rows), 1)
    weight = np.round(random.normal(75, 14, rows).clip(40, 160), 1)
    age, area = random.integers(18, 90, rows), random.integers(10_000, 10_400, rows)
    return pa.table(
        {
            "height": height,
            "weight": weight,
            "age": age,
            "zip": area,
            "bmi": np.round(weight / (height / 100) ** 2, 1),
            "sum": age + area,
            "text": [f"{one} {other}" for one, other in zip(age, area, strict=True)],
            "mostly": np.where(random.random(rows) < 0.8, age, random.integers(18, 90, rows)),
            "score": np.round(random.normal(size=rows), 1),
            "group": [f"group{each}" for each in random.integers(0, 8, rows)],
        }
    )


def bmi(table: pa.Table) -> np.ndarray[Any, Any]:
    return table["weight"].to_numpy() / (table["height"].to_numpy() / 100) ** 2


def age_and_zip(table: pa.Table) -> np.ndarray[Any, Any]:
    return table["age"].to_numpy() + table["zip"].to_numpy()


def age(table: pa.Table) -> np.ndarray[Any, Any]:
    return table["age"].to_numpy()


def released(folder: Path, column: str, quasi: list[str], **keys: Any) -> Release:
    folder.mkdir(exist_ok=True)
    pq.write_table(patients().select([*quasi, column]), folder / "in.parquet")
    job = {
        "input": str(folder / "in.parquet"),
        "output": str(folder / "release"),
        "k": K,
        "quasi_identifiers": quasi,
        "sensitive": [column],
        "cut": "median",
        **keys,
    }
    return opened(folder / "release", pipeline.run(load_job(job)))


def found_by_formula(
    release: Release, table: pa.Table, column: str, quasi: list[str], formula: Formula
) -> float:
    """The share of people whose row an attacker names, who knows the formula and the labels.

    The attacker looks at the people who fit into a class, and at the rows of the class. A row is
    named where the formula comes nearest to it alone; it is right if it has the person's values.
    """
    classes = release.classes(quasi)
    known = {name: table[name].to_numpy() for name in quasi}
    values, predicted = table[column].to_numpy(), formula(table)
    right = 0
    for labels, rows in classes.items():
        fits = np.ones(table.num_rows, bool)
        for name, label in zip(quasi, labels, strict=True):
            fits &= _within(label, known[name])
        published = np.array([row[column] for row in rows])
        for person in np.flatnonzero(fits):
            distance = np.abs(published - predicted[person])
            (nearest,) = np.nonzero(distance <= distance.min() + 1e-9)
            right += len(nearest) == 1 and published[nearest[0]] == values[person]
    return right / table.num_rows


def _within(label: Any, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which values are in an interval such as ``[20, 30)``."""
    text = str(label)
    if text[0] not in "[(":
        return np.asarray(values == float(text))
    low, high = map(float, text[1:-1].split(","))
    above = values >= low if text[0] == "[" else values > low
    return above & (values <= high if text[-1] == "]" else values < high)


CASES: Mapping[str, tuple[list[str], Formula]] = {
    "bmi": (["height", "weight"], bmi),
    "sum": (["age", "zip"], age_and_zip),
    "mostly": (["age", "zip"], age),
}


@pytest.mark.parametrize("column", CASES)
def test_what_is_measured_is_what_an_attacker_with_the_formula_does(tmp_path, column):
    """The body mass index, the sum of age and zip code, and a column that is mostly the age."""
    quasi, formula = CASES[column]
    release = released(tmp_path, column, quasi)
    (figures,) = release.report["singled_out"]
    attacked = found_by_formula(release, patients(), column, quasi, formula)
    assert attacked > 0.25
    assert figures["rows"] == 1000
    assert figures["found"] == pytest.approx(attacked, abs=0.08)
    assert 0.5 < figures["found"] / figures["claimed"] <= 1
    (note,) = release.report["dependencies"]["notes"]
    assert note.startswith(f"{column!r} stays as it is and singles out ")
    for shown in (render_text(release.report, 120), render_html(release.report)):
        assert "rows in their classes" in " ".join(shown.split())
    assert column in render_markdown(release.report)


@pytest.mark.parametrize("column", [*CASES, "text"])
def test_refused_by_that_figure_before_anything_is_published(tmp_path, column):
    quasi, _ = CASES.get(column, CASES["sum"])
    with pytest.raises(PrivacyError) as refused:
        released(tmp_path, column, quasi, dependencies="refuse")
    assert str(refused.value).startswith("dependencies: the release is refused and not published: ")
    assert f"{column!r} stays as it is" in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@cache
def pairs() -> pa.Table:
    """What docs/privacy.md lists: columns, and the quasi-identifiers that they follow from."""
    random, rows = np.random.default_rng(3), 2000
    table = patients(rows)
    age = table["age"].to_numpy()
    born = (2025 - age) * 365 - random.integers(0, 365, rows)
    state, order = random.integers(0, 50, rows), random.permutation(rows)
    zip_code = table["zip"].to_numpy()
    more = {
        "income": random.lognormal(10, 1, rows).astype(np.int64),
        "state": [f"state{each}" for each in state],
        "day": np.sort(random.integers(0, 3000, rows)),
        "street": order // 40,
    }
    more |= {
        "logarithm": np.log(more["income"] + 1),
        "square": age**2,
        "thousands": more["income"] // 1000,
        "birthday": born,
        "year": 2025 - age,
        "number": 7 * np.arange(rows) + random.integers(0, 7, rows),
        "capital": [f"capital{each * 37 % 50}" for each in state],
        "region": [f"r{each}" for each in zip_code // 10],
        "household": [f"h{each}" for each in random.permutation(rows)[order // 4]],
    }
    for name, column in more.items():
        table = table.append_column(name, pa.array(column))
    return table


PAIRS = {
    "logarithm": ["income", "age"], "square": ["age", "zip"], "thousands": ["income", "age"],
    "birthday": ["age", "zip"], "year": ["age", "zip"], "number": ["day", "age"],
    "capital": ["state", "age"], "region": ["zip", "age"], "household": ["street", "age"],
    "bmi": ["height", "weight"], "sum": ["age", "zip"], "mostly": ["age", "zip"],
}  # fmt: skip


@pytest.mark.parametrize("column", PAIRS)
def test_the_twelve_pairs_of_the_documentation(column):
    """Each is found in classes, whether or not it is found before rows are cut."""
    job = {"k": K, "quasi_identifiers": PAIRS[column], "sensitive": [column], "cut": "median"}
    table = pairs().select([*PAIRS[column], column])
    _, report = anonymize(table, job)
    (figures,) = report["singled_out"]
    assert figures["found"] >= 0.05
    assert "jointly" in {each["how"] for each in report["dependencies"]["findings"]}


@pytest.mark.parametrize(
    ("column", "k"),
    [
        *(("score", 2), ("group", 5), ("score", 20)),
        *in_soak([("group", 2), ("score", 5), ("group", 20)]),
    ],
)
def test_an_independent_column_finds_nobody_and_is_not_refused(tmp_path, column, k):
    release = released(tmp_path, column, ["age", "zip"], k=k, dependencies="refuse", l=2)
    assert [each["found"] for each in release.report["singled_out"]] == [0.0]
    assert "dependencies" not in release.report
    (note,) = [each for each in release.report["notes"] if "predicts" in each]
    assert note.endswith("from all quasi-identifiers finds none")


def test_ordinary_people_are_not_refused():
    """Income depends on age and occupation, diagnoses on age; no one is found by either."""
    job = {"k": 5, "quasi_identifiers": ["age", "sex", "zip=prefix", "country"],
           "dependencies": "refuse", "cut": "median",
           "sensitive": ["diagnosis", "income", "occupation"]}  # fmt: skip
    _, report = anonymize(people(5000, 1), job)
    assert len(report["singled_out"]) == 4  # three columns, and all of them together
    assert max(each["found"] for each in report["singled_out"]) < 0.01


def test_columns_that_find_people_only_together():
    """Each of 24 columns says a little of age or zip code, and all together say much."""
    random = np.random.default_rng(1)
    table = patients().select(["age", "zip"])
    names = [f"c{number}" for number in range(24)]
    for number, name in enumerate(names):
        of = table[("age", "zip")[number % 2]].to_numpy().astype(float)
        noisy = (of - of.mean()) / of.std() + random.normal(size=len(of)) * 0.25
        table = table.append_column(name, pa.array(np.round(noisy, 1)))
    job = {"k": K, "quasi_identifiers": ["age", "zip"], "sensitive": names, "cut": "median"}
    _, report = anonymize(table, job)
    *each, together = report["singled_out"]
    assert together["column"] is None
    assert max(one["found"] for one in each) < 0.05 < together["found"]
    (note,) = report["dependencies"]["notes"]
    assert note.startswith("what stays as it is, all columns of it together, singles out ")
    with pytest.raises(PrivacyError, match="all columns of it together"):
        anonymize(table, {**job, "dependencies": "refuse"})


@pytest.mark.parametrize(
    "keys",
    one_here(one_in(2, [
        {"partitioning": {"fragments": 4}, "retrieval": "scatter"},
        {"partitioning": {"fragments": 4}, "retrieval": "pushdown"},
        {"algorithm": "di_mondrian"},
        {"algorithm": "samarati", "samarati": {"max_suppressed": 0.1},
         "quasi_identifiers": ["height=ladder:5/10/20", "weight=ladder:5/10/20/40"]},
        {"interval_style": "bounds"},
        {"entity_id": "patient"},
    ])),
    ids=["scatter", "pushdown", "di_mondrian", "samarati", "bounds", "entity_id"],
)  # fmt: skip
def test_whichever_way_the_rows_are_cut(tmp_path, keys):
    source = patients(3000).append_column("patient", pa.array(np.arange(3000) // 2))
    job = {"k": K, "quasi_identifiers": ["height", "weight"], "sensitive": ["bmi"],
           "identifiers": ["patient"], **keys}  # fmt: skip
    if "algorithm" not in keys:
        job["cut"] = "median"
    pq.write_table(source.select(["height", "weight", "bmi", "patient"]), tmp_path / "in.parquet")
    paths = {"input": f"{tmp_path}/in.parquet", "output": f"{tmp_path}/release"}
    report = pipeline.run(load_job({**job, **paths}))
    (figures,) = report["singled_out"]
    assert figures["found"] > 0.2
    with pytest.raises(PrivacyError, match="'bmi' stays as it is"):
        pipeline.run(load_job({**job, **paths, "dependencies": "refuse"}))


@pytest.mark.parametrize("algorithm", one_in(2, ["tds", "samarati"]))
@pytest.mark.parametrize("classes", [1, 4])
def test_a_few_classes_of_many_people(algorithm, classes):
    """There is no other class of which to learn how a number follows from height and weight."""
    table = patients(3000).select(["height", "weight", "score"])
    height, weight = (table[name].to_numpy() for name in ("height", "weight"))
    number = pa.array(np.round(height * 1000 + weight, 1))
    quasi = [f"{name}=ladder:{500 if classes == 1 else 30}" for name in ("height", "weight")]
    job = {"k": 400, "quasi_identifiers": quasi, "sensitive": ["number", "score"],
           "algorithm": algorithm}  # fmt: skip
    _, report = anonymize(table.append_column("number", number), job)
    assert report["equivalence_classes"] <= classes
    found = {each["column"]: each["found"] for each in report["singled_out"]}
    assert found["number"] > 0.5
    assert found["score"] == 0
    with pytest.raises(PrivacyError, match="'number' stays as it is"):
        anonymize(table.append_column("number", number), {**job, "dependencies": "refuse"})


PROTECTED = {"kind": "snapshots", "protect": "intersection"}
NIGHTS: Mapping[str, dict[str, Any]] = {
    "increments": {"series": {}},
    "stable boundaries": {"series": {"boundaries": "stable"}},
    "rows wait": {"series": {"hold_nights": 3, "hold_above": 0.05}},
    "intersection": {"series": PROTECTED, "l": 2},
    "counterfeits": {"series": {**PROTECTED, "unmatched": "counterfeit"}, "l": 2},
    "subtraction": {
        "series": {**PROTECTED, "unmatched": "counterfeit", "subtraction": "protect"},
        "l": 2,
    },
}


@pytest.mark.parametrize(
    "name",
    [
        *one_here(["rows wait", "stable boundaries", "subtraction"]),
        *in_soak(["increments", "intersection", "counterfeits"]),
    ],
)
def test_in_each_night_of_a_series(tmp_path, name):
    """Most people of the first night are there in the second one, with some others."""
    source = patients(3000).select(["height", "weight", "bmi"])
    source = source.append_column("patient", pa.array(np.arange(3000)))
    keys = {"k": K, "quasi_identifiers": ["height", "weight"], "sensitive": ["bmi"],
            "cut": "median", **NIGHTS[name]}  # fmt: skip
    keys |= {"entity_id": "patient"} if "l" in keys else {"identifiers": ["patient"]}
    for night, first in (("2025-01-01", 0), ("2025-01-02", 500)):
        pq.write_table(source.slice(first, 2000), tmp_path / f"{night}.parquet")
        job = {**keys, "input": f"{tmp_path}/{night}.parquet", "output": f"{tmp_path}/out/{night}"}
        if night == "2025-01-02":
            with pytest.raises(PrivacyError, match="'bmi' stays as it is"):
                pipeline.run(load_job({**job, "dependencies": "refuse"}))
        report = pipeline.run(load_job(job))
        (figures,) = report["singled_out"]
        assert figures["found"] > 0.1
        assert [each["how"] for each in report["dependencies"]["findings"]] == ["jointly"]


def test_refused_where_a_policy_says_so_only_since_the_release_was_checked(tmp_path):
    table = patients().select(["height", "weight", "bmi"])
    pq.write_table(table, tmp_path / "in.parquet")
    job = load_job(
        {"input": f"{tmp_path}/in.parquet", "output": f"{tmp_path}/release", "k": K,
         "quasi_identifiers": ["height", "weight"], "sensitive": ["bmi"]}
    )  # fmt: skip
    work = publish.work_path(str(job.output), "a run")
    summaries = [
        pipeline.anonymize_fragment(each) for each in pipeline.partition(job, work=work)
    ]  # fmt: skip
    pipeline.check(job, work=work, summaries=summaries)
    # The rows of the source are gone by then, as while a release waits for an approval.
    publish.WorkDir(work).remove_fragments()
    stricter = load_job({**job.to_dict(), "dependencies": "refuse"})
    for step in (
        partial(pipeline.publish, stricter, work=work),
        partial(pipeline.check, stricter, work=work, summaries=summaries),
    ):
        with pytest.raises(PrivacyError, match=r"^dependencies: the release is refused") as refused:
            step()
        assert refused.value.report["outcome"]["state"] == "refused"
    assert not (tmp_path / "release").exists()


def test_no_value_is_in_what_is_said(tmp_path):
    release = released(tmp_path, "text", ["age", "zip"])
    said = json.dumps([release.report["notes"], release.report["dependencies"]])
    assert not any(text in said for text in patients()["text"].to_pylist())
