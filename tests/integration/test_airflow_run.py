"""The main job in a real Airflow, from the trigger to the release, looked at from outside.

Scheduler, DAG processor, API server, LocalExecutor, SQLite; `tests/servers/airflow` has the rest.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from adversary import covers
from observing import form, states
from projects import QUASI_IDENTIFIERS, airflow_of, copied, opened


@pytest.mark.airflow
def test_the_main_job_runs_from_the_form_to_the_release(tmp_path: Path) -> None:
    root = copied(tmp_path / "project")
    settings = {**opened(root), "MONDRIAN_OPS_HIERARCHIES": str(root / "include" / "hierarchies")}
    source = root / "include" / "examples" / "people.csv"
    release = root / "out" / "release"
    job = {
        "input": str(source),
        "output": str(release),
        "k": 5,
        "l": 2,
        "identifiers": ["name"],
        "quasi_identifiers": QUASI_IDENTIFIERS,
        "sensitive": ["diagnosis"],
    }
    with airflow_of(root, "", settings) as airflow:
        run_id = airflow.trigger("mondrian_anonymize", form(job))
        assert airflow.finish("mondrian_anonymize", run_id) == "success"
        tasks = airflow.tasks("mondrian_anonymize", run_id)
    assert states(tasks) == {
        ("partition", "success"): 1,
        ("anonymize_fragment", "success"): 3,
        ("wrap_up", "success"): 1,
        ("clean_up", "success"): 1,
    }
    assert [path.name for path in release.parent.iterdir()] == ["release"]
    assert json.loads((release / "_report.json").read_text())["verification"]["passed"] is True
    people = pd.read_csv(source, dtype=str, keep_default_na=False)
    published = pd.concat(map(pd.read_parquet, release.glob("part-*.parquet"))).fillna("")
    names = [listed.partition("=")[0] for listed in QUASI_IDENTIFIERS]
    assert sorted(published.columns) == sorted([*names, "diagnosis"])
    assert sorted(published["diagnosis"]) == sorted(people["diagnosis"])
    classes = published.groupby(names)
    assert classes.size().min() >= 5
    known = published[published["diagnosis"] != ""].groupby(names)["diagnosis"]
    assert known.nunique().min() >= 2
    for name in names:
        shown = set(published[name])
        assert all(any(covers(text, value) for text in shown) for value in set(people[name]) - {""})
