"""The main job, README's DAG and a foreign DAG in a real Airflow, from the trigger to the release.

`airflow dags test` runs the main job in one process. Scheduler, DAG processor, API server,
LocalExecutor, SQLite run with the tests of servers, for the sake of the minute that they take;
`tests/servers/airflow` has the rest. They start from `/`, with the wheel and what `init` copies:
none of them sees the checkout.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from adversary import covers
from dag_runs import form, published, states
from local_airflow import CHECKOUT
from own_wheel import built, called, installed
from projects import QUASI_IDENTIFIERS, Project, airflow_of

pytestmark = pytest.mark.airflow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings by which a Python finds the wheel, and no checkout."""
    return installed(built(tmp_path_factory), tmp_path_factory.mktemp("wheel") / "site")


def begun(root: Path, wheel: dict[str, str]) -> Project:
    """A project, with an Airflow on SQLite that does not run yet."""
    called(Path("/"), "-S", "-m", "mondrian_ops", "init", str(root), **wheel)
    settings = {**wheel, "AIRFLOW__CORE__PLUGINS_FOLDER": str(root / "plugins")}
    return Project(root, airflow_of(root, "", settings, folder=Path("/")))


@pytest.fixture(scope="module")
def own_project(
    tmp_path_factory: pytest.TempPathFactory, wheel: dict[str, str]
) -> Iterator[Project]:
    """A project with README's DAG and that of ``examples`` among its own; its Airflow runs."""
    root = tmp_path_factory.mktemp("airflow") / "project"
    project = begun(root, wheel)
    shutil.copy(CHECKOUT / "examples" / "dags" / "customers.py", root / "dags")
    readme = (CHECKOUT / "README.md").read_text("utf-8")
    (shown,) = re.findall(r"```python\n(from airflow.*?)```", readme, re.DOTALL)
    (root / "dags" / "readme.py").write_text(shown)
    with project.airflow:
        yield project


def test_the_main_job_runs_in_one_process(tmp_path: Path, wheel: dict[str, str]) -> None:
    project = begun(tmp_path / "project", wheel)
    airflow = project.airflow
    airflow.home.mkdir()
    airflow.migrate()
    conf = json.dumps(main_job(project))
    one = str(project.root / "dags" / "mondrian_anonymize.py")  # all would be written, twice
    words = ("mondrian_anonymize", "--dagfile-path", one, "--conf", conf)
    printed = airflow.command("dags", "test", *words)
    assert "state=success" in printed
    check_main_release(project)


@pytest.mark.servers
def test_it_runs_on_the_wheel(own_project: Project) -> None:
    (ours,) = (
        plugin
        for plugin in own_project.airflow.request("GET", "/api/v2/plugins")["plugins"]
        if plugin["name"] == "mondrian_ops"
    )
    assert ours["source"].startswith("mondrian-ops==")


@pytest.mark.servers
@pytest.mark.parametrize(
    ("dag_id", "output"), [("mondrian_anonymize", "people"), ("visits", "visits")]
)
def test_the_form_s_defaults_and_the_readme_s_dag_run(
    own_project: Project, dag_id: str, output: str
) -> None:
    airflow = own_project.airflow
    assert airflow.finish(dag_id, airflow.trigger(dag_id)) == "success"
    assert published(own_project.root / "out" / output) > 0


@pytest.fixture(scope="module")
def main_run(own_project: Project) -> str:
    """The run of the main job, which is over."""
    airflow = own_project.airflow
    run_id = airflow.trigger("mondrian_anonymize", main_job(own_project))
    assert airflow.finish("mondrian_anonymize", run_id) == "success"
    return run_id


def main_job(project: Project) -> dict[str, Any]:
    """The main job, as the trigger form gives it."""
    job = {
        "input": str(source_of(project)),
        "output": str(release_of(project)),
        "k": 5,
        "l": 2,
        "identifiers": ["name"],
        "quasi_identifiers": QUASI_IDENTIFIERS,
        "sensitive": ["diagnosis"],
        "overlap": "refuse",
    }
    return form(job)


def source_of(project: Project) -> Path:
    return project.root / "include" / "examples" / "people.csv"


def release_of(project: Project) -> Path:
    return project.root / "out" / "main" / "release"


@pytest.mark.servers
def test_the_main_job_runs_from_the_form_to_the_release(
    own_project: Project, main_run: str
) -> None:
    assert states(own_project.airflow.tasks("mondrian_anonymize", main_run)) == {
        ("partition", "success"): 1,
        ("anonymize_fragment", "success"): 3,
        ("wrap_up", "success"): 1,
        ("clean_up", "success"): 1,
    }
    check_main_release(own_project)


def check_main_release(project: Project) -> None:
    """It lies alone in its folder, keeps k and l, and tells the truth about the people."""
    release = release_of(project)
    assert [path.name for path in release.parent.iterdir()] == ["release"]
    report = json.loads((release / "_report.json").read_text())
    assert report["verification"]["passed"] is True
    assert report["overlap"]["people_by"] == ["name"]
    assert report["overlap"]["people"] > 0
    people = pd.read_csv(source_of(project), dtype=str, keep_default_na=False)
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


@pytest.mark.servers
def test_a_fragment_that_is_cleared_is_done_again_with_what_follows(
    own_project: Project, main_run: str
) -> None:
    airflow, release = own_project.airflow, release_of(own_project)
    files = {path.name: path.read_bytes() for path in release.iterdir()}
    dag = "/api/v2/dags/mondrian_anonymize"
    cleared = {"dag_run_id": main_run, "task_ids": [["anonymize_fragment", 1]], "dry_run": False}
    options = {"include_downstream": True, "only_failed": False}
    airflow.request("POST", f"{dag}/clearTaskInstances", {**cleared, **options})
    assert airflow.finish("mondrian_anonymize", main_run) == "success"
    tasks = airflow.tasks("mondrian_anonymize", main_run)
    assert states([each for each in tasks if each["try_number"] > 1]) == {
        ("anonymize_fragment", "success"): 1,
        ("wrap_up", "success"): 1,
        ("clean_up", "success"): 1,
    }
    assert {path.name: path.read_bytes() for path in release.iterdir()} == files


@pytest.mark.servers
def test_a_foreign_dag_goes_on_with_the_release(own_project: Project) -> None:
    root, airflow = own_project.root, own_project.airflow
    source = root / "include" / "examples" / "people.csv"
    (root / "data").mkdir(exist_ok=True)
    shutil.copy(source, root / "data" / "crm_export.csv")
    run_id = airflow.trigger("customers")
    assert airflow.finish("customers", run_id) == "success"
    (release,) = (root / "out" / "customers").iterdir()
    assert published(release) == (pd.read_csv(source)["age"] >= 18).sum()
    mart = pd.read_csv(root / "out" / "income_by_sex_and_age.csv")
    shown = pd.concat(map(pd.read_parquet, release.glob("part-*.parquet")))
    assert set(mart["age"].astype(str)) == set(shown["age"].astype(str))
