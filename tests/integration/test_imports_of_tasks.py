"""What the tasks of a run import: each is a process of its own, and imports it all again.

The command line is one such process for all of them. These tests run with those of servers, for
Airflow is imported once more for them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.servers

TASKS = ["partition", "anonymize_fragment", "wrap_up", "clean_up"]

# What some jobs need, and this one does not.
OF_OTHER_JOBS = {
    "pandas", "rich", "pyspark", "fsspec", "sqlalchemy", "importlib.metadata",
    "mondrian_ops.catalogue.contracts",
    "mondrian_ops.cut.algorithms.samarati",
    "mondrian_ops.cut.algorithms.tds",
    "mondrian_ops.data.contract",
    "mondrian_ops.data.sketch",
    "mondrian_ops.engines.memory",
    "mondrian_ops.tables.in_memory",
    "mondrian_ops.pipeline.contract",
    "mondrian_ops.pipeline.in_memory",
    "mondrian_ops.pipeline.overlap_check",
    "mondrian_ops.series.gathering",
    "mondrian_ops.series.history",
    "mondrian_ops.series.intersection",
    "mondrian_ops.series.nights",
}  # fmt: skip

# As under Airflow, every task is forked from a process that has imported Airflow and the DAG file.
PROGRAM = """
import json, os, sys
from pathlib import Path
from types import SimpleNamespace

import airflow.sdk.execution_time.task_runner
from mondrian_ops.operators import (
    AnonymizeFragmentOperator, CleanUpOperator, PartitionOperator, WrapUpOperator
)

known = set(sys.modules)

def context():
    run = SimpleNamespace(
        dag_id="d", run_id="r", start_date=None, run_type="manual", triggering_user_name=None
    )
    instance = SimpleNamespace(
        id="i", task_id="t", map_index=-1, stats_tags={"dag_id": "d", "task_id": "t"},
        xcom_push=lambda key, value: None, xcom_pull=lambda task_ids, key: [],
        get_task_breadcrumbs=lambda dag_id, run_id: [],
    )
    kept = SimpleNamespace(get=lambda key, default=None: default, set=lambda *_, **__: None)
    with airflow.sdk.DAG("d", schedule=None) as dag:
        pass
    return {"dag": dag, "dag_run": run, "ti": instance, "outlet_events": {},
            "task_state_store": kept}

def run(folder, job, results, name, operator, **arguments):
    if not (child := os.fork()):
        try:
            with airflow.sdk.DAG("d", schedule=None):
                task = operator(task_id=name, job=job, **arguments)
                if name == "clean_up":
                    PartitionOperator(task_id="partition", job=job) >> task
            named = [getattr(task, "fragment_name", ""), *sys.modules]  # before the task runs
            result = task.execute(context())
            modules = sorted(set(sys.modules) - known)
            told = {"result": result, "modules": modules, "named": named}
            (folder / name).write_text(json.dumps(told))
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{name} failed")
    told = json.loads((folder / name).read_text())
    results[name], results[name + "_name"] = told["modules"], told["named"]
    return told["result"]

for folder in map(Path, sys.argv[1:]):
    results = {}
    of = folder, json.loads((folder / "task.json").read_text()), results
    fragments = run(*of, "partition", PartitionOperator)
    assert len(fragments) == 2, fragments
    summaries = []
    for fragment in fragments:
        operator = AnonymizeFragmentOperator
        summaries.append(run(*of, "anonymize_fragment", operator, fragment=fragment))
    run(*of, "wrap_up", WrapUpOperator, summaries=summaries)
    run(*of, "clean_up", CleanUpOperator)
    (folder / "modules").write_text(json.dumps(results))
