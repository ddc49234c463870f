"""`docker compose run demo`: poker hands on HDFS, anonymized by both engines, which must agree.

Runs in a container of docker-compose.yaml: DEMO_ROWS hands go to HDFS, Airflow's API starts the DAG
mondrian_anonymize with engine local and with engine spark, and the releases are read back by
readers that are not this project's.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hdfs import InsecureClient

from airflow_api import AirflowApi, AirflowError
from mondrian_ops import datasets

AIRFLOW = "http://airflow-api-server:8080"
PASSWORD = Path("/opt/airflow/login/admin_password")
NAMENODE = "http://namenode:9870"
SPARK = "http://spark-connect:4040/api/v1/applications"
USER = "airflow"
DAG_ID = "mondrian_anonymize"
ENGINES = ("local", "spark")
INPUT = "/data/poker.parquet"
OUTPUT = "/out/poker-{engine}"
QUASI_IDENTIFIERS = [f"{kind}{card}" for card in range(1, 6) for kind in "sr"]
RUN_S = 1800
# The parts of the reports that must be the same; times, engines and places differ.
SAME = ("rows", "achieved", "equivalence_classes", "metrics", "attributes", "risk")


class DemoError(Exception):
    """The releases are not as they should be."""


def main() -> int:
    """Put, run twice, fetch, compare; 0 if both releases are there and the same."""
    hdfs = InsecureClient(NAMENODE, user=USER)
    airflow = AirflowApi(AIRFLOW)
    try:
        put(hdfs, int(os.environ["DEMO_ROWS"]))
        airflow.log_in("admin", PASSWORD.read_text())
        for engine in ENGINES:
            run(airflow, engine)
        compare(hdfs)
    except (AirflowError, DemoError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


def put(hdfs: InsecureClient, rows: int) -> None:
    """Generate the hands and put them on HDFS."""
    say(f"{rows:,} poker hands to hdfs://namenode{INPUT}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "poker.parquet")
        datasets.generate("poker", rows=rows, seed=0, output=str(file))
        hdfs.upload(INPUT, str(file), overwrite=True)


def run(airflow: AirflowApi, engine: str) -> None:
    """Run the DAG with an engine, and show its progress."""
    say(f"the DAG {DAG_ID} with engine {engine}")
    job = {
        "input": f"hdfs://namenode{INPUT}",
        "output": f"hdfs://namenode{OUTPUT.format(engine=engine)}",
        "k": 5,
        "l": 2,
        "identifiers": [],
        "quasi_identifiers": QUASI_IDENTIFIERS,
        "sensitive": ["hand"],
        "engine": engine,
        "fragments": 8,
    }
    before = spark_tasks()
    run_id = airflow.trigger(DAG_ID, job)
    seconds = airflow.show(DAG_ID, run_id, RUN_S)
    say(f"published {job['output']} in {seconds:.0f} s")
    workers = {task["hostname"] for task in airflow.tasks(DAG_ID, run_id)}
    on_spark = spark_tasks() - before
    say(f"Celery workers that took part: {len(workers)}; tasks that Spark did: {on_spark}")
    if (on_spark > 0) != (engine == "spark"):
        raise DemoError(f"engine {engine} had {on_spark} tasks done by Spark")


def spark_tasks() -> int:
    """The number of tasks that all executors of the Connect server have completed so far."""
    (application,) = fetched(SPARK)
    executors = fetched(f"{SPARK}/{application['id']}/allexecutors")
    return sum(each["completedTasks"] for each in executors)


def fetched(url: str) -> Any:
    """The JSON of a page of Spark's REST API."""
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - http, by us
        return json.load(answer)


def compare(hdfs: InsecureClient) -> None:
    """Show both reports side by side. Raises DemoError if reports or classes differ."""
    reports = [report_of(hdfs, engine) for engine in ENGINES]
    for name, values in side_by_side(reports):
        print(f"  {name:<22}{''.join(f'{value:>18}' for value in values)}")
    different = [name for name in SAME if reports[0][name] != reports[1][name]]
    if different:
        raise DemoError(f"the engines' reports differ in {', '.join(different)}")
    if not classes_of(hdfs, ENGINES[0]).equals(classes_of(hdfs, ENGINES[1])):
        raise DemoError("the engines' reports are the same, but not their equivalence classes")
    say("both engines made the same classes, with the same metrics")


def report_of(hdfs: InsecureClient, engine: str) -> dict[str, Any]:
    """The report of a release."""
    with hdfs.read(f"{OUTPUT.format(engine=engine)}/_report.json") as file:
        report: dict[str, Any] = json.load(file)
    return report


def side_by_side(reports: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """The rows of a table: a name, and a text of each report."""
    return [
        ("engine", list(ENGINES)),
        ("rows published", [f"{report['rows']['published']:,}" for report in reports]),
        ("equivalence classes", [f"{report['equivalence_classes']:,}" for report in reports]),
        ("achieved k", [str(report["achieved"]["k"]) for report in reports]),
        ("achieved l", [str(report["achieved"]["l"]) for report in reports]),
        *(
            (name, [f"{report['metrics'][name]:,.6g}" for report in reports])
            for name in reports[0]["metrics"]
        ),
    ]


def classes_of(hdfs: InsecureClient, engine: str) -> pa.Table:
    """The classes of a release as published, each with its sensitive values, in order."""
    output = OUTPUT.format(engine=engine)
    with tempfile.TemporaryDirectory() as folder:
        for name in hdfs.list(output):
            if name.startswith("part-"):
                hdfs.download(f"{output}/{name}", folder)
        release = pq.read_table(folder)
    columns = [*QUASI_IDENTIFIERS, "hand"]
    counted = release.group_by(columns).aggregate([([], "count_all")])
    return counted.sort_by([(name, "ascending") for name in columns])


def say(line: str) -> None:
    """A line of progress."""
    print(f"· {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
