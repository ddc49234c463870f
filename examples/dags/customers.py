"""A platform team's own DAG: analysts get yesterday's customers, anonymized.

    extract ──▶ anonymize (partition ──▶ anonymize_fragment ──▶ wrap_up) ──▶ refresh_mart

It reads and writes `data/` and `out/` beside the DAGs folder, where jobs may do so by default;
docs/security.md of mondrian_ops says how to allow other places. mondrian_ops provides only the
tasks of the group. The others stand for a team's own tasks.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.sdk import DAG, Asset, task

from mondrian_ops.hooks.settings import home
from mondrian_ops.notifications import HTML, SUBJECT
from mondrian_ops.task_groups import anonymize_group

HOME = Path(home())
EXPORT = HOME / "data" / "crm_export.csv"
DAY = "{{ dag_run.run_after | ds }}"  # as `ds`, which a run that an asset starts does not have

# The keys are those of docs/job.md. A job can also be a file: anonymize_group("customers.yaml").
JOB = {
    "k": 10,
    "l": 2,
    "identifiers": ["name"],
    "quasi_identifiers": ["age", "sex", "zip=prefix", "country=hierarchy:countries.csv"],
    "sensitive": ["income"],
    # A release that loses too much for analysts is refused, and the run fails.
    "max_gcp": 0.7,
}


@task
def extract(day: str) -> str:
    """Write the adults of the CRM's export to the Parquet file of the day; return its path."""
    # Imported here, so that the scheduler parses this file in milliseconds.
    import pyarrow.compute as pc
    from pyarrow import csv, parquet

    as_text = csv.ConvertOptions(column_types={"zip": "string"}, strings_can_be_null=True)
    people = csv.read_csv(EXPORT, convert_options=as_text)
    path = HOME / "data" / "customers" / f"{day}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(people.filter(pc.greater_equal(people["age"], 18)), path)
    return str(path)


@task
def refresh_mart(ti: Any = None) -> str:
    """Write the mean income by sex and age, computed from the release; return the path."""
    from pyarrow import csv, dataset

    # The summary that wrap_up returns: output, k and l, losses and risks, but no personal data.
    release = ti.xcom_pull(task_ids="anonymize.wrap_up")
    # Any Parquet reader will do: it ignores the report, whose name begins with an underscore.
    customers = dataset.dataset(release["output"]).to_table(columns=["sex", "age", "income"])
    means = customers.group_by(["sex", "age"]).aggregate([("income", "mean")])
    mart = HOME / "out" / "income_by_sex_and_age.csv"
    csv.write_csv(means.sort_by([("sex", "ascending"), ("age", "ascending")]), mart)
    return str(mart)


with DAG(
    "customers",
    description="The day's customers, anonymized for analysts",
    doc_md=__doc__,
    schedule="@daily",
    start_date=datetime(2025, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"owner": "crm", "retries": 1, "retry_delay": timedelta(minutes=1)},
    tags=["crm"],
) as dag:
    anonymize = anonymize_group(
        # The input is an upstream task's result; the output is a template with the day, so that a
        # second run for a day replaces the day's release, in one step.
        {**JOB, "input": extract(DAY), "output": f"{HOME}/out/customers/{DAY}"},
        # For the tasks of the group: a pool or a queue of workers that may see personal data.
        default_args={"execution_timeout": timedelta(hours=1)},
        # Each release is an event of this asset, which can schedule other teams' DAGs.
        asset=Asset("customers_released"),
        # If a release is refused, those who can change the job get a mail. The run fails.
        on_refusal=SmtpNotifier(to="privacy@example.org", subject=SUBJECT, html_content=HTML),
    )
    # It follows wrap_up, so it starts only after the release is checked and published.
    anonymize >> refresh_mart()