"""

COMMAND = """
import json, sys
from pathlib import Path
from mondrian_ops.cli import main
status = main(["run", sys.argv[1], "--quiet"])
Path(sys.argv[2]).write_text(json.dumps(list(sys.modules)))
sys.exit(status)
"""


@pytest.fixture(scope="module", params=["parquet", "csv"])
def imported(request, tmp_path_factory) -> dict[str, list[str]]:
    """The modules that each task of a small run imports, by its name; and `run`, in its order."""
    import pyarrow.csv
    import pyarrow.parquet

    folder = tmp_path_factory.mktemp("tasks")
    rows = "".join(f"{n % 50},{n / 4},{'abc'[n % 3]}\n" for n in range(200))
    (folder / "in.csv").write_text(f"age,income,illness\n{rows}")
    table = pyarrow.csv.read_csv(folder / "in.csv")
    pyarrow.parquet.write_table(table, folder / "in.parquet")
    job = {
        "input": str(folder / f"in.{request.param}"),
        "output": str(folder / "out"),
        "k": 3,
        "l": 2,
        "quasi_identifiers": ["age", "income"],
        "sensitive": ["illness"],
        "partitioning": {"fragments": 2, "sample": 1.0},
        "retrieval": "scatter",  # as of files that are read in every task otherwise
    }
    (folder / "task.json").write_text(json.dumps(job))
    job["output"] = str(folder / "of_command")
    (folder / "job.json").write_text(json.dumps(job))
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(folder / "home"),
        "AIRFLOW__MONDRIAN_OPS__ALLOWED_INPUTS": str(folder),
        "AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS": str(folder),
    }
    for arguments in ([PROGRAM, folder], [COMMAND, folder / "job.json", folder / "run.json"]):
        command = [sys.executable, "-c", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert list((folder / "out").glob("part-*.parquet"))
    assert not list(folder.glob(".out*"))  # the working files
    told = json.loads((folder / "modules").read_text())
    return told | {"run": json.loads((folder / "run.json").read_text())}


@pytest.mark.parametrize("task", [*TASKS, "run"])
def test_a_plain_run_imports_nothing_of_other_jobs(imported, task):
    assert OF_OTHER_JOBS & {*imported[task]} == set()


def test_the_command_line_imports_nothing_of_the_catalogue(imported):
    """In Airflow it has one, in which releases are recorded; here none is given."""
    of_catalogue = {"mondrian_ops.catalogue.database", "sqlalchemy", "alembic"}
    assert of_catalogue & {*imported["run"]} == set()


def test_the_command_line_imports_templates_for_a_page_only(imported):
    """When the release was checked, and its page is written."""
    order = imported["run"]
    assert order.index("mondrian_ops.verify.requirements") < order.index("jinja2")


def test_what_other_jobs_need_is_there():
    """Or a name that was changed would never be found."""
    ours = [name for name in OF_OTHER_JOBS if name.startswith("mondrian_ops.")]
    assert all(map(importlib.util.find_spec, ours))


def test_a_fragment_imports_no_more_than_its_phase_needs(imported):
    other = {
        "mondrian_ops.pipeline.partitioning",
        "mondrian_ops.pipeline.report_builder",
        "mondrian_ops.pipeline.wrapping_up",
        "mondrian_ops.verify.requirements",
        "mondrian_ops.report.page",
        "pyarrow.dataset",
    }
    assert other & {*imported["anonymize_fragment"]} == set()
    assert "mondrian_ops.cut.native.mondrian" in imported["anonymize_fragment"]


def test_the_name_of_a_fragment_is_told_without_numpy_and_pyarrow(imported):
    """Airflow renders it before the task runs, and the task then imports them as it needs them."""
    name, *modules = imported["anonymize_fragment_name"]
    assert name.startswith("1: ")
    assert "mondrian_ops.engines.handover" in modules
    assert {"numpy", "pyarrow"} & {*modules} == set()


def test_the_other_phases_import_nothing_of_each_other(imported):
    assert "mondrian_ops.pipeline.wrapping_up" not in imported["partition"]
    assert "mondrian_ops.pipeline.partitioning" not in imported["wrap_up"]


def test_no_task_reads_documentation_or_imports_pandas(imported):
    for task in (*TASKS, "run"):
        assert {"pyarrow.vendored.docscrape", "pandas"} & {*imported[task]} == set()


def test_clean_up_imports_neither_numpy_nor_pyarrow(imported):
    assert "mondrian_ops.publish.workdir" in imported["clean_up"]
    assert {"numpy", "pyarrow"} & {*imported["clean_up"]} == set()
